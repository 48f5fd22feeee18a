/** Concurrent requests to a store: all changes have a single order. */
import { expect, it } from "vitest";
import type { LeaseView } from "../../../lib/core/commands.js";
import type { LockStore } from "../../../lib/store/port.js";
import { A, leaseId, leaseIn, LEASE_MS, MARGIN_MS, outcomeOf, Fixture } from "../fixture.js";

const MANY = 50;
const many = <T>(ask: (order: number) => Promise<T>, count = MANY): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, order) => ask(order + 1)));

/** Acquires the key fifty times at once, each with its own id, and returns the outcomes. */
export function fiftyAcquire(lock: Fixture): Promise<readonly string[]> {
  return many(async (order) => outcomeOf(await lock.acquire(leaseId(order))));
}

export function contends(store: () => LockStore): void {
  it.each([
    ["free", async () => undefined],
    ["used before", async (lock: Fixture) => void (await lock.acquire(leaseId(0)), await lock.release(leaseId(0)))],
    ["to be taken over", async (lock: Fixture) => void (await lock.acquire(leaseId(0)), lock.at(LEASE_MS + MARGIN_MS))],
  ])("grants a key that is %s to exactly one of fifty", async (_, prepare) => {
    const lock = new Fixture(store());
    await prepare(lock);
    const before = (await lock.read())?.version;
    const outcomes = await fiftyAcquire(lock);
    expect(outcomes.filter((outcome) => outcome === "granted")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "locked")).toHaveLength(MANY - 1);
    const record = await lock.read();
    expect(Object.keys(record?.holds ?? {})).toEqual([leaseId(outcomes.indexOf("granted") + 1)]);
    if (before !== undefined) expect(record?.version).toBe(before + 1);
  });

  it("grants the same id once, however often it asks at once", async () => {
    const lock = new Fixture(store());
    const answers = await many(() => lock.acquire(A));
    expect(answers.filter((answer) => outcomeOf(answer) === "granted")).toHaveLength(1);
    expect(new Set(answers.map((answer) => leaseIn(answer).fencingToken)).size).toBe(1);
  });

  it("strictly increases tokens and versions over the grants of a key that eight fight for", async () => {
    const lock = new Fixture(store());
    const grants: LeaseView[] = [];
    const fight = async (fighter: number): Promise<void> => {
      for (let round = 0, won = 0; won < 3 && round < 1_000; round++) {
        const id = leaseId(1 + round * 8 + fighter);
        const answer = await lock.acquire(id);
        if (!answer.ok) continue;
        won++;
        grants.push(answer.lease);
        expect(Object.keys((await lock.read())?.holds ?? {})).toEqual([id]);
        expect(await lock.release(id)).toEqual({ ok: true, state: "released" });
      }
    };
    await many(fight, 8);
    expect(grants.length).toBeGreaterThanOrEqual(8);
    // In the order of their grants; each holder saw itself alone on the key.
    const versions = grants.map(({ version }) => version);
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
    const tokens = grants.map(({ fencingToken }) => fencingToken);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  it("ends a lease once, when it is released, renewed and handed over at once", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    const outcomes = await many(
      async (order) =>
        outcomeOf(await (order % 3 === 0 ? lock.release(A) : order % 3 === 1 ? lock.renew(A) : lock.transfer(A, leaseId(100)))),
      12,
    );
    const record = await lock.read();
    const ending = record?.tombstones[0]?.ending;
    expect(record?.tombstones).toHaveLength(1);
    // The later requests get the ending that happened, and none gets the other one.
    expect(["released", "transferred"]).toContain(ending);
    expect(outcomes.filter((outcome) => outcome === "released" || outcome === "transferred").every((outcome) => outcome === ending)).toBe(
      true,
    );
    expect(Object.keys(record?.holds ?? {})).toEqual(ending === "transferred" ? [leaseId(100)] : []);
  });
}
