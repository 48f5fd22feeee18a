/**
 * Writes that were carried out and whose responses were lost. The AWS SDK sends them again by itself. Their condition
 * no longer holds, and yet the caller must get a success. Each operation is played with and without the loss, and must
 * lead to the same answer and the same record.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AnswerTo, Command, Held } from "../../../lib/core/commands.js";
import { systemClock } from "../../../lib/core/time.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import type { LockStore } from "../../../lib/store/port.js";
import { StoreUnavailable } from "../../../lib/store/port.js";
import { engineCalls, freshTable } from "../../support/engine.js";
import { startFaultProxy } from "../../support/fault-proxy.js";
import type { FaultProxy } from "../../support/fault-proxy.js";
import { isThorough } from "../../support/tier.js";
import { startLateFailures } from "../late-failure.js";
import type { LateFailures } from "../late-failure.js";
import { ROWS as LOCK_ROWS } from "./lost-lock-responses.js";
import { ROWS as RUN_ROWS } from "./lost-run-responses.js";
import type { AnyRow } from "./lost-rows.js";
import { A, leaseIn, outcomeOf, POLICY, Fixture } from "../fixture.js";

const ROWS: readonly AnyRow[] = [...LOCK_ROWS, ...RUN_ROWS];

describe("an answer that is lost after the write", () => {
  let proxy: FaultProxy;
  let failures: LateFailures;
  let tableName: string;
  beforeAll(async () => {
    proxy = await startFaultProxy();
    failures = await startLateFailures(proxy.endpoint);
    ({ tableName } = await freshTable());
  });
  afterAll(async () => {
    await failures.close();
    await proxy.close();
  });

  /** With its own operations, because those that retry often stop retrying. */
  function storeVia({ endpoint }: FaultProxy | LateFailures): LockStore {
    return createDynamoStore({ calls: engineCalls(endpoint), tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
  }

  /** Plays the row on its own key, and returns the answer, the record and the requests at the engine. */
  async function play(store: LockStore, row: AnyRow, lose: () => void) {
    const lock = row.open(store);
    await lock.before();
    proxy.ledger.clear();
    lose();
    const answer = await lock.act();
    const { requests, refusedWrites } = proxy.ledger;
    return { answer, record: await lock.read(), writes: requests["UpdateItem"] ?? 0, refusedWrites };
  }

  type Lose = (row: AnyRow, times: number) => void;
  const breaking: Lose = ({ write }, times) =>
    void proxy.plan({ kind: "lose-reply" }, { when: ({ body }) => write(String(body.ConditionExpression ?? "")), times });
  const failing: Lose = ({ write }, times) => failures.failNext(write, times);

  describe.each([
    { how: "the connection breaks", via: () => proxy, lose: breaking, times: 1 },
    ...(isThorough()
      ? [
          { how: "the connection breaks twice", via: () => proxy, lose: breaking, times: 2 },
          { how: "the engine says 500", via: () => failures, lose: failing, times: 1 },
        ]
      : []),
  ])("$how", ({ via, lose, times }) => {
    it.each(ROWS)("is a success all the same: $operation", async (row) => {
      const { outcome, otherwise = outcome, extends: extended } = row;
      const store = storeVia(via());
      const calm = await play(store, row, () => undefined);
      const lossy = await play(store, row, () => lose(row, times));
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
  });

  it.runIf(isThorough()).each(ROWS)("of all attempts: it may have happened, and asking again tells. $operation", async (row) => {
    const lock = row.open(storeVia(proxy));
    await lock.before();
    const plan = proxy.plan({ kind: "lose-reply" }, { when: ({ body }) => row.write(String(body.ConditionExpression ?? "")), times: 3 });
    const error: unknown = await lock.act().catch((reason: unknown) => reason);
    expect(plan.struck).toBe(3);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ definite: false });
    expect(outcomeOf(await lock.act())).toBe(row.outcome);
  });

  it("of a request that never arrived either: it is simply sent again", async () => {
    const lock = new Fixture(storeVia(proxy));
    const lost = proxy.plan({ kind: "lose-request" });
    const granted = await lock.acquire(A);
    expect(lost.struck).toBe(1);
    expect(granted).toMatchObject({ how: "granted" });
    expect((await lock.read())?.version).toBe(leaseIn(granted).version);
  });
});

/** The answer without `how`, and with this version. */
function withoutHow(answer: AnswerTo<Command>, version?: number): unknown {
  const { how: _how, ...rest } = answer as Partial<Held>;
  return rest.lease ? { ...rest, lease: { ...rest.lease, version: version ?? rest.lease.version } } : rest;
}
