/**
 * A runner that is killed between its call to an engine and its own outcome. The work runs twice, the second attempt
 * knows that, and the engine acts once. Real processes are really killed, so this takes real time with a short lease.
 * The test waits for each event, not for a fixed time.
 */
import { once } from "node:events";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, type RunInspection, createLockClient } from "../../lib/index.js";
import { type Child, type Report, startChild } from "../support/child.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import type { RunnerOrder } from "./runner.js";

/** Short, because the test waits for its end; long enough for a busy machine to renew it. */
const LEASE_MS = 3000;
const STORIES = [
  ["over HTTP", "careful"],
  ["straight on the table", "careful"],
  ["over HTTP", "forgetful"],
] as const;
type Way = (typeof STORIES)[number][0];

/** An engine that charges once for each idempotency key, and returns the same receipt for repeated requests. */
interface ChargingEngine {
  readonly url: string;
  /** The keys of all charges, in order. */
  readonly charges: readonly string[];
  /** Every request, with repeats. */
  readonly requests: readonly string[];
  close(): void;
}

/** The outcome of one killed runner. */
interface Story {
  readonly key: string;
  readonly killed: Report;
  readonly second: Report;
  readonly ended: Report;
  readonly before: RunInspection | null;
  readonly after: RunInspection | null;
}

let table: FreshTable;
let gateway: Gateway;
let engine: ChargingEngine;
const lookers = new Map<Way, LockClient>();
const children: Child[] = [];
const stories = new Map<string, Story>();
const storyOf = (way: Way, manner: RunnerOrder["manner"]): Story => stories.get(`${way} ${manner}`)!;

beforeAll(async () => {
  table = await freshTable();
  const handler = compose(table.env, { log: () => undefined });
  gateway = await startGateway({ handler, port: 0 });
  engine = await startEngine();
  lookers.set("over HTTP", createLockClient({ url: gateway.url }));
  lookers.set("straight on the table", createTableClient(table.place));
  await Promise.all(STORIES.map(async ([way, manner]) => stories.set(`${way} ${manner}`, await play(way, manner))));
});

afterAll(async () => {
  await Promise.all(children.map((child) => child.kill()));
  for (const locks of lookers.values()) await locks.close();
  engine.close();
  await gateway.close();
  table.client.destroy();
});

/** A runner that is killed once the engine has charged, and a second one that asks meanwhile. */
async function play(way: Way, manner: RunnerOrder["manner"]): Promise<Story> {
  const key = `killed:${manner}:${way.replaceAll(" ", "-")}`;
  const locks = way === "over HTTP" ? { url: gateway.url } : { endpoint: table.endpoint, tableName: table.tableName };
  const order = { locks, key, leaseMs: LEASE_MS, engine: engine.url, manner };
  const first = start({ ...order, then: "hang" });
  await first.reported("charged");
  const killed = await first.reported("started");
  const before = await lookers.get(way)!.runs.get(key);
  await first.kill();
  const second = start({ ...order, then: "finish" });
  const ended = await second.reported("ended");
  expect(await second.ended).toEqual({ code: 0, stderr: "" });
  return { key, killed, second: await second.reported("started"), ended, before, after: await lookers.get(way)!.runs.get(key) };
}

function start(order: RunnerOrder): Child {
  const child = startChild("runner.ts", import.meta.url, order);
  children.push(child);
  return child;
}

async function startEngine(): Promise<ChargingEngine> {
  const receipts = new Map<string, string>();
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    if (request.method !== "POST") return void response.end();
    const key = String(request.headers["idempotency-key"]);
    requests.push(key);
    const receipt = receipts.get(key) ?? `receipt ${receipts.size + 1}`;
    receipts.set(key, receipt);
    response.end(receipt);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get charges() {
      return [...receipts.keys()];
    },
    requests,
    close: () => void server.close().closeAllConnections(),
  };
}

