/** The composed function: its environment variables, and the destination of its log lines. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { REGION_METRICS } from "../../infra/metrics.js";
import { type Environment, compose } from "../../lambda/compose.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { LogLine } from "../../lib/service/log.js";
import { createMemoryStore } from "../support/memory-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { ACQUIRE } from "../support/direct-service.js";
import { freshTable } from "../support/engine.js";
import { filterPattern } from "../support/filter-pattern.js";
import { httpEvent } from "../support/http-event.js";
import { leaseIdAt } from "../support/lease-ids.js";

describe("the environment", () => {
  it.each<[env: Environment, message: string]>([
    [{}, "HOLDFAST_TABLE is not set"],
    [{ HOLDFAST_TABLE: "" }, "HOLDFAST_TABLE is not set"],
    [{ HOLDFAST_TABLE: "locks", HOLDFAST_RETENTION_MS: "a day" }, 'HOLDFAST_RETENTION_MS: "a day" is not a number'],
    [{ HOLDFAST_TABLE: "locks", HOLDFAST_RETENTION_MS: "1000" }, "retentionMs: must be at least 3600000"],
    [{ HOLDFAST_TABLE: "locks", HOLDFAST_CLOCK_ERROR_MS: "10000" }, "clockErrorMs: must be 0 to 10000"],
    [{ HOLDFAST_TABLE: "locks", HOLDFAST_OWN_URL: "https://a.example,b.example" }, 'HOLDFAST_OWN_URL: "b.example" is no http URL'],
    [{ HOLDFAST_TABLE: "locks", HOLDFAST_LOG_REFUSALS: "some" }, 'HOLDFAST_LOG_REFUSALS: "some" is not a number'],
  ])("%j does not start: %s", (env, message) => {
    expect(() => compose(env)).toThrow(message);
  });

  it("may leave out everything but the table", () => {
    expect(compose({ HOLDFAST_TABLE: "locks", HOLDFAST_RETENTION_MS: "", HOLDFAST_LOG_REFUSALS: "0.5" })).toBeTypeOf("function");
  });

  it("sets the margin of a takeover", async () => {
    const clock = new VirtualClock();
    const { env } = await freshTable();
    const handler = compose({ ...env, HOLDFAST_CLOCK_ERROR_MS: "0" }, { clock, log: () => undefined });
    const put = () =>
      handler(httpEvent(ACQUIRE, { key: "A", leaseId: leaseIdAt(clock.wallMs()), body: { leaseMs: 1_000 }, timeEpoch: clock.wallMs() }));
    await put();
    expect(JSON.parse((await put()).body ?? "")).toMatchObject({ code: "locked", retryAfterMs: 1_000 + 2 + 1 });
  });
});

it.each([
  ["each write that met one of another Region", { HOLDFAST_REGIONS: "us-east-1,us-east-2" }, 2],
  ["nothing, on a table of one Region", {}, 0],
])("prints, for the metric of conflicts, %s", async (_what, settings, lines) => {
  const { env, client } = await freshTable();
  let meeting = 2;
  client.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        const meets = commandName?.startsWith("Update") === true && meeting-- > 0;
        return meets ? Promise.reject(Object.assign(new Error("met"), { name: "ReplicatedWriteConflictException" })) : next(args);
      },
    { step: "initialize" },
  );
  const printed: object[] = [];
  const handler = compose({ ...env, ...settings }, { client, print: (line) => void printed.push(line) });
  const { statusCode } = await handler(httpEvent(ACQUIRE, { key: "A", leaseId: leaseIdAt(Date.now()), body: {}, timeEpoch: Date.now() }));
  expect(statusCode).toBe(201);
  const conflicts = printed.filter((line) =>
    filterPattern(`{ ${REGION_METRICS.Conflicts.when} }`)(line as Readonly<Record<string, unknown>>),
  );
  expect(conflicts).toHaveLength(lines);
});

it("acquires a set of keys in parts, on a table that is in several Regions", async () => {
  const { env, client, tableName } = await freshTable();
  const operations: string[] = [];
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        operations.push(commandName ?? "");
        return next(args);
      },
    { step: "initialize" },
  );
  const handler = compose({ ...env, HOLDFAST_TABLE: tableName, HOLDFAST_REGIONS: "us-east-1,us-east-2" }, { client, log: () => undefined });
  const leaseId = leaseIdAt(Date.now());
  const body = { keys: ["A", "B"], leaseMs: 10_000 };
  const { statusCode } = await handler(httpEvent("PUT /v1/lock-sets/{leaseId}", { leaseId, body, timeEpoch: Date.now() }));
  expect(statusCode).toBe(201);
  const count = (name: RegExp): number => operations.filter((one) => name.test(one)).length;
  expect([count(/^Transact/), count(/^Update/) >= 4], operations.join()).toEqual([0, true]);
});

describe("the services of one table", () => {
  const [A, B, C] = ["https://a.example", "https://b.example", "https://c.example"];

  it("tell a caller that asks who it is the URLs of all of them that know their own", async () => {
    const { env } = await freshTable();
    const doorsTold = async (own: string | undefined): Promise<unknown> => {
      const handler = compose({ ...env, HOLDFAST_OWN_URL: own }, { log: () => undefined });
      const { body = "" } = await handler(httpEvent("GET /v1/health", { query: { caller: "1" }, timeEpoch: Date.now() }));
      return (JSON.parse(body) as { readonly doors?: unknown }).doors;
    };
    expect(await doorsTold(undefined)).toBeUndefined();
    expect(await doorsTold(A)).toEqual([A]);
    expect(await doorsTold(`${B},${C}`)).toEqual([A, B, C]);
    for (const own of [A, undefined]) expect(await doorsTold(own)).toEqual([A, B, C]);
  });

  it("write them with the first request that they carry out, whatever it is", async () => {
    const { env } = await freshTable();
    const clock = new VirtualClock();
    const acquired = httpEvent(ACQUIRE, { key: "A", leaseId: leaseIdAt(clock.wallMs()), timeEpoch: clock.wallMs() });
    for (const own of [A, B]) await compose({ ...env, HOLDFAST_OWN_URL: own }, { clock, log: () => undefined })(acquired);
    const { body = "" } = await compose(env, { log: () => undefined })(
      httpEvent("GET /v1/health", { query: { caller: "1" }, timeEpoch: Date.now() }),
    );
    expect(JSON.parse(body)).toMatchObject({ doors: [A, B] });
  });

  it("write at most 32: the item is read by every new process", async () => {
    const { env } = await freshTable();
    const many = Array.from({ length: 40 }, (_, at) => `https://${at}.example`);
    const handler = compose({ ...env, HOLDFAST_OWN_URL: many.join(",") }, { log: () => undefined });
    const { body = "" } = await handler(httpEvent("GET /v1/health", { query: { caller: "1" }, timeEpoch: Date.now() }));
    expect(JSON.parse(body)).toMatchObject({ doors: many.slice(0, 32) });
  });
});

describe("a function", () => {
  it("sends through a client that it is given, also where its environment has all settings", async () => {
    const clock = new VirtualClock();
    const { client, env } = await freshTable();
    const commands: unknown[] = [];
    client.middlewareStack.add(
      (next, { commandName }) =>
        (args) => (commands.push(commandName), next(args)),
      { step: "initialize" },
    );
    const handler = compose(env, { client, clock, log: () => undefined });
    await handler(httpEvent(ACQUIRE, { key: "A", leaseId: leaseIdAt(clock.wallMs()), timeEpoch: clock.wallMs() }));
    // What the table says of its namespaces is asked for and recorded first.
    expect(commands).toEqual(["GetItemCommand", "UpdateItemCommand", "UpdateItemCommand"]);
    client.destroy();
  });

  it.each([
    ["role", true],
    ["claim:tenant_id", true],
    ["claim:", false],
    ["everybody", false],
  ])("whose tenants are by %j starts: %s", (HOLDFAST_TENANT, starts) => {
    const start = () => compose({ HOLDFAST_TABLE: "locks", HOLDFAST_TENANT });
    if (starts) expect(start()).toBeTypeOf("function");
    else expect(start).toThrow(`HOLDFAST_TENANT: "${HOLDFAST_TENANT}" is not account, role or claim:NAME`);
  });

  it.each(["iss", "sub", "aud", "exp", "nbf", "iat", "jti"])(
    "whose tenants are by the claim %s, which names none, doesn't start",
    (claim) => {
      const start = () => compose({ HOLDFAST_TABLE: "locks", HOLDFAST_TENANT: `claim:${claim}` });
      expect(start).toThrow(new RegExp(`^HOLDFAST_TENANT: "claim:${claim}" .*; a claim must name a tenant, such as claim:team$`));
    },
  );
});

describe("refusals", () => {
  it.each([
    [undefined, ["granted", "refused", "refused"]],
    ["1", ["granted", "refused", "refused"]],
    ["0", ["granted"]],
  ])("are logged in the share HOLDFAST_LOG_REFUSALS=%s, grants always", async (HOLDFAST_LOG_REFUSALS, events) => {
    const clock = new VirtualClock();
    const lines: Partial<LogLine>[] = [];
    const store = createMemoryStore({ policy: createPolicy(), clock });
    const handler = compose({ HOLDFAST_LOG_REFUSALS }, { store, clock, print: (line) => void lines.push(line) });
    for (let attempt = 0; attempt < 3; attempt++)
      await handler(httpEvent(ACQUIRE, { key: "A", leaseId: leaseIdAt(clock.wallMs()), timeEpoch: clock.wallMs() }));
    const logged = lines.filter(({ lease }) => lease !== undefined);
    expect(logged.map(({ event }) => event)).toEqual(events);
    expect(lines).toHaveLength(3);
  });
});

it("prints one JSON object a line past the console, and what went wrong inside, which the answer hasn't", () => {
  const module = (path: string): string => JSON.stringify(new URL(`../../${path}`, import.meta.url).href);
  const program = `
    import { compose } from ${module("lambda/compose.ts")};
    import { httpEvent } from ${module("test/support/http-event.ts")};
    // Lambda's runtime would wrap what these print in another object.
    for (const method of ["trace", "debug", "log", "info", "warn", "error"]) console[method] = () => { throw new Error("wrapped"); };
    let calls = 0;
    const apply = () => calls++ === 0
      ? Promise.resolve({ answer: { ok: true, state: "never" }, events: [{ event: "ended", leaseId: "x", owner: "", principal: "p", reason: "cancelled" }] })
      : Promise.reject(new Error("inside"));
    const handler = compose({}, { store: { apply, tenancy: async (mine) => mine } });
    const leaseId = "01a1fadb-2b13-71b0-b423-0517604dd9ad";
    for (let n = 0; n < 2; n++) await handler(httpEvent("DELETE /v1/locks/{key}/leases/{leaseId}", { key: "ORDER_1", leaseId, timeEpoch: Date.now() }));
  `;
  const printed = execFileSync(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program], {
    encoding: "utf8",
    cwd: new URL("../..", import.meta.url),
  });
  const [ended, failed, ...rest] = printed.split("\n").map((line) => (line === "" ? undefined : (JSON.parse(line) as unknown)));
  expect(ended).toMatchObject({ event: "ended", model: "ORDER", id: "1", requestId: "request-1" });
  expect(failed).toEqual({ event: "failed", requestId: "request-1", error: expect.stringMatching(/^Error: inside\n/) });
  expect(rest).toEqual([undefined]);
  // Lambda reads these two of a JSON line: a level below INFO would drop it.
  for (const line of [ended, failed]) for (const name of ["level", "timestamp"]) expect(line).not.toHaveProperty(name);
});
