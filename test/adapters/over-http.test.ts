/** Everything over HTTP on localhost: a caller, the application in each host, and the lock service behind its own gateway. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "../../infra/local/gateway.js";
import { startGateway } from "../../infra/local/gateway.js";
import { compose, policyOf } from "../../lambda/compose.js";
import { createLockClient, key } from "../../lib/index.js";
import { currentRun, lockHandler } from "../../lib/middy.js";
import { createMemoryStore } from "../../lib/store/memory-store.js";
import { createGate } from "../support/run-gate.js";
import type { AppServer } from "./app-server.js";
import { ASKED, closingAfterEach, replayed, serveApp } from "./app-server.js";
import type { RequestV2 } from "./events.js";
import { HOSTS } from "./servers.js";

const open = closingAfterEach();
let gateway: Gateway;
beforeAll(async () => {
  const store = createMemoryStore({ policy: policyOf({}) });
  gateway = await startGateway({ handler: compose({}, { store, log: () => undefined }), port: 0 });
});
afterAll(() => gateway.close());

describe.each(HOSTS)("$name on the service over HTTP", ({ name, serve }) => {
  it("runs a route once for two servers, in which the route sees its run", async () => {
    const runs: unknown[] = [];
    const application = () => {
      runs.push(currentRun()?.attempt);
      return { status: 201, body: { id: 1 } };
    };
    const service = name.replaceAll(/\W/g, "-");
    const servers = await Promise.all(
      [1, 2].map(async () =>
        open(await serve({ locks: open(createLockClient({ url: gateway.url })), service, caller: "header" }, application)),
      ),
    );
    const answers = await Promise.all(servers.map(({ url }) => fetch(`${url}/idempotent/order`, ASKED)));
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers.map(replayed).toSorted()).toEqual([null, "true"].toSorted());
    // A middleware can't put the handler into its context: it shows the run as `context.run`.
    expect(runs).toEqual([name.startsWith("idempotencyMiddleware") ? undefined : 1]);
  });
});

it("a request for what another works on is told 423 and when to come again; for anything else it is served", async () => {
  const gate = createGate();
  const orderOf = ({ body }: RequestV2): number => (JSON.parse(body) as { order: number }).order;
  const [busy, other] = await Promise.all(
    [1, 2].map(async (sandbox) => {
      const locks = open(createLockClient({ url: gateway.url }));
      const serve = async (event: RequestV2) => {
        if (orderOf(event) === 1) await gate.pass();
        return { statusCode: 200, body: `sandbox ${sandbox}` };
      };
      return open(await serveApp(lockHandler({ locks, key: (event) => key("ORDER", orderOf(event)), waitMs: 0 }, serve)));
    }),
  );
  const post = (app: AppServer, body: object) => fetch(`${app.url}/orders`, { method: "POST", body: JSON.stringify(body) });
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
