/**
 * Requests with the same `Idempotency-Key` on one table. Regressions: a service was answered with another service's response, another
 * spelling of a route made another order, and a bearer token stood in the key.
 */
import { describe, expect, it } from "vitest";
import { createLockClient } from "../../lib/testing.js";
import type { TestLockClient } from "../../lib/testing.js";
import { closingAfterEach } from "../adapters/app-server.js";
import type { Options, Reply } from "../adapters/servers.js";
import { FRAMEWORKS, HOSTS } from "../adapters/servers.js";

const open = closingAfterEach();

type Framework = (typeof HOSTS)[number];
type Ask = (path: string, user?: string) => Promise<Response>;

/** A client of a service that may have others. */
const joined = ({ clock, store }: TestLockClient): TestLockClient => createLockClient({ clock, store });

/** Serves an application that counts its orders. */
async function served(framework: Framework, options: Partial<Options> & Pick<Options, "locks">) {
  const orders: string[] = [];
  const application = (name: string): Reply => ({ status: 201, body: { order: orders.push(name) } });
  const server = open(await framework.serve({ service: "shop", caller: "header", waitMs: 0, ...options }, application));
  const ask: Ask = (path, user = "ann") =>
    fetch(`${server.url}${path}`, { method: "POST", headers: { "idempotency-key": "form-1", "x-user": user } });
  return { orders, ask };
}

const replayed = ({ headers }: Response): boolean => headers.get("idempotent-replayed") === "true";

it("services on one table run by themselves, in each host; control: under one name they share a run", async () => {
  const table = createLockClient();
  const own = await Promise.all(HOSTS.map((one) => served(one, { locks: joined(table), service: one.name.replaceAll(/\W/g, "-") })));
  const answers = await Promise.all(own.map(({ ask }) => ask("/idempotent/order")));
  expect(answers.map((answer) => [answer.status, replayed(answer)])).toEqual(HOSTS.map(() => [201, false]));

  const shared = [];
  for (const one of FRAMEWORKS) shared.push(await (await served(one, { locks: joined(table) })).ask("/idempotent/order"));
  expect(shared.map(replayed)).toEqual([false, ...FRAMEWORKS.slice(1).map(() => true)]);
});

describe.each(HOSTS)("$name", (framework) => {
  it("makes one order of a request whose path is spelled in another way that the router takes", async () => {
    const { orders, ask } = await served(framework, { locks: createLockClient() });
    const answers = [];
    for (const path of ["/idempotent/order", "/idempotent/order/", "/Idempotent/order", "/IDEMPOTENT/order/"])
      answers.push(await ask(path));
    const taken = answers.filter(({ status }) => status !== 404);
    expect(taken.map(replayed)).toEqual(taken.map((_one, at) => at > 0));
    expect(orders).toEqual(["order"]);
  });

  it("takes a parameter in another case for another request", async () => {
    const { orders, ask } = await served(framework, { locks: createLockClient() });
    expect([(await ask("/idempotent/order")).status, (await ask("/idempotent/Order")).status]).toEqual([201, 422]);
    expect(orders).toEqual(["order"]);
  });

  it("begins its keys with the service, and has no run of the application's own names", async () => {
    const locks = createLockClient();
    await locks.runOnce("form-1", () => "the application's own");
    const { ask } = await served(framework, { locks });
    expect((await ask("/idempotent/order")).status).toBe(201);
    const { items } = await locks.runs.list({ prefix: "shop_" });
    expect(items.map((run) => run.key)).toEqual(["shop_~http_ann_POST_~2Fidempotent~2F:name_form-1"]);
  });

  it.each(["Bearer 7f3a", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ."])(
    "runs nothing for a caller that is a credential: %s",
    async (user) => {
      const locks = createLockClient();
      const { orders, ask } = await served(framework, { locks });
      const refused = await ask("/idempotent/order", user);
      expect([refused.status, (await refused.text()).includes(user)]).toEqual([500, false]);
      expect([orders, (await locks.runs.list()).items]).toEqual([[], []]);
    },
  );
});
