/**
 * Crowds on one key: readers and permits that come, renew and go at once, each a process of its own that has seen nothing. Counted: the
 * writes and reads of each of them at a real engine.
 */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { freshTable, throughSdk } from "../support/engine.js";
import { type Crowd, crowdOn, most, tally, together } from "./crowd-fixture.js";
import { leaseId, Fixture } from "./fixture.js";
import { bar } from "./mutate.js";

const CROWD = 200;
/** Waits for a busy engine: the answers of a large record take their time. */
const LONG_MS = 120_000;

const READERS = { mode: "shared" } as const;

/** A crowd that holds the key, one after the other, so that only what follows is at once. */
async function holding(crowd: Crowd, options: object = READERS): Promise<void> {
  const one = new Fixture(crowd.members[0]!.lock.store, crowd.members[0]!.lock.address);
  for (const [order] of crowd.members.entries()) await one.acquire(leaseId(order + 1), options);
  crowd.forget();
}

describe("a crowd that comes at once", { timeout: LONG_MS }, () => {
  it.each([
    ["readers", READERS, LIMITS.leasesMax, "key-full"],
    ["permits of 200", { limit: 200 }, LIMITS.leasesMax, "key-full"],
    ["permits of 50", { limit: 50 }, 50, "locked"],
  ])("of 200 %s takes what there is, with two writes each and no read", async (_, options, room, refusal) => {
    const crowd = crowdOn(await freshTable(), CROWD);
    const outcomes = await together(crowd, (lock, order) => lock.acquire(leaseId(order + 1), options));
    expect(tally(outcomes)).toEqual({ granted: room, [refusal]: CROWD - room });
    expect(most(crowd)).toEqual({ writes: 2, reads: 0 });
    expect(crowd.total().writes).toBeLessThanOrEqual(2 * CROWD);

    const { holds = {}, version, fencingToken } = (await crowd.members[0]!.lock.read()) ?? {};
    const tokens = Object.values(holds).map((hold) => hold.fencingToken);
    expect(new Set(tokens).size).toBe(room);
    expect(Math.max(...tokens)).toBe(fencingToken);
    expect(version).toBe(crowd.members[0]!.lock.clocks.latestMs + room);
  });

  it("control: of 60 readers many need more, where none may join", async () => {
    const table = throughSdk(await freshTable());
    const barred = bar(table.client, "SET h.#me = :joined");
    const crowd = crowdOn(table, 60);
    await together(crowd, (lock, order) => lock.acquire(leaseId(order + 1), READERS));
    expect(most(crowd).writes).toBeGreaterThan(2);
    expect(barred()).toBeGreaterThan(0);
  });

  it("waits with two more writes each at most, as far as the queue has places", async () => {
    const limit = 20;
    const crowd = crowdOn(await freshTable(), limit + LIMITS.waitersMax);
    const outcomes = await together(crowd, (lock, order) => lock.queue(leaseId(order + 1), { limit }));
    expect(tally(outcomes)).toEqual({ granted: limit, waiting: LIMITS.waitersMax });
    expect(most(crowd).reads).toBe(0);
    expect(most(crowd).writes).toBeLessThanOrEqual(4);
  });
});

describe("a crowd that holds", { timeout: LONG_MS }, () => {
  it("renews at once with a write each, and two where another has the longer record", async () => {
    const crowd = crowdOn(await freshTable(), 60);
    await holding(crowd);
    const equal = await together(crowd, (lock, order) => lock.at(3_000).renew(leaseId(order + 1), { leaseMs: 20_000 }));
    expect(tally(equal)).toEqual({ renewed: 60 });
    expect(most(crowd)).toEqual({ writes: 1, reads: 0 });
    crowd.restart();
    const mixed = await together(crowd, (lock, order) => lock.at(6_000).renew(leaseId(order + 1), { leaseMs: 20_000 + order * 1_000 }));
    expect(tally(mixed)).toEqual({ renewed: 60 });
    expect(most(crowd).writes).toBeLessThanOrEqual(3);
  });

  it("leaves at once, and nobody has to give up", async () => {
    const crowd = crowdOn(await freshTable(), 100);
    await holding(crowd);
    const outcomes = await together(crowd, (lock, order) => lock.release(leaseId(order + 1)));
    expect(tally(outcomes)).toEqual({ released: 100 });
    expect(crowd.total().writes).toBeLessThan(6 * 100);
    expect((await crowd.members[0]!.lock.read())?.holds).toEqual({});
  });
});
