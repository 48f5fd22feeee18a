/** Batched heartbeats over real HTTP, directly on a real table, and in separate processes, with counts of the requests. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGateway } from "../../../infra/local/gateway.js";
import { compose } from "../../../lambda/compose.js";
import { LeaseIds } from "../../../lib/client/acquire/lease-ids.js";
import { createClient } from "../../../lib/client/client.js";
import { httpApi } from "../../../lib/client/transport/http.js";
import { randomBytes } from "../../../lib/client/runtime.js";
import { LIMITS } from "../../../lib/core/limits.js";
import { createPolicy } from "../../../lib/core/policy.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import type { Clock } from "../../../lib/core/time.js";
import type { Lease, LockClient } from "../../../lib/index.js";
import { gatewayClocks } from "../../../lib/service/clocks.js";
import { serviceOnEachCall } from "../../../lib/service/service.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { VirtualClock } from "../../../lib/testing.js";
import { startChild } from "../../support/child.js";
import { freshTable } from "../../support/engine.js";
import type { FaultProxy } from "../../support/fault-proxy.js";
import { startFaultProxy } from "../../support/fault-proxy.js";
import { serve } from "../../support/http-service.js";
import { createHarness } from "../harness.js";
import type { TogetherOrder } from "./together-program.js";
import { createWire } from "../wire.js";

const LEASE_MS = 9000;
const EVERY_MS = LEASE_MS / 3;

/** Waits in real time, with a limit, until `isSo`. */
async function until(isSo: () => boolean): Promise<void> {
  for (let looks = 0; !isSo() && looks < 1000; looks++) await delay(5);
  expect(isSo()).toBe(true);
}

function clientOf(api: ServiceApi, clock: VirtualClock): LockClient {
  return createClient({ api, clock, random: () => 0.5, ids: new LeaseIds(clock, randomBytes) });
}

async function hold(locks: LockClient, count: number): Promise<Lease[]> {
  const leases: Lease[] = [];
  for (let index = 0; index < count; index++) leases.push(await locks.acquire(`k${index}`, { leaseMs: LEASE_MS }));
  return leases;
}

describe("over HTTP", () => {
  it("go in exactly one POST /v1/renewals, and no single renewal is sent", async () => {
    const service = await serve();
    const sent: string[] = [];
    let answered = 0;
    const counting: typeof fetch = async (...request) => {
      const [url, init] = request;
      sent.push(`${init?.method ?? "GET"} ${new URL(url as string).pathname.replace(/[0-9a-f-]{36}/, "ID")}`);
      const response = await fetch(...request);
      answered++;
      return response;
    };
    const locks = clientOf(httpApi({ url: service.url, fetch: counting }), service.clock);
    const leases = await hold(locks, LIMITS.renewalsMax);
    const before = leases.map((lease) => lease.remainingMs());
    sent.length = 0;
    for (let beats = 1; beats <= 3; beats++) {
      const expected = answered + 1;
      await service.clock.advance(EVERY_MS);
      await until(() => answered === expected && leases.every((lease, index) => lease.remainingMs() === before[index]));
      expect(sent).toEqual(Array.from({ length: beats }, () => "POST /v1/renewals"));
    }
    // A lease that is broken doesn't affect the others.
    const [broken, ...others] = leases;
    await service.send("POST", `/v1/locks/${broken!.key}/break`, { body: { reason: "test", fencingToken: broken!.fencingToken } });
    await service.clock.advance(EVERY_MS);
    await until(() => broken!.state === "lost" && others.every((lease) => lease.remainingMs() === before[1]));
    await locks.close();
    await service.close();
  });
});

describe("straight on the table", () => {
  it("go in exactly one request of the client, and each lease is renewed on the table", async () => {
    const clock = new VirtualClock();
    const { calls, tableName } = await freshTable();
    const store = createDynamoStore({ calls, tableName, policy: createPolicy(), clock, random: () => 0 });
    const caller = { principal: "test/direct", namespace: "test", requestId: "test" };
    const service = serviceOnEachCall({ store, log: () => undefined, clock }, caller, () => gatewayClocks(clock, undefined));
    const counted = createWire(service, clock);
    const locks = clientOf(counted.api, clock);
    const leases = await hold(locks, 10);
    const before = leases.map((lease) => lease.remainingMs());
    await clock.advance(EVERY_MS);
    await until(() => leases.every((lease, index) => lease.remainingMs() === before[index]));
    expect([counted.of("renewMany").length, counted.of("renew").length]).toEqual([1, 0]);
    for (const { key } of leases) expect((await locks.inspect(key)).holders).toMatchObject([{ remainingMs: LEASE_MS }]);
    await locks.close();
  });
});

describe.each(["service", "table"] as const)("a program that reaches the %s", (reaches) => {
  let proxy: FaultProxy;
  let close: () => Promise<void>;
  let env: Readonly<Record<string, string>>;

  beforeAll(async () => {
    proxy = await startFaultProxy();
    const table = await freshTable(proxy.endpoint);
    const handler = compose(table.env, { log: () => undefined });
    const gateway = await startGateway({ handler, port: 0 });
    env = {
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_ENDPOINT_URL_DYNAMODB: table.endpoint,
      HOLDFAST_URL: gateway.url,
      HOLDFAST_TABLE: table.tableName,
    };
    close = async () => {
      await gateway.close();
      table.client.destroy();
      await proxy.close();
    };
  });
  afterAll(() => close());

  const keys = Array.from({ length: 6 }, (_, index) => `together:${index}`);
  const start = (order: Omit<TogetherOrder, "reaches">) => startChild("together-program.ts", import.meta.url, { reaches, ...order }, env);

  it("and holds leases that would beat together ends by itself", async () => {
    const program = start({ keys, staysForBeats: false });
    expect(await program.reported("acquired")).toMatchObject({ held: true });
    expect(await program.ended).toEqual({ code: 0, stderr: "" });
  });

  it("and lives on for its own reasons keeps them all, and then ends by itself", async () => {
    const program = start({ keys: keys.map((key) => `${key}:stays`), staysForBeats: true });
    expect(await program.reported("renewed")).toMatchObject({ held: true, least: 2 });
    expect(await program.ended).toEqual({ code: 0, stderr: "" });
  });
});

describe("timers", () => {
  it("of a group keep no process alive, however often it is refused or not answered", async () => {
    let keeping = 0;
    const counted = (clock: Clock): Clock => ({
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs(),
      inBackground: (delayMs, task) => clock.inBackground(delayMs, task),
      after(delayMs, task) {
        keeping++;
        return clock.after(delayMs, task);
      },
    });
    const { clock, locks, wire } = createHarness({ clientClock: counted });
    const leases = await hold(locks, 5);
    const before = keeping;
    await clock.advance(30_000);
    wire.next("renewMany", { lost: "request" }, { lost: "reply", silently: true });
    await clock.advance(30_000);
    expect(new Set(leases.map(({ state }) => state))).toEqual(new Set(["held"]));
    expect(keeping).toBe(before);
    expect(before).toBeGreaterThan(0);
    // Control: a waiting caller keeps it alive.
    await locks.inspect("k0");
    expect(keeping).toBeGreaterThan(before);
  });
});
