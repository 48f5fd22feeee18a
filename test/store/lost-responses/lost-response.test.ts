/**
 * Writes that were carried out and whose responses were lost. The AWS SDK sends them again by itself. Their condition
 * no longer holds, and yet the caller must get a success: they queue nobody twice, and pass no offer on twice. Each
 * operation is played with and without the loss, and must lead to the same answer and the same record.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineClient } from "../../../infra/local/engine-client.js";
import type { AnswerTo, Command, Held } from "../../../lib/core/commands.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { sdkCalls } from "../../support/sdk-calls.js";
import { type LockStore, StoreUnavailable } from "../../../lib/store/port.js";
import { engineCalls, freshTable } from "../../support/engine.js";
import { type Fault, type FaultProxy, type PlannedFault, startFaultProxy } from "../../support/fault-proxy.js";
import { isThorough } from "../../support/tier.js";
import { A, B, C, dynamoStoreOn, leaseIn, outcomeOf, Fixture } from "../fixture.js";
import { mutate } from "../mutate.js";
import { QueueScene } from "../queue-fixture.js";
import { type AnyRow, ENQUEUES, line, ROWS } from "./lost-rows.js";

/** The SDK's attempts for one request. */
const ATTEMPTS = 3;

describe("an answer that is lost after the write", () => {
  let proxy: FaultProxy;
  let tableName: string;
  beforeAll(async () => {
    proxy = await startFaultProxy();
    ({ tableName } = await freshTable());
  });
  afterAll(() => proxy.close());

  /** With its own operations, because those that retry often stop retrying. */
  function newStore(calls: TableCalls = engineCalls(proxy.endpoint, ATTEMPTS)): LockStore {
    return dynamoStoreOn({ calls, tableName });
  }

  /** Plans a fault for the writes with this condition. */
  const lose = (write: RegExp, times: number, fault: Fault = { kind: "lose-reply" }): PlannedFault =>
    proxy.plan(fault, { when: ({ body }) => write.test(String(body.ConditionExpression ?? "")), times });

  /** Plays the row on its own key, and returns the answer, the record and the requests at the engine. */
  async function play(row: AnyRow, act: () => unknown) {
    const scene = row.open(newStore());
    await scene.before();
    proxy.ledger.clear();
    act();
    const answer = await scene.act();
    const { requests, refusedWrites } = proxy.ledger;
    return { answer, record: await scene.key.read(), writes: requests["UpdateItem"] ?? 0, refusedWrites };
  }

  const LATE_FAILURE: Fault = { kind: "answer", carriedOut: true };
  describe.each<{ how: string; times: number; fault?: Fault }>([
    { how: "the connection breaks", times: 1 },
    ...(isThorough()
      ? [
          { how: "the connection breaks twice", times: 2 },
          { how: "the engine says 500", times: 1, fault: LATE_FAILURE },
        ]
      : []),
  ])("$how", ({ times, fault }) => {
    it.each(ROWS)("is a success all the same: $operation", async (row) => {
      const { outcome, calm: otherwise = outcome, extends: extended } = row;
      const calm = await play(row, () => undefined);
      const lossy = await play(row, () => lose(row.write, times, fault));
      expect([outcomeOf(calm.answer), outcomeOf(lossy.answer)]).toEqual([otherwise, outcome]);

      // Control: the engine got that many more requests and refused them, so the store recognised its own write.
      expect(lossy.writes - calm.writes).toBe(extended === "once more" ? times + 1 : times);
      expect(lossy.refusedWrites - calm.refusedWrites).toBe(extended === "each time" ? 0 : times);

      // Only a renewal leaves a trace: a higher version, which the caller gets.
      const version = (calm.record?.version ?? 0) + (extended ? (extended === "each time" ? times : 1) : 0);
      expect(lossy.record).toEqual({ ...calm.record, version });
      expect(withoutHow(lossy.answer)).toEqual(withoutHow(calm.answer, version));
      if ("lease" in lossy.answer) expect(lossy.answer.lease.fencingToken).toBe(lossy.record?.fencingToken);
    });

    it("is a success all the same: say that one still waits, which is written each time", async () => {
      const heard = async (act: () => unknown) => {
        const lock = new QueueScene(newStore());
        await line(B, C)(lock);
        proxy.ledger.clear();
        act();
        const answer = await lock.at(1 + DEFAULTS.waiterTtlMs / 2).queue(B);
        return { answer, record: await lock.read(), writes: proxy.ledger.requests["UpdateItem"] };
      };
      const calm = await heard(() => undefined);
      const lossy = await heard(() => lose(/^attribute_exists\(q\[/, times, fault));
      expect(lossy).toEqual({ ...calm, writes: (calm.writes ?? 0) + times });
      expect(outcomeOf(lossy.answer)).toBe("waiting");
    });
  });

  it.runIf(isThorough()).each(ROWS)("of all attempts: it may have happened, and asking again tells. $operation", async (row) => {
    const scene = row.open(newStore());
    await scene.before();
    const plan = lose(row.write, ATTEMPTS);
    const error: unknown = await scene.act().catch((reason: unknown) => reason);
    expect(plan.struck).toBe(ATTEMPTS);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ definite: false });
    const record = await scene.key.read();
    expect(outcomeOf(await scene.act())).toBe(row.outcome);
    if (!row.extends) expect(await scene.key.read()).toEqual(record);
  });

  it("of a request that never arrived either: it is simply sent again", async () => {
    const lock = new Fixture(newStore());
    const lost = proxy.plan({ kind: "lose-request" });
    const granted = await lock.acquire(A);
    expect(lost.struck).toBe(1);
    expect(granted).toMatchObject({ how: "granted" });
    expect((await lock.read())?.version).toBe(leaseIn(granted).version);
  });

  it("of an enqueue, and only late: its turn may have come meanwhile, and the next ask claims it", async () => {
    const lock = new QueueScene(newStore());
    await lock.acquire(A);
    let release = (): void => undefined;
    const until = new Promise<void>((resolve) => (release = resolve));
    const held = lose(ENQUEUES, 1, { kind: "hold-reply", until });
    const asked = lock.at(1).queue(B);
    await held.first;
    const there = new QueueScene(newStore(), lock.address);
    await there.at(2).release(A);
    expect(await there.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
    release();
    expect(outcomeOf(await asked)).toBe("waiting");
    expect(await lock.at(3).queue(B)).toMatchObject({ how: "granted" });
  });

  it("control: of an enqueue queues twice by a table that doesn't see who is there already", async () => {
    const client = engineClient(proxy.endpoint, { maxAttempts: ATTEMPTS });
    const weakened = mutate(client, "NOT contains(qi, :mark)");
    const lock = new QueueScene(newStore(sdkCalls(client)));
    await lock.acquire(A);
    await lock.queue(B);
    lose(ENQUEUES, 1);
    await lock.queue(C);
    expect(weakened()).toBeGreaterThan(0);
    expect((await lock.standing()).waiters).toEqual([B, C, C]);
  });
});

/** The answer without `how`, and with this version. */
function withoutHow(answer: AnswerTo<Command>, version?: number): unknown {
  const { how: _how, ...rest } = answer as Partial<Held>;
  return rest.lease ? { ...rest, lease: { ...rest.lease, version: version ?? rest.lease.version } } : rest;
}
