/**
 * Functions that die or freeze in the middle of an order: the state that the next attempt finds, the writes that the
 * order refuses, and a control for each without the line that protects it. The locks are in memory, with simulated
 * time; everything else is real.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { engineClient } from "../../infra/local/engine-client.js";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type Told, ask } from "../../examples/orders/ask.js";
import { type LocalShop, openShop, PRICE } from "../../examples/orders/local.js";
import { type Orders, OvertakenError, ordersIn } from "../../examples/orders/orders-table.js";
import type { Shop } from "../../examples/orders/shop.js";
import type { LockClient } from "../../lib/index.js";
import { type TestLockClient, createLockClient } from "../../lib/testing.js";
import { cancelledFor, startFaultProxy } from "../support/fault-proxy.js";
import { gate } from "./gate.js";

const STOCK = 10;
const LEASE_AND_MARGIN_MS = 32_000;
const PLACE = "POST /orders";
const PAY = "POST /orders/{order}/payment";
const CANCEL = "POST /orders/{order}/cancellation";
const ACCEPT = "POST /sales/{order}/acceptance";

let local: LocalShop;
let fresh = 0;
let camera: string;
let headers: Readonly<Record<string, string>>;
/** The function that dies, and the one that continues. Each has its own client of the same locks. */
let dying: TestLockClient;
let next: TestLockClient;

beforeAll(async () => {
  local = await openShop({ endpoint: inject("engineEndpoint") });
});
afterAll(() => local.close());
beforeEach(async () => {
  camera = `camera-${++fresh}`;
  headers = { "idempotency-key": camera };
  await local.stockUp(camera, STOCK);
  dying = createLockClient();
  next = createLockClient({ store: dying.store, clock: dying.clock });
});

const shopWith = (locks: LockClient, orders: Partial<Orders> = {}): Shop => {
  const shop = local.join();
  return { ...shop, locks, orders: { ...shop.orders, ...orders } };
};
const tell = (routeKey: string, order?: string, shop = shopWith(next)): Promise<Told> =>
  ask(shop, routeKey, {
    as: routeKey === ACCEPT ? "sue" : "ann",
    headers,
    ...(order === undefined ? { body: { items: { [camera]: 2 } } } : { order }),
  });
const placed = async (): Promise<string> => (await tell(PLACE)).body.id as string;

/** Dies when it calls `method` of the orders: before the call, or right after it. */
async function diesAt(
  method: "place" | "write",
  when: "before" | "after",
  asking: (shop: Shop) => Promise<Told>,
  locks: LockClient = dying,
) {
  const dead = gate();
  const { orders } = local.join();
  const hanging = async (...args: never[]): Promise<never> => {
    if (when === "after") await (orders[method] as (...args: never[]) => Promise<unknown>)(...args);
    dead.open();
    return new Promise(() => undefined);
  };
  void asking(shopWith(locks, { [method]: hanging }));
  await dead.opened;
  await dying.close(); // Stops renewing.
  await next.clock.advance(LEASE_AND_MARGIN_MS);
}

describe("a function that dies while it pays", () => {
  const moved = (since: number): readonly number[] => local.provider.moved.slice(since);

  it("between charge and write: the next attempt asks under the same key, and the buyer is charged once", async () => {
    const order = await placed();
    const [since, asked] = [local.provider.moved.length, local.provider.keys.length];
    await diesAt("write", "before", (shop) => tell(PAY, order, shop));
    expect(await tell(PAY, order)).toMatchObject({ status: 200, body: { status: "PAID" } });
    expect(moved(since)).toEqual([2 * PRICE]);
    expect(local.provider.keys.slice(asked)).toEqual([`ORDER_${order}_CHARGE`, `ORDER_${order}_CHARGE`]);
  });

  it("between charge and write: from another tab it is the same charge", async () => {
    const order = await placed();
    const since = local.provider.moved.length;
    await diesAt("write", "before", (shop) => tell(PAY, order, shop));
    headers = { "idempotency-key": `${camera}-another-tab` };
    expect(await tell(PAY, order)).toMatchObject({ status: 200, body: { status: "PAID" } });
    expect(moved(since)).toEqual([2 * PRICE]);
  });

  it("between charge and write: who cancels then gets the money back", async () => {
    const order = await placed();
    const since = local.provider.moved.length;
    await diesAt("write", "before", (shop) => tell(PAY, order, shop));
    expect(await tell(CANCEL, order)).toMatchObject({ status: 200, body: { status: "CANCELLED" } });
    expect(moved(since)).toEqual([2 * PRICE, -2 * PRICE]);
    expect(await tell(PAY, order)).toMatchObject({ status: 409, body: { status: "CANCELLED" } });
  });

  it("after its write: the next attempt finds it, and answers what the first one would have", async () => {
    const order = await placed();
    await diesAt("write", "after", (shop) => tell(PAY, order, shop));
    expect(await tell(PAY, order)).toMatchObject({ status: 200, body: { id: order, status: "PAID" } });
  });

  it("control: if the order didn't say which run changed it, a buyer who paid would be told no", async () => {
    const order = await placed();
    await diesAt("write", "after", (shop) => tell(PAY, order, shop));
    const { get } = local.join().orders;
    const forgetful: Orders["get"] = async (id) => {
      const { lastRun: _forgotten, ...found } = (await get(id))!;
      return found;
    };
    expect(await tell(PAY, order, shopWith(next, { get: forgetful }))).toMatchObject({ status: 409, body: { status: "PAID" } });
  });
});

