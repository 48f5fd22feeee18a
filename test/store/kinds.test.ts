/** Concurrent readers, writers and permits through every store: never more permits are out than exist. conformance/contending.ts has more. */
import { describe, expect, it } from "vitest";
import type { Held } from "../../lib/core/commands.js";
import type { Refusal } from "../../lib/core/errors.js";
import { sdkCalls } from "../support/sdk-calls.js";
import { StoreUnavailable } from "../../lib/store/port.js";
import { freshTable } from "../support/engine.js";
import { type AcquireOptions, carelessStore, dynamoStoreOn, leaseId, outcomeOf, Fixture } from "./fixture.js";
import { mutate } from "./mutate.js";
import { STORES } from "./stores.js";

const READER = { mode: "shared" } as const;
const PERMIT = { limit: 3 } as const;
const LONG_MS = 120_000;
/** The attempts for one request, as many as a patient client would make. */
const TRIES = 30;

/** Acquires concurrently. A caller whose key kept changing, so that nothing was written, retries with the same id. */
function together(lock: Fixture, count: number, options: AcquireOptions): Promise<readonly (Held | Refusal)[]> {
  const ask = async (order: number): Promise<Held | Refusal> => {
    for (let tries = 1; ; tries++) {
      try {
        return await lock.acquire(leaseId(order), options);
      } catch (error) {
        if (!(error instanceof StoreUnavailable && error.definite) || tries === TRIES) throw error;
      }
    }
  };
  return Promise.all(Array.from({ length: count }, (_, order) => ask(order + 1)));
}

const granted = (answers: readonly (Held | Refusal)[]) => answers.filter((answer) => outcomeOf(answer) === "granted");
const tokens = (answers: readonly (Held | Refusal)[]) =>
  new Set(answers.flatMap((answer) => (answer.ok ? [answer.lease.fencingToken] : [])));

describe.each(STORES)("$name, when many ask at once", ({ makeStore }) => {
  it("lets either readers in or one writer, never both", { timeout: LONG_MS }, async () => {
    for (let round = 0; round < 5; round++) {
      const lock = new Fixture(await makeStore());
      const [readers, writer] = await Promise.all([together(lock, 5, READER), lock.acquire(leaseId(100))]);
      expect([0, 5]).toContain(granted(readers).length);
      expect(writer.ok).toBe(granted(readers).length === 0);
    }
  });

  it("counts a scope's levels once each, however often each of them asks at once", async () => {
    const lock = new Fixture(await makeStore());
    await lock.acquire(leaseId(9), { scope: "scope S" });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, order) => lock.acquire(leaseId(1 + (order % 3)), { scope: "scope S" })),
    );
    expect(answers.every(({ ok }) => ok)).toBe(true);
    expect(tokens(answers).size).toBe(1);
    expect(await lock.renew(leaseId(9))).toMatchObject({ lease: { holdCount: 4 } });
  });
});

describe("control: of twenty that take permits at once", () => {
  it("more than three are told that they have one by a memory that writes without a condition", async () => {
    const lock = new Fixture(carelessStore(Math.random));
    expect(granted(await together(lock, 20, PERMIT)).length).toBeGreaterThan(3);
  });

  it("more than three are told so by a table that doesn't compare the version", async () => {
    const { client, tableName } = await freshTable();
    const weakened = mutate(client, "v = :seen", "cp <= :room");
    const lock = new Fixture(dynamoStoreOn({ calls: sdkCalls(client), tableName }, Math.random));
    expect(granted(await together(lock, 20, PERMIT)).length).toBeGreaterThan(3);
    expect(weakened()).toBeGreaterThan(0);
  });
});
