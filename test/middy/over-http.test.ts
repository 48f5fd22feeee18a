/**
 * Everything over HTTP on localhost: a caller, the application's handler, the lock service behind its own gateway, a
 * table on the engine.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "../../infra/local/gateway.js";
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import type { LockClient } from "../../lib/index.js";
import { createLockClient, key } from "../../lib/index.js";
import { idempotencyHandler, lockHandler } from "../../lib/middy.js";
import type { FreshTable } from "../support/engine.js";
import { freshTable } from "../support/engine.js";
import { createGate } from "../support/run-gate.js";
import type { AppServer } from "./app-server.js";
import { serveApp } from "./app-server.js";
import type { RequestV2 } from "./events.js";

const OF_ALL = { service: "shop", caller: "none" } as const;

let table: FreshTable;
let gateway: Gateway;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  table = await freshTable();
  gateway = await startGateway({ handler: compose(table.env, { log: () => undefined }), port: 0 });
});
afterAll(async () => {
  await Promise.all(open.map((one) => one.close()));
  await gateway.close();
  table.client.destroy();
});

/** A sandbox of the application's function: its own client, and an API in front of it. */
async function deployed(handlerOf: (locks: LockClient) => (event: RequestV2, context: object) => Promise<unknown>): Promise<AppServer> {
  const locks = createLockClient({ url: gateway.url });
  const app = await serveApp(handlerOf(locks));
  open.push(app, locks);
  return app;
}

const post = (app: AppServer, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${app.url}/orders`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });

const orderOf = ({ body }: RequestV2): number => (JSON.parse(body) as { order: number }).order;

describe("over HTTP", () => {
  it("a form that is sent three times, to three sandboxes at once, is one order and three same answers", async () => {
    let orders = 0;
    const create = async (): Promise<object> => ({ statusCode: 201, headers: { location: "/orders/1" }, body: String(++orders) });
    const apps = await Promise.all([1, 2, 3].map(() => deployed((locks) => idempotencyHandler({ locks, ...OF_ALL }, create))));
    const answers = await Promise.all(apps.map((app) => post(app, { product: "camera" }, { "Idempotency-Key": '"form-1"' })));
    expect(await Promise.all(answers.map(async (answer) => [answer.status, answer.headers.get("location"), await answer.text()]))).toEqual(
      Array(3).fill([201, "/orders/1", "1"]),
    );
    expect(answers.filter(({ headers }) => headers.get("idempotent-replayed") === "true")).toHaveLength(2);
    expect(orders).toBe(1);

    const [app] = apps as [AppServer];
    const another = await post(app, { product: "console" }, { "Idempotency-Key": '"form-1"' });
    expect([another.status, another.headers.get("content-type")]).toEqual([422, "application/problem+json"]);
    expect((await post(app, { product: "camera" })).status).toBe(400);
  });

  it("control: without the key's handler, three orders", async () => {
    let orders = 0;
    const create = async (): Promise<object> => ({ statusCode: 201, body: String(++orders) });
    const apps = await Promise.all([1, 2, 3].map(() => deployed(() => create)));
    await Promise.all(apps.map((app) => post(app, { product: "camera" }, { "Idempotency-Key": '"form-2"' })));
    expect(orders).toBe(3);
  });

  it("a request for what another works on is told 423 and when to come again; for anything else it is served", async () => {
    const gate = createGate();
    const [busy, other] = await Promise.all(
      [1, 2].map((sandbox) =>
        deployed((locks) =>
          lockHandler({ locks, key: (event) => key("ORDER", orderOf(event)), waitMs: 0 }, async (event: RequestV2) => {
            if (orderOf(event) === 1) await gate.pass();
            return { statusCode: 200, body: `sandbox ${sandbox}` };
          }),
        ),
      ),
    );
    const working = post(busy!, { order: 1 });
    await gate.reached;
    const refused = await post(other!, { order: 1 });
    expect([refused.status, refused.headers.get("content-type")]).toEqual([423, "application/problem+json"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await refused.json()).toMatchObject({ status: 423, code: "locked", definite: true, retry: "later" });
    expect(await (await post(other!, { order: 2 })).text()).toBe("sandbox 2");
    gate.open();
    expect(await (await working).text()).toBe("sandbox 1");
    expect((await post(other!, { order: 1 })).status).toBe(200);
  });
});
