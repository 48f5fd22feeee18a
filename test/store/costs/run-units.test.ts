/**
 * The cost of runs, in requests and capacity units at the engine, from the service down. Large payloads have their own
 * items and so their own costs. Also the cost of a run of many days.
 */
import { DynamoDBDocumentClient, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../../lib/core/limits.js";
import { itemKey } from "../../../lib/store/dynamo/item.js";
import type { LockStore } from "../../../lib/store/port.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { type FreshTable, freshTable } from "../../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import { RunCaller } from "./run-caller.js";
import { A, B, dynamoStoreOn, leaseId, POLICY, START_MS } from "../fixture.js";

type Act = (run: RunCaller) => Promise<unknown>;

interface Row {
  readonly what: string;
  readonly before?: Act;
  readonly act: Act;
  readonly says: string;
  readonly reads: number;
  readonly writes: number;
  readonly readUnits: number;
  readonly writeUnits: number;
}

const SMALL = { paid: true, receipt: "0123456789" };
const KB = 1024;
/** A value of that many bytes as JSON. */
const sized = (bytes: number): string => "x".repeat(bytes - 2);
const LARGE = sized(20 * KB - 200);

const start = (id: string): Act => (run) => run.start(id); // prettier-ignore
const complete = (id: string, result?: unknown): Act => (run) => run.complete(id, { state: "succeeded", ...(result !== undefined && { result }) }); // prettier-ignore
const retry = (id: string): Act => (run) => run.complete(id, { state: "failed", error: { message: "not yet" }, retryable: true }); // prettier-ignore
const beat = (id: string, checkpoint?: unknown): Act => (run) => run.renew(id, checkpoint === undefined ? {} : { checkpoint }); // prettier-ignore
const pass = (ms: number): Act => (run) => run.pass(ms); // prettier-ignore
const all = (...acts: readonly Act[]): Act => async (run) => { for (const act of acts) await act(run); }; // prettier-ignore
const TAKEABLE_MS = DEFAULTS.leaseMs + POLICY.marginMs(DEFAULTS.leaseMs);
const RUNS = all(start(A), pass(1));
const TAKEN_OVER = all(RUNS, pass(TAKEABLE_MS), start(B));
/** A key with the largest past: eight tombstones, and a low watermark. */
const WELL_USED: Act = async (run) => {
  for (let order = 1; order <= 10; order++) await all(start(leaseId(order)), pass(1), retry(leaseId(order)), pass(1))(run);
};

const row = (what: string, before: Act | undefined, act: Act, says: string, units: readonly [number, number, number, number]): Row => {
  const [reads, writes, readUnits, writeUnits] = units;
  return { what, act, says, reads, writes, readUnits, writeUnits, ...(before && { before }) };
};

// prettier-ignore
/** The operation · the preparation · the answer · reads, writes, read units, write units. */
const ROWS: readonly Row[] = [
  row("a run that nobody ran, from its start to its outcome", undefined, async (run) => (await run.start(A), await run.pass(1), await run.complete(A)), "recorded", [0, 2, 0, 2]),
  row("a start", undefined, start(A), "granted", [0, 1, 0, 1]),
  row("a heartbeat", RUNS, beat(A), "renewed", [0, 1, 0, 1]),
  row("a heartbeat with a small checkpoint", RUNS, beat(A, SMALL), "renewed", [0, 1, 0, 1]),
  row("a heartbeat with another small checkpoint", all(RUNS, beat(A, 1), pass(1)), beat(A, SMALL), "renewed", [0, 1, 0, 1]),
  row("a heartbeat of another length that doesn't say which", all((run) => run.start(A, { leaseMs: 10_000 }), pass(1)), beat(A), "renewed", [0, 2, 0, 2]),
  row("an outcome without a result", RUNS, complete(A), "recorded", [0, 1, 0, 1]),
  row("an outcome with a small result", RUNS, complete(A, SMALL), "recorded", [0, 1, 0, 1]),
  row("an outcome that may be tried again", RUNS, retry(A), "recorded", [0, 1, 0, 1]),
  row("an outcome sent again", all(RUNS, complete(A, SMALL)), complete(A, SMALL), "replayed", [0, 1, 0, 1]),
  row("an outcome past its lease", all(RUNS, pass(TAKEABLE_MS)), complete(A), "recorded", [0, 2, 0, 2]),
  row("an outcome after a takeover", TAKEN_OVER, complete(A, SMALL), "lease-lost", [0, 1, 0, 1]),

  row("a replay", all(RUNS, complete(A, SMALL)), start(B), "succeeded", [0, 1, 0, 1]),
  row("a start while another runs", RUNS, start(B), "run-in-progress", [1, 0, 1, 0]),
  row("a start sent again", RUNS, start(A), "granted again", [1, 0, 1, 0]),
  row("a start that takes over", all(RUNS, pass(TAKEABLE_MS)), start(B), "granted", [0, 1, 0, 1]),
  row("a start after a failure", all(RUNS, retry(A), pass(1)), start(B), "granted", [0, 2, 0, 2]),
  row("a start of what is forgotten", all(RUNS, complete(A), pass(DEFAULTS.keepResultMs)), start(leaseId(3, DEFAULTS.keepResultMs)), "granted", [0, 2, 0, 2]),
  row("a start after a first one was given up", all(RUNS, (run) => run.giveUp(A), pass(1)), start(B), "granted", [0, 1, 0, 1]),
  row("a start after a reset", all(RUNS, complete(A), (run) => run.reset(), pass(1)), start(B), "granted", [0, 1, 0, 1]),

  row("giving up", RUNS, (run) => run.giveUp(A), "released", [0, 1, 0, 1]),
  row("giving up what never came", undefined, (run) => run.giveUp(A), "never", [1, 1, 1, 1]),
  row("a reset", all(RUNS, complete(A)), (run) => run.reset(), "done", [1, 1, 1, 1]),
  row("a look", RUNS, (run) => run.look(), "done", [1, 0, 1, 0]),

  // One of the writes is the payload's, with its size. The read checks that the write is worth its cost.
  row("an outcome with a large result of 20 KB", RUNS, complete(A, LARGE), "recorded", [1, 2, 1, 21]),
  row("a heartbeat with a large checkpoint of 5 KB", RUNS, beat(A, sized(5 * KB - 200)), "renewed", [1, 2, 1, 6]),
  row("a replay of a large result of 20 KB", all(RUNS, complete(A, LARGE)), start(B), "succeeded", [1, 1, 5, 1]),
  row("a takeover with a large checkpoint of 5 KB", all(RUNS, beat(A, sized(5 * KB - 200)), pass(TAKEABLE_MS)), start(B), "granted", [1, 2, 2, 6]),
  row("an outcome with a large result after a takeover, which is not kept", TAKEN_OVER, complete(A, LARGE), "lease-lost", [2, 0, 2, 0]),
  row("an outcome with a large result sent again", all(RUNS, complete(A, LARGE)), complete(A, LARGE), "replayed", [2, 0, 2, 0]),
  row("a result too large to keep", RUNS, complete(A, sized(LIMITS.resultBytes + 1)), "too-large", [0, 0, 0, 0]),

  // The record contains small payloads, so each of its writes may cost one unit more.
  row("an outcome with the largest result that the record keeps", RUNS, complete(A, sized(LIMITS.inlineBytes)), "recorded", [0, 1, 0, 2]),
  row("a heartbeat after the largest checkpoint that the record keeps", all(RUNS, beat(A, sized(LIMITS.inlineBytes)), pass(1)), beat(A), "renewed", [0, 1, 0, 2]),
  row("a start after ten failures", WELL_USED, (run) => run.start(leaseId(11), { maxAttempts: 0 }), "granted", [0, 2, 0, 2]),
];

const said = (answer: unknown): string => {
  const { ok, code, how, state, lease } = answer as Partial<Record<"code" | "how" | "state", string>> & { ok: boolean; lease?: unknown };
  if (!ok) return code ?? "";
  return how === "replayed" && lease !== undefined ? "granted again" : (how ?? state ?? "done");
};

describe("counted at the engine", () => {
  let proxy: FaultProxy;
  let table: FreshTable;
  let store: LockStore;
  beforeAll(async () => {
    proxy = await startFaultProxy();
    table = await freshTable(proxy.endpoint);
    store = dynamoStoreOn(table);
    // A process reads once to learn if its table has tenants.
    await new RunCaller(store).start(A);
  });
  afterAll(() => proxy.close());

  /** The requests that an act sends to the engine. */
  async function costs(act: () => Promise<unknown>) {
    const { ledger } = proxy;
    ledger.clear();
    const says = said(await act());
    const { GetItem: reads = 0, UpdateItem: writes = 0, ...others } = ledger.requests;
    const { readUnits, writeUnits } = ledger;
    return { says, reads, writes, readUnits, writeUnits, others };
  }

  it.each(ROWS)(
    "$what costs $writes writes of $writeUnits units and $reads reads of $readUnits",
    async ({ what: _what, before, act, ...wanted }) => {
      const run = new RunCaller(store);
      await before?.(run);
      expect(await costs(() => act(run))).toEqual({ ...wanted, others: {} });
    },
  );

  it("a replay asks with one write that is refused", async () => {
    const run = new RunCaller(store);
    await all(RUNS, complete(A, SMALL))(run);
    await costs(() => run.start(B));
    expect(proxy.ledger.refusedWrites).toBe(1);
  });

  describe("through a run of three days, with a heartbeat every hour", () => {
    const BEAT_MS = 60 * 60_000;
    const LEASE_MS = 180 * 60_000;
    const DAY_MS = 86_400_000;

    /** The days into the run at which a heartbeat cost more than one write. */
    async function dear(keepResultMs: number): Promise<readonly number[]> {
      const run = new RunCaller(store);
      await run.start(A, { leaseMs: LEASE_MS, keepResultMs });
      const days = [];
      for (let ms = BEAT_MS; ms <= 3 * DAY_MS; ms += BEAT_MS) {
        await run.pass(BEAT_MS);
        const { says, reads, writes } = await costs(() => run.renew(A, { leaseMs: LEASE_MS }));
        expect([says, reads]).toEqual(["renewed", 0]);
        if (writes > 1) {
          expect(writes).toBe(2);
          days.push(ms / DAY_MS);
        }
      }
      return days;
    }

    it.each([
      { keeps: "a minute", keepResultMs: LIMITS.keepResultMinMs, firstDay: 1 },
      { keeps: "a day", keepResultMs: DAY_MS, firstDay: 2 },
      { keeps: "a week", keepResultMs: 7 * DAY_MS, firstDay: undefined },
    ])("keeping its outcome for $keeps: one write each, and two once a day from day $firstDay on", async ({ keepResultMs, firstDay }) => {
      const days = await dear(keepResultMs);
      if (firstDay === undefined) expect(days).toEqual([]);
      else {
        expect(days.map(Math.floor)).toEqual([1, 2].filter((day) => day >= firstDay));
        for (const [index, day] of days.entries()) expect(day - (days[index - 1] ?? 0)).toBeGreaterThan(0.98);
      }
    });

    it.each([
      { hours: 24, writes: 1 },
      { hours: 25, writes: 2 },
    ])("its outcome after $hours hours costs $writes", async ({ hours, writes }) => {
      const run = new RunCaller(store);
      await run.start(A, { leaseMs: LEASE_MS });
      for (let ms = 0; ms < hours * 3_600_000; ms += BEAT_MS)
        await all(pass(BEAT_MS), (caller) => caller.renew(A, { leaseMs: LEASE_MS }))(run);
      expect(await costs(() => run.complete(A))).toMatchObject({ says: "recorded", writes, reads: 0 });
    });

    it("a large checkpoint costs three writes more when the record is kept for longer, so that it is, too", async () => {
      const run = new RunCaller(store);
      await run.start(A, { leaseMs: LIMITS.leaseMaxMs, keepResultMs: LIMITS.keepResultMinMs });
      await run.renew(A, { checkpoint: LARGE.slice(0, 5_000) });
      await run.pass(LIMITS.leaseMaxMs / 2);
      const calm = await costs(() => run.renew(A, { leaseMs: LIMITS.leaseMaxMs }));
      await run.pass(LIMITS.leaseMaxMs * 0.9);
      const once = await costs(() => run.renew(A, { leaseMs: LIMITS.leaseMaxMs }));
      expect([calm.writes, once.writes]).toEqual([1, 4]);
      await run.pass(1);
      expect(await costs(() => run.renew(A, { leaseMs: LIMITS.leaseMaxMs }))).toMatchObject({ says: "renewed", reads: 0, writes: 1 });
    });
  });

  it("control: a heartbeat costs two when the start kept the record no longer than a lock's", async () => {
    const run = new RunCaller(store);
    await RUNS(run);
    const ttlAtSec = Math.ceil((START_MS + TAKEABLE_MS + POLICY.retentionMs) / 1000);
    const shorter = { UpdateExpression: "SET #x = :x", ExpressionAttributeNames: { "#x": TABLE.ttlAttribute } };
    const values = { ExpressionAttributeValues: { ":x": ttlAtSec - 1 } };
    await DynamoDBDocumentClient.from(table.client).send(
      new UpdateCommand({ TableName: table.tableName, Key: itemKey(run.address), ...shorter, ...values }),
    );
    expect(await costs(() => run.renew(A))).toMatchObject({ says: "renewed", writes: 2 });
  });
});
