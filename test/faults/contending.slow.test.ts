/** Many processes that want one key, on a real table: granted in order, one at a time, with few requests; and some of them are killed. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS } from "../../lib/core/limits.js";
import { type LockClient, createLockClient } from "../../lib/dynamodb.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import type { Hold } from "./contender.js";
import { overlapping, overtaken, send, startContender } from "./crowd.js";

/** The report of a contender that has done. */
interface Report {
  readonly holds: readonly Hold[];
  readonly failed: readonly string[];
  readonly offeredTo: readonly string[];
}

const MINUTE_MS = 60_000;
/** The most by which the clocks of two clients straight on the table may differ: each has its own from answers in whole seconds. */
const CLOCKS_APART_MS = 2500;
const ORDER = { clients: 1, callers: 1, rounds: 1, workMs: 0, leaseMs: 10_000, waitMs: 5 * MINUTE_MS };

let proxy: FaultProxy;
let table: FreshTable;
let locks: LockClient;
/** The owners of the waiters to whom `locks` offered the key. */
const offeredTo: (string | undefined)[] = [];

beforeAll(async () => {
  proxy = await startFaultProxy();
  table = await freshTable(proxy.endpoint);
  locks = createLockClient({
    ...table.place,
    log: ({ event, owner }) => event === "offered" && offeredTo.push(owner),
  });
});

afterAll(async () => {
  await locks.close();
  table.client.destroy();
  await proxy.close();
});

/** The requests of any kind that the engine has answered since the ledger was cleared. */
function requests(): number {
  return Object.values(proxy.ledger.requests).reduce((sum, count) => sum + count, 0);
}

describe("sixteen processes that want one key six times each", () => {
  let holds: readonly Hold[];
  let failed: readonly string[];
  let perGrant: number;
  beforeAll(async () => {
    ({ holds, failed } = await send(16, table, { ...ORDER, key: "ORDER_1", rounds: 6, workMs: 20 }, () => proxy.ledger.clear()));
    perGrant = requests() / holds.length;
  }, 5 * MINUTE_MS);

  it("all get it, one at a time, with tokens that rise", () => {
    expect(failed).toEqual([]);
    expect(holds).toHaveLength(96);
    expect(overlapping(holds)).toBe(0);
    expect(new Set(holds.map(({ fencingToken }) => fencingToken)).size).toBe(96);
  });

  it("in the order in which they queued", () => {
    expect(holds.filter(({ queuedAtMs }) => queuedAtMs !== undefined).length).toBeGreaterThan(80);
    expect(overtaken(holds)).toBe(0);
    // Control: the check detects a grant that overtakes an earlier waiter.
    const [first, second] = [holds[0]!, holds[1]!];
    expect(overtaken([first, { ...second, queuedAtMs: first.askedAtMs - 1 }])).toBe(1);
    expect(overlapping([first, { ...second, grantedAtMs: first.releasedAtMs - 1 }])).toBe(1);
  });

  it("for few requests each, on however busy a machine", async ({ annotate }) => {
    // test/client/acquire/queue-pace.slow.test.ts counts them with simulated time: at most seven.
    await annotate(`${perGrant.toFixed(2)} requests to the engine per grant`);
    expect(perGrant).toBeLessThan(10);
  });
});

describe("a thousand callers in four processes", () => {
  it("each get their turn, and nobody finds the queue full", { timeout: 5 * MINUTE_MS }, async () => {
    const { holds, failed, lines } = await send(4, table, { ...ORDER, key: "ORDER_1231", callers: 250 }, () => proxy.ledger.clear());
    expect(failed).toEqual([]);
    expect(holds).toHaveLength(1000);
    expect(overlapping(holds)).toBe(0);
    // In the log each token is granted once and ended once: in the order of tokens, grants and ends alternate.
    const said = new Map<number, string[]>();
    for (const [event, fencingToken] of lines) said.set(fencingToken, [...(said.get(fencingToken) ?? []), event]);
    expect(said.size).toBe(1000);
    const ends = ["granted ended", "transferred ended"];
    for (const events of said.values()) expect(ends).toContain(events.join(" "));
    // A process is one waiter: the key passes between its callers by handoff.
    expect(requests() / holds.length).toBeLessThan(3);
  });
});

describe("twenty waiters that are killed", () => {
  it("cost those behind them one offer", async () => {
    const key = "ORDER_2";
    const held = await locks.acquire(key);
    const startAtMs = Date.now();
    const doomed = startContender(table, { ...ORDER, key, clients: 20, owner: "doomed", startAtMs });
    await doomed.reported("all queued");
    const living = startContender(table, { ...ORDER, key, clients: 3, owner: "living", startAtMs });
    await living.reported("all queued");
    await doomed.kill();
    expect((await locks.inspect(key)).waiters).toHaveLength(23);
    // A waiter that was seen after an offer, by the clocks of both, keeps its place. The clocks of two clients may differ by this much.
    await delay(CLOCKS_APART_MS);
    await held.release();
    const releasedAtMs = performance.timeOrigin + performance.now();

    const { holds, failed, offeredTo: later } = (await living.reported("done")) as unknown as Report;
    await living.kill();
    expect(failed).toEqual([]);
    expect(holds).toHaveLength(3);
    expect(overtaken([...holds].sort((a, b) => a.fencingToken - b.fencingToken))).toBe(0);
    // The release offers it to the first of the dead. The first of the living who finds that offer lapsed removes all of them.
    expect(offeredTo).toEqual(["doomed"]);
    expect(new Set(later)).toEqual(new Set(["living"]));
    // No grant before the offer's window ends, by its own clock.
    const firstAtMs = Math.min(...holds.map(({ grantedAtMs }) => grantedAtMs));
    expect(firstAtMs - releasedAtMs).toBeGreaterThan(DEFAULTS.offerWindowMs - 1500);
    // No dead waiter is left in the queue.
    await delay(50);
    expect((await locks.inspect(key)).waiters).toEqual([]);
  });
});
