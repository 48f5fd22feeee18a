/**
 * A write that was carried out and whose answer was lost: the AWS SDK sends it again by itself, its
 * condition no longer holds, and yet the caller must be told of a success. Each operation is played twice,
 * with and without the loss, and has to come to the same answer and the same record.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AnswerTo, Command } from "../../lib/core/commands.js";
import { systemClock } from "../../lib/core/time.js";
import { createDynamoStore } from "../../lib/store/dynamo-store.js";
import type { LockStore } from "../../lib/store/lock-store.js";
import { StoreUnavailable } from "../../lib/store/lock-store.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { freshTable } from "../support/engine.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import type { FaultProxy } from "../support/fault-proxy.js";
import { startLateFailures } from "./late-failure.js";
import type { LateFailures } from "./late-failure.js";
import { A, B, C, leaseIn, LEASE_MS, MARGIN_MS, outcomeOf, RULES, Scene } from "./scene.js";

/** A write that was decided carries the version that was seen, or says that there was no record. */
const decided = (condition: string): boolean => condition === "v = :seen" || condition === "attribute_not_exists(v)";
const guessed = (condition: string): boolean => !decided(condition);

interface Row {
  readonly operation: string;
  readonly before?: (lock: Scene) => Promise<unknown>;
  readonly act: (lock: Scene) => Promise<AnswerTo<Command>>;
  /** Whose answer is lost. */
  readonly write: (condition: string) => boolean;
  readonly outcome: string;
  /** What it comes to without the loss, where that is another word for the same. */
  readonly otherwise?: string;
  /** Renewing again extends again: the guess's condition still holds, a decision is made anew and written once more. */
  readonly extends?: "each time" | "once more";
}

const held = (lock: Scene): Promise<unknown> => lock.acquire(A, { leaseMs: 30_000 });
const used = async (lock: Scene): Promise<unknown> => (await lock.acquire(A), await lock.release(A), lock.at(1));
const at = (ms: number) => async (lock: Scene): Promise<unknown> => (await lock.acquire(A), lock.at(ms)); // prettier-ignore

