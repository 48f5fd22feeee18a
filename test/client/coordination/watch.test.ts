/** Watching a key: the current state, then every change that a poll finds, and nothing between changes. */
import { describe, expect, it } from "vitest";
import { type Inspection, type LockClient, type WatchOptions, LockUnavailableError } from "../../../lib/index.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";
const SECOND_MS = 1000;
const MINUTE_MS = 60_000;

/** Reads a watch to its end, or to its error. `seen` has the states so far. */
function reading(locks: LockClient, options?: WatchOptions) {
  const seen: Inspection[] = [];
  const done = (async () => {
    for await (const inspection of locks.watch(KEY, options)) seen.push(inspection);
  })();
  done.catch(() => undefined);
  return { seen, done, owners: () => seen.map(({ holders }) => holders.map(({ owner }) => owner).join()) };
}

describe("a watch", () => {
  it("shows nothing while only heartbeats come, and asks in one request each interval", async () => {
    const { locks, rival, wire, clock } = createHarness();
    await rival.acquire(KEY);
    const { seen } = reading(locks, { intervalMs: 2 * SECOND_MS });
    await clock.advance(10 * MINUTE_MS);
    expect(seen).toHaveLength(1);
    expect(wire.of("inspect")).toHaveLength(1 + (10 * MINUTE_MS) / (2 * SECOND_MS));
    expect(wire.sent).toHaveLength(wire.of("inspect").length);
  });

  it("asks nothing while nobody reads on", async () => {
    const { locks, wire, clock } = createHarness();
    const iterator = locks.watch(KEY)[Symbol.asyncIterator]();
    await clock.settle(iterator.next());
    await clock.advance(MINUTE_MS);
    expect(wire.of("inspect")).toHaveLength(1);
    await iterator.return?.();
  });
});

describe("a watch ends", () => {
  it("with its signal, quietly and at once, whatever it was at", async () => {
    for (const afterMs of [0, 10, SECOND_MS / 2, 5 * SECOND_MS]) {
      const { locks, wire, clock } = createHarness();
      wire.always("inspect", { requestMs: 100 });
      const end = new AbortController();
      const { done } = reading(locks, { signal: end.signal });
      await clock.advance(afterMs);
      end.abort();
      await clock.settle(done, 0);
      const asked = wire.sent.length;
      await clock.advance(MINUTE_MS);
      expect(wire.sent).toHaveLength(asked);
    }
  });

  it("with the loop that reads it", async () => {
    const { locks, wire, clock } = createHarness();
    for await (const inspection of locks.watch(KEY)) {
      expect(inspection.key).toBe(KEY);
      break;
    }
    await clock.advance(MINUTE_MS);
    expect(wire.sent).toHaveLength(1);
  });

  it("with its client, and says so", async () => {
    const { locks, clock } = createHarness();
    const { done } = reading(locks);
    await clock.advance(3 * SECOND_MS);
    await locks.close();
    await expect(clock.settle(done)).rejects.toMatchObject({ code: "closed" });
  });

  it("when no answer comes for ten seconds; a shorter outage it outlasts", async () => {
    const { locks, wire, rival, clock } = createHarness();
    const { done, owners } = reading(locks);
    await clock.advance(2 * SECOND_MS);
    wire.always("inspect", { lost: "request" });
    await rival.acquire(KEY);
    await clock.advance(8 * SECOND_MS);
    wire.always("inspect", undefined);
    await clock.advance(3 * SECOND_MS);
    expect(owners()).toEqual(["", "rival"]);
    wire.always("inspect", { lost: "request" });
    await expect(clock.settle(done)).rejects.toBeInstanceOf(LockUnavailableError);
  });
});

describe("a watch that can't be", () => {
  it.each<[field: string, watch: (locks: LockClient) => unknown]>([
    ["intervalMs", (locks) => locks.watch(KEY, { intervalMs: 0 })],
    ["signal", (locks) => locks.watch(KEY, { signal: 1 } as never)],
    ["prefix", (locks) => locks.watch(KEY, { prefix: "a" } as never)],
    ["key", (locks) => locks.watch("")],
  ])("is refused by the name of %s, when it is asked for", (field, watch) => {
    const { locks } = createHarness();
    expect(() => watch(locks)).toThrow(expect.objectContaining({ name: "InvalidRequestError", field }) as Error);
  });
});