describe("a function that dies when it has placed an order", () => {
  /** A client whose runs lose their checkpoints. */
  const forgetful = (locks: LockClient): LockClient => ({
    ...locks,
    forInvocation: (context) => forgetful(locks.forInvocation(context)),
    runOnce: ((name: string, options: object, work: (run: object) => Promise<unknown>) =>
      locks.runOnce(name, options, (run) =>
        work(Object.create(run, { saveCheckpoint: { value: () => Promise.resolve() } }) as object),
      )) as LockClient["runOnce"],
  });

  it("leaves it to the next attempt, which finds the same order and takes the goods once", async () => {
    await diesAt("place", "after", (shop) => tell(PLACE, undefined, shop));
    expect(await tell(PLACE)).toMatchObject({ status: 201, body: { status: "PLACED", total: 2 * PRICE } });
    expect(await local.pieces(camera)).toBe(STOCK - 2);
  });

  it("control: without the checkpoint there are two orders", async () => {
    await diesAt("place", "after", (shop) => tell(PLACE, undefined, shop), forgetful(dying));
    expect((await tell(PLACE)).status).toBe(201);
    expect(await local.pieces(camera)).toBe(STOCK - 4);
  });
});

describe("a seller's function that freezes with its write on the way", () => {
  /**
   * The buyer cancels while the seller's function is frozen; then it wakes up. Returns the result of its write, the
   * seller's response and the order.
   */
  async function wakesUp(tokenOf: (token: number) => number) {
    const order = await placed();
    await tell(PAY, order);
    const [writing, thawed] = [gate(), gate()];
    let landed: Promise<unknown> = Promise.resolve();
    const { write } = local.join().orders;
    const late: Orders["write"] = (moved, token) => {
      const done = thawed.opened.then(() => write(moved, tokenOf(token)));
      landed = done.catch((error: unknown) => error);
      writing.open();
      return done;
    };
    const seller = tell(ACCEPT, order, shopWith(dying, { write: late }));
    await writing.opened;
    await dying.close();
    await next.clock.advance(LEASE_AND_MARGIN_MS);
    expect((await tell(CANCEL, order)).status).toBe(200);
    thawed.open();
    return { landed: await landed, seller: await seller, end: (await local.join().orders.get(order))!.status };
  }

  it("is refused by the order, and told that it doesn't know what became of it", async () => {
    const { landed, seller, end } = await wakesUp((token) => token);
    expect(landed).toBeInstanceOf(OvertakenError);
    expect(seller).toMatchObject({ status: 503, body: { error: "unknown" }, headers: { "retry-after": "1" } });
    expect(end).toBe("CANCELLED");
  });

  it("books nothing if it freezes before that", async () => {
    const order = await placed();
    await tell(PAY, order);
    const [reading, thawed] = [gate(), gate()];
    const { get } = local.join().orders;
    let reads = 0;
    const late: Orders["get"] = async (id) => {
      const found = await get(id);
      if (++reads === 2) {
        reading.open(); // Under the lock.
        await thawed.opened;
      }
      return found;
    };
    const seller = tell(ACCEPT, order, shopWith(dying, { get: late }));
    await reading.opened;
    await dying.close();
    await next.clock.advance(LEASE_AND_MARGIN_MS);
    expect((await tell(CANCEL, order)).status).toBe(200);
    thawed.open();
    expect((await seller).status).toBe(503);
    expect(local.carrier.pickups).not.toContain(order);
  });

  it("is refused too where it still believes in its lock", async () => {
    const order = await placed();
    await tell(PAY, order);
    const { write } = local.join().orders;
    const paid = (await local.join().orders.get(order))!;
    await write({ order: paid, restocks: false }, Number.MAX_SAFE_INTEGER); // A write with a later token.
    expect(await tell(ACCEPT, order)).toMatchObject({ status: 503, body: { error: "unknown" } });
    expect(await tell(CANCEL, order)).toMatchObject({ status: 503, body: { error: "unknown" } }); // This write is a transaction.
    expect([(await local.join().orders.get(order))!.status, await local.pieces(camera)]).toEqual(["PAID", STOCK - 2]);
  });

  it("control: with another's token it lands, and a cancelled order is accepted", async () => {
    expect(await wakesUp(() => Number.MAX_SAFE_INTEGER)).toMatchObject({ landed: undefined, end: "ACCEPTED" });
  });
});

describe("stock that two transactions meet at", () => {
  it("is tried again, six times in all", async () => {
    const proxy = await startFaultProxy();
    const client = engineClient(proxy.endpoint);
    const { place } = ordersIn({ documents: DynamoDBDocumentClient.from(client), TableName: local.table.TableName });
    const shop = shopWith(next, { place });
    let isBusy = true;
    const when = ({ target }: { readonly target: string }): boolean => isBusy && target === "TransactWriteItems";
    const conflict = cancelledFor({ Code: "None" }, { Code: "TransactionConflict" });
    const met = proxy.plan(conflict, { when, times: 3 });
    expect(await tell(PLACE, undefined, shop)).toMatchObject({ status: 201 });
    expect([met.struck, await local.pieces(camera)]).toEqual([3, STOCK - 2]);

    const always = proxy.plan(conflict, { when, times: 99 });
    headers = { "idempotency-key": `${camera}-again` };
    expect(await tell(PLACE, undefined, shop)).toMatchObject({ status: 423, body: { error: "busy" }, headers: { "retry-after": "1" } });
    expect([always.struck, await local.pieces(camera)]).toEqual([6, STOCK - 2]);
    isBusy = false;
    expect(await tell(PLACE, undefined, shop)).toMatchObject({ status: 201 }); // The same request, under the same key.
    client.destroy();
    await proxy.close();
  });
});
