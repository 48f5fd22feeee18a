/**
 * Writes of a queue that were carried out and whose responses were lost. When the AWS SDK sends them again, they queue
 * nobody twice, pass no offer on twice, and return the first attempt's answer. Each is played with and without the
 * loss, and leads to the same answer and the same record.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineClient } from "../../../infra/local/engine-client.js";
import { systemClock } from "../../../lib/core/time.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { sdkCalls } from "../../../lib/store/dynamo/sdk-calls.js";
import type { LockStore } from "../../../lib/store/port.js";
import { StoreUnavailable } from "../../../lib/store/port.js";
import { engineCalls, freshTable } from "../../support/engine.js";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { startFaultProxy } from "../../support/fault-proxy.js";
import type { FaultProxy } from "../../support/fault-proxy.js";
import { isThorough } from "../../support/tier.js";
import { startLateFailures } from "../late-failure.js";
import type { LateFailures } from "../late-failure.js";
import { HEARD, ROWS } from "./lost-queue-responses.js";
import type { AnyRow } from "./lost-rows.js";
import { QueueScene } from "../queue-fixture.js";
import { A, B, C, outcomeOf, POLICY } from "../fixture.js";
import { mutate } from "../mutate.js";

/** The SDK's attempts for one request. */
const ATTEMPTS = 3;

describe("an answer that is lost after a write of the queue", () => {
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
  function storeVia({ endpoint }: FaultProxy | LateFailures, calls: TableCalls = engineCalls(endpoint, ATTEMPTS)): LockStore {
    return createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
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

  type Lose = (write: AnyRow["write"], times: number) => void;
  const breaking: Lose = (write, times) =>
    void proxy.plan({ kind: "lose-reply" }, { when: ({ body }) => write(String(body.ConditionExpression ?? "")), times });
  const failing: Lose = (write, times) => failures.failNext(write, times);

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
      const { outcome, otherwise = outcome } = row;
      const store = storeVia(via());
      const calm = await play(store, row, () => undefined);
      const lossy = await play(store, row, () => lose(row.write, times));
      expect([outcomeOf(calm.answer), outcomeOf(lossy.answer)]).toEqual([otherwise, outcome]);
      // Control: the engine got that many more requests and refused them, so the store recognised its own write.
      expect([lossy.writes - calm.writes, lossy.refusedWrites - calm.refusedWrites]).toEqual([times, times]);
      expect(lossy.record).toEqual(calm.record);
      expect({ ...lossy.answer, how: "" }).toEqual({ ...calm.answer, how: "" });
    });

    it("is a success all the same: say that one still waits, which is written each time", async () => {
      const { id, write } = HEARD;
      const heard = async (act: () => void) => {
        const lock = new QueueScene(storeVia(via()));
        await HEARD.before(lock);
        proxy.ledger.clear();
        act();
        const answer = await lock.at(HEARD.atMs).queue(id);
        return { answer, record: await lock.read(), writes: proxy.ledger.requests["UpdateItem"] };
      };
      const calm = await heard(() => undefined);
      const lossy = await heard(() => lose(write, times));
      expect(lossy).toEqual({ ...calm, writes: (calm.writes ?? 0) + times });
      expect(outcomeOf(lossy.answer)).toBe("waiting");
    });
  });

  it.runIf(isThorough()).each(ROWS)("of all attempts: it may have happened, and asking again tells. $operation", async (row) => {
    const lock = row.open(storeVia(proxy));
    await lock.before();
    const plan = proxy.plan(
      { kind: "lose-reply" },
      { when: ({ body }) => row.write(String(body.ConditionExpression ?? "")), times: ATTEMPTS },
    );
    const error: unknown = await lock.act().catch((reason: unknown) => reason);
    expect(plan.struck).toBe(ATTEMPTS);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ definite: false });
    const record = await lock.read();
    expect(outcomeOf(await lock.act())).toBe(row.outcome);
    expect(await lock.read()).toEqual(record);
  });

  it("of an enqueue, and only late: its turn may have come meanwhile, and the next ask claims it", async () => {
    const elsewhere = storeVia(proxy);
    const lock = new QueueScene(storeVia(proxy));
    await lock.acquire(A);
    let release = (): void => undefined;
    const until = new Promise<void>((resolve) => (release = resolve));
    const meets = ({ body }: { readonly body: { readonly ConditionExpression?: string } }): boolean =>
      String(body.ConditionExpression).includes("size(qi) < :most");
    const held = proxy.plan({ kind: "hold-reply", until }, { when: meets });
    const asked = lock.at(1).queue(B);
    await held.first;
    const there = new QueueScene(elsewhere, lock.address);
    await there.at(2).release(A);
    expect(await there.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
    release();
    expect(outcomeOf(await asked)).toBe("waiting");
    expect(await lock.at(3).queue(B)).toMatchObject({ how: "granted" });
  });

  it("control: queues twice by a table that doesn't see who is there already", async () => {
    const client = engineClient(proxy.endpoint, { maxAttempts: ATTEMPTS });
    const weakened = mutate(client, "NOT contains(qi, :me)");
    const lock = new QueueScene(storeVia(proxy, sdkCalls(client)));
    await lock.acquire(A);
    await lock.queue(B);
    breaking((condition) => condition.includes("size(qi) < :most"), 1);
    await lock.queue(C);
    expect(weakened()).toBeGreaterThan(0);
    expect((await lock.standing()).waiters).toEqual([B, C, C]);
  });
});