const ROWS: readonly Row[] = [
  { operation: "acquire a new key", act: (lock) => lock.acquire(A), write: guessed, outcome: "replayed", otherwise: "granted" },
  {
    operation: "acquire a used key",
    before: used,
    act: (lock) => lock.acquire(B),
    write: guessed,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "acquire in the same millisecond",
    before: async (lock) => (await used(lock), lock.at(0)),
    act: (lock) => lock.acquire(B),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "take over",
    before: at(LEASE_MS + MARGIN_MS),
    act: (lock) => lock.acquire(B),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "renew as guessed",
    before: held,
    act: (lock) => lock.at(9).renew(A),
    write: guessed,
    outcome: "renewed",
    extends: "each time",
  },
  { operation: "renew as decided", before: at(9), act: (lock) => lock.renew(A), write: decided, outcome: "renewed", extends: "once more" },
  {
    operation: "renew with a note",
    before: held,
    act: (lock) => lock.at(9).renew(A, { meta: { step: 2 } }),
    write: guessed,
    outcome: "renewed",
    extends: "each time",
  },
  { operation: "release", before: held, act: (lock) => lock.release(A), write: guessed, outcome: "released" },
  { operation: "release after expiry", before: at(LEASE_MS), act: (lock) => lock.release(A), write: decided, outcome: "expired" },
  { operation: "cancel on no item", act: (lock) => lock.release(A), write: decided, outcome: "never" },
  { operation: "cancel on an item", before: used, act: (lock) => lock.release(C), write: decided, outcome: "never" },
  { operation: "cancel on a held key", before: held, act: (lock) => lock.release(C), write: decided, outcome: "never" },
  {
    operation: "transfer",
    before: held,
    act: (lock) => lock.transfer(A, B),
    write: decided,
    outcome: "replayed",
    otherwise: "transferred",
  },
  {
    operation: "first to ask for a hold that was handed over",
    before: async (lock) => (await held(lock), await lock.transfer(A, B)),
    act: (lock) => lock.acquire(B, { by: "Q" }),
    write: decided,
    outcome: "replayed",
  },
  { operation: "break and let drain", before: held, act: (lock) => lock.breakHold(), write: decided, outcome: "breaking" },
  { operation: "break in 5 s", before: held, act: (lock) => lock.breakHold(undefined, 5_000), write: decided, outcome: "breaking" },
  { operation: "break now", before: held, act: (lock) => lock.breakHold(undefined, 0), write: decided, outcome: "broken" },
];

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

  /** With a client of its own: one that had to retry often stops retrying. */
  function storeVia({ endpoint }: FaultProxy | LateFailures): LockStore {
    const client = engineClient(endpoint, { maxAttempts: 3 });
    return createDynamoStore({ client, tableName, rules: RULES, clock: systemClock, random: () => 0.5 });
  }

  /** Plays the row on a key of its own; the answer, the record and what reached the engine. */
  async function play(store: LockStore, { before, act }: Row, lose: () => void) {
    const lock = new Scene(store);
    await before?.(lock);
    proxy.ledger.clear();
    lose();
    const answer = await act(lock);
    const { requests, refusedWrites } = proxy.ledger;
    return { answer, record: await lock.read(), writes: requests["UpdateItem"] ?? 0, refusedWrites };
  }

  type Lose = (row: Row, times: number) => void;
  const breaking: Lose = ({ write }, times) =>
    void proxy.plan({ kind: "lose-reply" }, { when: ({ body }) => write(String(body.ConditionExpression ?? "")), times });
  const failing: Lose = ({ write }, times) => failures.failNext(write, times);

  describe.each([
    { how: "the connection breaks", via: () => proxy, lose: breaking, times: 1 },
    { how: "the connection breaks twice", via: () => proxy, lose: breaking, times: 2 },
    { how: "the engine says 500", via: () => failures, lose: failing, times: 1 },
  ])("$how", ({ via, lose, times }) => {
    it.each(ROWS)("is a success all the same: $operation", async (row) => {
      const { outcome, otherwise = outcome, extends: extended } = row;
      const store = storeVia(via());
      const calm = await play(store, row, () => undefined);
      const lossy = await play(store, row, () => lose(row, times));
      expect([outcomeOf(calm.answer), outcomeOf(lossy.answer)]).toEqual([otherwise, outcome]);

      // Control: the engine was asked that much more often, and refused it; so it was recognised.
      expect(lossy.writes - calm.writes).toBe(extended === "once more" ? times + 1 : times);
      expect(lossy.refusedWrites - calm.refusedWrites).toBe(extended === "each time" ? 0 : times);

      // Only a renewal leaves a trace: a higher version, of which the caller is told.
      const version = (calm.record?.version ?? 0) + (extended ? (extended === "each time" ? times : 1) : 0);
      expect(lossy.record).toEqual({ ...calm.record, version });
      expect(withoutHow(lossy.answer)).toEqual(withoutHow(calm.answer, version));
      if ("lease" in lossy.answer) expect(lossy.answer.lease.fencingToken).toBe(lossy.record?.fencingToken);
    });
  });

  it.each(ROWS)("of all attempts: it may have happened, and asking again tells. $operation", async (row) => {
    const lock = new Scene(storeVia(proxy));
    await row.before?.(lock);
    const plan = proxy.plan({ kind: "lose-reply" }, { when: ({ body }) => row.write(String(body.ConditionExpression ?? "")), times: 3 });
    const error: unknown = await row.act(lock).catch((reason: unknown) => reason);
    expect(plan.struck).toBe(3);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ definite: false });
    expect(outcomeOf(await row.act(lock))).toBe(row.outcome);
  });

  it("of a request that never arrived either: it is simply sent again", async () => {
    const lock = new Scene(storeVia(proxy));
    const lost = proxy.plan({ kind: "lose-request" });
    const granted = await lock.acquire(A);
    expect(lost.struck).toBe(1);
    expect(granted).toMatchObject({ how: "granted" });
    expect((await lock.read())?.version).toBe(leaseIn(granted).version);
  });
});

/** The answer without the word for whether it was new, and with this version. */
function withoutHow(answer: AnswerTo<Command>, version?: number): unknown {
  if (!("lease" in answer)) return answer;
  const { how: _how, lease, ...rest } = answer;
  return { ...rest, lease: { ...lease, version: version ?? lease.version } };
}
