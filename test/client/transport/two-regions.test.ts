/** Clients straight on a table in two Regions, in virtual time: one Region knows what the other was told, and a key outlives its holder's Region. */
import { describe, expect, it } from "vitest";
import { Arena } from "../../../bench/crowds/arena.js";
import { DEFAULTS, takeoverMarginMs } from "../../../lib/core/limits.js";
import { Regions } from "../../../lib/testing/regions.js";

const LEASE_MS = 6000;
const ROUND_TRIP_MS = 60;
/** The longest pause between two polls, the resolution of the table's time, the clocks' errors, and the requests. */
const SLACK_MS = 3500 + 1000 + 2 * DEFAULTS.clockErrorMs + 10 * ROUND_TRIP_MS;
const LIMIT = { rates: [{ count: 1, perMs: 3_600_000, burst: 1 }] };

function inTwoRegions() {
  const arena = new Arena(1);
  const regions = new Regions(arena.table, {
    clock: { monotonicMs: () => arena.nowMs(), after: arena.world.in.bind(arena.world) },
    random: () => arena.random.unit(),
    roundTripMs: [ROUND_TRIP_MS, ROUND_TRIP_MS],
  });
  const [here, there] = [regions.door("here"), regions.door("there")];
  return { arena, here, first: arena.clientIn(here), second: arena.clientIn(there) };
}

describe("clients of two Regions of a table", () => {
  it("know at once what the other was told: a lease, its end, an outcome, a take", async () => {
    const { arena, first, second } = inTwoRegions();
    const scene = async (): Promise<void> => {
      const lease = await first.acquire("key", { leaseMs: LEASE_MS });
      expect((await second.inspect("key")).holders[0]?.fencingToken).toBe(lease.fencingToken);
      expect(await second.tryAcquire("key")).toBeNull();
      await lease.release();
      expect((await second.inspect("key")).holders).toEqual([]);
      await first.runOnce("run", () => "first");
      expect(await second.runOnce("run", () => "again")).toMatchObject({ value: "first" });
      await first.limiter("limit", LIMIT).take();
      expect(await second.limiter("limit", LIMIT).remaining()).toEqual([0]);
    };
    await arena.play(scene());
  });

  it.each([
    { state: "silent", isGranted: true },
    { state: "open", isGranted: false },
  ] as const)("get the key of one in a Region that is $state in time: $isGranted", async ({ state, isGranted }) => {
    const { arena, here, first, second } = inTwoRegions();
    const scene = async (): Promise<void> => {
      const before = await first.acquire("key", { leaseMs: LEASE_MS });
      here.state = state;
      const next = second.acquire("key", { waitMs: LEASE_MS + takeoverMarginMs(LEASE_MS) + SLACK_MS });
      if (!isGranted) return expect(next).rejects.toMatchObject({ code: "wait-timeout" });
      expect((await next).fencingToken).toBeGreaterThan(before.fencingToken);
      expect(before.isHeld()).toBe(false);
    };
    await arena.play(scene());
  });
});
