/** The framework examples, served on localhost: the same two requests and the same refusals; and controls without the locks. */
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { type Order, type Orders, ordersInMemory } from "../../examples/frameworks/orders.js";
import { type LockClient, createLockClient } from "../../lib/testing.js";
import type { AppServer } from "../adapters/app-server.js";
import { FRAMEWORKS } from "./frameworks-servers.js";
import { createGate } from "../support/run-gate.js";
import { unprotected } from "./unprotected.js";

/** Turns of the event loop after which a pending request fails the test. */
const MOST_TURNS = 20_000;
const STEP_MS = 50;

const servers: AppServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

describe.each(FRAMEWORKS)("$name", ({ serve }) => {
  /** A server on locks in memory, and another client of them. */
  async function served(orders: Partial<Orders> = {}, protection?: LockClient) {
    const locks = createLockClient();
    const rival = createLockClient({ clock: locks.clock, store: locks.store, owner: "rival" });
    const server = await serve(protection ?? locks, { ...ordersInMemory(), ...orders });
    servers.push(server);
    const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(server.url + path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
    const create = (product: string, key?: string): Promise<Response> =>
      post("/orders", { product }, key === undefined ? {} : { "Idempotency-Key": key });
    const ship = (id: string): Promise<Response> => post(`/orders/${id}/ship`);

    /** Lets time pass until `asked` settles. */
    async function answered<T>(asked: Promise<T>): Promise<T> {
      let done = false as boolean;
      const mark = (): void => void (done = true);
      asked.then(mark, mark);
      for (let turns = 0; !done && turns < MOST_TURNS; turns++) {
        await turn();
        await locks.clock.advance(STEP_MS);
      }
      return asked;
    }
    return { locks, rival, post, create, ship, answered };
  }

  it("makes one order of a form that is sent three times, and gives three same answers", async () => {
    const { create, answered } = await served();
    const answers = await answered(Promise.all([1, 2, 3].map(() => create("camera", '"form-1"'))));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(Array(3).fill({ id: 1, product: "camera" }));
    expect(answers.filter(({ headers }) => headers.get("idempotent-replayed") === "true")).toHaveLength(2);
    expect(((await (await answered(create("camera", '"form-2"'))).json()) as Order).id).toBe(2);
  });

  it("makes an order for each customer who uses the same key, and takes none for another's", async () => {
    const { post, answered } = await served();
    const create = (authorization: string): Promise<Response> =>
      post("/orders", { product: "camera" }, { "Idempotency-Key": '"form-1"', authorization });
    const ids = [];
    for (const token of ["Bearer 7f3a", "Bearer 91c0", "Bearer 7f3a"])
      ids.push(((await (await answered(create(token))).json()) as Order).id);
    expect(ids).toEqual([1, 2, 1]);
  });

  it("never ships an order for two at once; control: without a lock it does", async () => {
    let [inside, most] = [0, 0];
    const protectedOne = await served({
      async ship(id) {
        most = Math.max(most, ++inside);
        await new Promise<void>((resolve) => void protectedOne.locks.clock.after(200, resolve));
        inside--;
        return { shipped: id };
      },
    });
    const answers = await protectedOne.answered(Promise.all([1, 2, 3].map(() => protectedOne.ship("7"))));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await answers[0]!.json()).toEqual({ shipped: "7" });
    expect(most).toBe(1);

    const all = createGate();
    const bare = await served(
      {
        async ship(id) {
          most = Math.max(most, ++inside);
          if (inside === 3) all.open();
          await all.opened;
          return { shipped: id };
        },
      },
      withoutLocks(),
    );
    await Promise.all([1, 2, 3].map(() => bare.ship("7")));
    expect(most).toBe(3);
  });
});

/** A client without protection, which simply calls the work. */
function withoutLocks(): LockClient {
  const lease = { isHeld: () => true, state: "held" };
  return Object.assign(unprotected(), { withLock: async (...args: unknown[]) => (args.at(-1) as (held: unknown) => unknown)(lease) });
}
