/**
 * Closing waits for every pending request that frees a key. Regression: the client forgot a release once it was sent.
 * `close()` resolved before the response, and a process that exited then left the key held.
 */
import { describe, expect, it } from "vitest";
import type { Lease, LockClient } from "../../lib/testing.js";
import { createHarness } from "./harness.js";

const KEY = "ORDER_1231";
const ON_ITS_WAY_MS = 400;

/** Operations that start to free the key and are still running when the client is closed. */
const ENDINGS: readonly (readonly [what: string, begin: (locks: LockClient) => Promise<unknown>])[] = [
  ["release()", async (locks) => void (await locks.acquire(KEY)).release()],
  ["the end of withLock", (locks) => begun((done) => locks.withLock(KEY, done))],
  ["the end of withLocks", (locks) => begun((done) => locks.withLocks([KEY], done))],
  ["the end of a locked block", async (locks) => void (await locks.acquire(KEY))[Symbol.asyncDispose]()],
  ["the end of a run", (locks) => begun((done) => locks.runOnce(KEY, done))],
  ["detach()", async (locks) => void (await locks.acquire(KEY)).detach()],
  ["the hold's longest time", async (locks) => void (await locks.acquire(KEY, { maxHoldMs: 1 }))],
];

const SLOW = ["release", "releaseSet", "complete", "transfer"] as const;

/** Resolves when the work has returned; the end of the lease is then pending. */
function begun(work: (done: () => void) => Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => void work(resolve).catch(reject));
}

describe.each(ENDINGS)("closing while %s is on its way", (_what, begin) => {
  const VIEWS: readonly (readonly [string, (locks: LockClient) => { readonly locks: LockClient; readonly closes: LockClient }])[] = [
    ["a client", (locks) => ({ locks, closes: locks })],
    ["a client, of a view of it,", (locks) => ({ locks: locks.scope("request-0123456789"), closes: locks })],
    ["the view of an invocation", (locks) => view(locks)],
    ["a client, of the view of a view,", (locks) => ({ locks: view(locks).locks.scope("request-0123456789"), closes: locks })],
  ];
  const view = (locks: LockClient) => {
    const own = locks.forInvocation({ getRemainingTimeInMillis: () => 600_000 });
    return { locks: own, closes: own };
  };

  it.each(VIEWS)("%s waits until it is answered", async (_whose, make) => {
    const { clock, locks: client, rival, wire } = createHarness();
    for (const operation of SLOW) wire.always(operation, { requestMs: ON_ITS_WAY_MS });
    const { locks, closes } = make(client);
    await begin(locks);
    await clock.advance(1);
    const sent = wire.sent.length;
    expect(SLOW.some((operation) => wire.of(operation).length > 0)).toBe(true);
    await clock.settle(closes.close());
    expect(wire.sent).toHaveLength(sent);
    // Only the recipient of a transfer may hold it.
    const { holders } = await rival.inspect(KEY);
    expect(holders).toHaveLength(wire.of("transfer").length);
    expect((await rival.runs.get(KEY))?.state ?? "succeeded").toBe("succeeded");
  });
});

describe("closing", () => {
  it("a second time waits as the first does", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const leases: Lease[] = [await locks.acquire("a"), await locks.acquire("b")];
    wire.always("release", { requestMs: ON_ITS_WAY_MS });
    void locks.close();
    await clock.settle(locks.close());
    for (const { key } of leases) expect((await rival.inspect(key)).holders).toEqual([]);
  });

  describe("with a thousand leases", () => {
    const harness = async () => {
      const made = createHarness();
      const { clock, locks } = made;
      await clock.settle(Promise.all(Array.from({ length: 1000 }, (_, at) => locks.acquire(`${KEY}.${at}`, { heartbeat: false }))));
      const closed = async (): Promise<number> => {
        const began = clock.monotonicMs();
        await clock.settle(locks.close());
        return clock.monotonicMs() - began;
      };
      return { ...made, closed };
    };

    it("releases all, a hundred at once", async () => {
      const { wire, rival, closed } = await harness();
      wire.always("release", { requestMs: ON_ITS_WAY_MS });
      // Each release is on its way for as long, so those that are sent together are on their way together.
      expect(await closed()).toBe(10 * ON_ITS_WAY_MS);
      expect(wire.of("release")).toHaveLength(1000);
      expect((await rival.list()).items).toEqual([]);
    });

    it("ends in the time of one when nobody answers, and says so of each", async () => {
      const { wire, events, closed } = await harness();
      wire.always("release", { lost: "request", silently: true });
      expect(await closed()).toBeLessThanOrEqual(5000);
      expect(new Set(wire.of("release").map(({ request }) => request.key)).size).toBe(100);
      expect(events.filter(({ type }) => type === "release-failed")).toHaveLength(1000);
    });
  });

  it("ends though nobody answers any more", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire("a");
    for (const operation of SLOW) wire.always(operation, { lost: "request", silently: true });
    lease.release().catch(() => undefined);
    const began = clock.monotonicMs();
    await clock.settle(locks.close());
    expect(clock.monotonicMs() - began).toBeLessThanOrEqual(5000);
  });
});