describe.each(["over HTTP", "straight on the table"] as const)("a runner killed between its engine and its outcome, %s", (way) => {
  it("ran, and was known to run: its lease renewed as long as it lived", () => {
    const { killed, before } = storyOf(way, "careful");
    expect(killed).toMatchObject({ attempt: 1, takeover: false });
    expect(before).toMatchObject({ state: "running", owner: "runner", attempt: 1, checkpoint: { step: "charging", attempt: 1 } });
  });

  it("is followed by a second attempt that knows: takeover, the first's checkpoint, a larger token", () => {
    const { killed, second } = storyOf(way, "careful");
    expect(second).toMatchObject({ attempt: 2, takeover: true, checkpoint: { step: "charging", attempt: 1 } });
    expect(second["fencingToken"]).toBeGreaterThan(killed["fencingToken"] as number);
  });

  it("and the same idempotencyKey, so the engine, asked twice, acted once", () => {
    const { key, killed, second, ended } = storyOf(way, "careful");
    expect([killed["idempotencyKey"], second["idempotencyKey"]]).toEqual([key, key]);
    expect(engine.requests.filter((one) => one.startsWith(key))).toEqual([key, key]);
    expect(engine.charges.filter((one) => one.startsWith(key))).toEqual([key]);
    expect(ended).toMatchObject({ value: expect.stringMatching(/^receipt \d$/) as string, replayed: false, attempt: 2 });
  });

  it("whose result everybody gets from then on", async () => {
    const { key, ended, after } = storyOf(way, "careful");
    expect(after).toMatchObject({ state: "succeeded", attempt: 2, result: ended["value"] as string });
    const replayed = await lookers.get(way)!.runOnce(key, () => expect.unreachable("the work was done"));
    expect(replayed).toEqual({ value: ended["value"] as string, replayed: true, attempt: 2 });
  });
});

describe("the killed runner's outcome, coming late", () => {
  it("is refused with 410, and not recorded", async () => {
    const { key, killed, ended } = storyOf("over HTTP", "careful");
    const late = await sendOutcome(key, killed["leaseId"] as string, { state: "succeeded", result: "late" });
    expect([late.status, late.body]).toMatchObject([410, { code: "lease-lost", reason: "taken" }]);
    expect(await lookers.get("over HTTP")!.runs.get(key)).toMatchObject({
      state: "succeeded",
      attempt: 2,
      result: ended["value"] as string,
    });
  });

  it("is refused however large, and as a failure too", async () => {
    const { key, killed, ended } = storyOf("over HTTP", "careful");
    for (const outcome of [
      { state: "succeeded", result: "x".repeat(5000) },
      { state: "failed", error: "late", retryable: false },
    ]) {
      expect((await sendOutcome(key, killed["leaseId"] as string, outcome)).status).toBe(410);
    }
    expect(await lookers.get("over HTTP")!.runs.get(key)).toMatchObject({ state: "succeeded", result: ended["value"] as string });
  });

  it("control: by the lease that holds the run, the same request is recorded", async () => {
    const key = "killed:control";
    let status = 0;
    const noting: typeof fetch = async (url, init) => {
      const response = await fetch(url, init);
      if ((url as string).endsWith("/outcome")) ({ status } = response);
      return response;
    };
    const locks = createLockClient({ url: gateway.url, fetch: noting });
    await locks.runOnce(key, { leaseMs: LEASE_MS }, () => "in time");
    await locks.close();
    expect(status).toBe(200);
    expect(await lookers.get("over HTTP")!.runs.get(key)).toMatchObject({ result: "in time" });
  });
});

describe("control: a runner that keeps neither its key nor its checkpoint", () => {
  it("has the engine act twice", () => {
    const { key, second, ended } = storyOf("over HTTP", "forgetful");
    expect(second).toMatchObject({ attempt: 2, takeover: true });
    expect(engine.charges.filter((one) => one.startsWith(`${key}:`))).toHaveLength(2);
    expect(ended).toMatchObject({ replayed: false, attempt: 2 });
  });
});

async function sendOutcome(key: string, leaseId: string, outcome: object): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(`${gateway.url}/v1/runs/${key}/leases/${leaseId}/outcome`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(outcome),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}
