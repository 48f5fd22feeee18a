/** Sets of keys with lost, slow or refused messages: granted as a whole, with a deadline from the send, lost with any key. */
import { describe, expect, it } from "vitest";
import { clientMarginMs } from "../../../lib/core/renewal.js";
import { refuse } from "../../../lib/core/errors.js";
import type { Mode } from "../../../lib/core/record.js";
import { type SetOptions, locked, LockLostError, LockUnavailableError } from "../../../lib/index.js";
import { leaseIdAt } from "../../support/lease-ids.js";
import { createHarness } from "../harness.js";

const KEYS = ["A", "B", "C"];
const LEASE_MS = 9000;
const EVERY_MS = LEASE_MS / 3;
const OPTIONS = { leaseMs: LEASE_MS } as const;

describe("a set whose renewals are answered by two servers", () => {
  it.each([-4000, 4000])("is held although the second one's clock is %d ms off", async (offMs) => {
    const { clock, locks, wire } = createHarness();
    const api = { ...wire.api };
    let renewals = 0;
    const renewSet: typeof api.renewSet = async (request, options) => {
      const answer = await api.renewSet(request, options);
      return answer.ok && ++renewals % 2 === 1 ? { ...answer, serverTimeMs: answer.serverTimeMs + offMs } : answer;
    };
    Object.assign(wire.api, { renewSet });
    const set = await locks.acquireAll(KEYS, OPTIONS);
    for (let beat = 0; beat < 9; beat++) {
      await clock.advance(EVERY_MS);
      expect(set.remainingMs()).toBeGreaterThan(LEASE_MS - EVERY_MS);
    }
    expect([set.state, renewals]).toEqual(["held", 9]);
  });

  it("goes by the renewal that lasts longer, whichever is answered last", async () => {
    const { clock, locks, wire } = createHarness();
    const set = await locks.acquireAll(KEYS, { ...OPTIONS, heartbeat: false });
    wire.next("renewSet", { replyMs: 800 }, {});
    const slow = set.renew();
    await clock.advance(500);
    await set.renew({ leaseMs: 4 * LEASE_MS });
    await clock.settle(slow);
    expect(set.remainingMs()).toBeGreaterThan(3 * LEASE_MS);
  });
});

describe("acquiring a set", () => {
  it("is one request, and so are each heartbeat and its release", async () => {
    const { clock, locks, wire } = createHarness();
    const set = await locks.acquireAll(KEYS, OPTIONS);
    await clock.advance(LEASE_MS);
    await set.release();
    expect(wire.sent.map(({ operation }) => operation)).toEqual(["acquireSet", "renewSet", "renewSet", "renewSet", "releaseSet"]);
  });

  it("whose answer was lost is asked for again under the same leaseId: one set, the same tokens", async () => {
    const { clock, locks, wire, rival } = createHarness();
    wire.next("acquireSet", { lost: "reply" }, { lost: "reply", silently: true });
    const set = await clock.settle(locks.acquireAll(KEYS, OPTIONS));
    const ids = wire.of("acquireSet").map(({ request }) => request.leaseId);
    expect([ids.length, new Set(ids).size]).toEqual([3, 1]);
    for (const key of KEYS) expect((await rival.inspect(key)).holders).toMatchObject([{ fencingToken: set.fencingTokens[key] }]);
  });

  it("that nobody answers is cancelled, and reported as unavailable: no key stays held", async () => {
    const { clock, locks, wire, rival } = createHarness();
    wire.always("acquireSet", { lost: "reply" });
    await expect(clock.settle(locks.tryAcquireAll(KEYS, OPTIONS))).rejects.toBeInstanceOf(LockUnavailableError);
    expect(wire.of("releaseSet").map(({ request }) => request.leaseId)).toEqual([wire.of("acquireSet")[0]!.request.leaseId]);
    for (const key of KEYS) expect((await rival.inspect(key)).holders).toEqual([]);
    // A late duplicate of it is not granted.
    wire.always("acquireSet", undefined);
    const late = await wire.api.acquireSet(wire.of("acquireSet")[0]!.request as Parameters<typeof wire.api.acquireSet>[0]);
    expect(late).toMatchObject({ ok: false, code: "lease-over" });
  });

  it("is believed from the send of the request that was answered, for as long as the key that has least", async () => {
    const { clock, locks, wire } = createHarness();
    wire.next("acquireSet", { requestMs: 300, replyMs: 400 });
    const set = await clock.settle(locks.acquireAll(KEYS, OPTIONS));
    expect(set.remainingMs()).toBe(LEASE_MS - 700 - clientMarginMs(LEASE_MS));
  });

  it("waits in the queue of the key that was in its way, and then asks for all", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const theirs = await rival.acquire("B");
    const waiting = locks.acquireAll(KEYS);
    await clock.advance(10_000);
    expect(wire.of("acquireSet")).toHaveLength(1);
    expect((await rival.inspect("B")).waiters).toMatchObject([{ position: 1 }]);
    for (const key of ["A", "C"]) expect(await rival.inspect(key)).toMatchObject({ holders: [], waiters: [] });
    await theirs.release();
    const set = await clock.settle(waiting);
    expect(wire.of("acquireSet")).toHaveLength(2);
    expect(new Set(wire.of("acquireSet").map(({ request }) => request.leaseId)).size).toBe(2);
    // Nothing but the set is left of its turn.
    for (const key of KEYS) expect((await rival.inspect(key)).holders).toMatchObject([{ fencingToken: set.fencingTokens[key] }]);
    await set.release();
    for (const key of KEYS) expect(await rival.inspect(key)).toMatchObject({ holders: [], waiters: [] });
  });

  it("gives its turn back if another key is in its way by then", async () => {
    const { clock, locks, rival } = createHarness();
    const [first, second] = [await rival.acquire("A"), await rival.acquire("C")];
    const waiting = locks.acquireAll(KEYS);
    await clock.advance(1000);
    await first.release();
    await clock.advance(1000);
    const again = await rival.tryAcquire("A");
    expect(again?.isHeld()).toBe(true);
    await again?.release();
    await second.release();
    expect((await clock.settle(waiting)).isHeld()).toBe(true);
  });

  /** Lets a set keep its turn at B, while it waits for A, which blocked it before. */
  async function keepingATurn(options: SetOptions) {
    const { clock, locks, rival } = createHarness();
    const [first, second] = [await rival.acquire("A"), await rival.acquire("B")];
    const outcome = locks.acquireAll(["A", "B"], options).catch((error: unknown) => error);
    await clock.advance(1000);
    await first.release();
    await clock.advance(1000);
    await rival.acquire("A");
    await second.release();
    return { clock, outcome, isKept: async () => (await rival.tryAcquire("B")) === null };
  }

  it("gives the turns back that it keeps when its wait ends", async () => {
    const { clock, outcome, isKept } = await keepingATurn({ waitMs: 3500 });
    await clock.advance(1000);
    expect(await isKept()).toBe(true);
    expect(await clock.settle(outcome)).toMatchObject({ name: "LockTimeoutError" });
    expect(await isKept()).toBe(false);
  });

  it.each([
    [9000, 2000],
    [2000, 1000],
  ])("with a lease of %i ms keeps a turn for %i ms while it waits for another", async (leaseMs, keptMs) => {
    const { clock, outcome, isKept } = await keepingATurn({ leaseMs, waitMs: 8000 });
    await clock.advance(keptMs - 100);
    expect(await isKept()).toBe(true);
    await clock.advance(600);
    expect(await isKept()).toBe(false);
    expect(await clock.settle(outcome)).toMatchObject({ name: "LockTimeoutError" });
  });

  it.each([
    ["", ["A"], ["B"]],
    [", and lets those go on that wait for these keys while they hold another of the set", ["A", "B"], ["B"]],
  ])("gets its turn at keys that always have callers%s", async (_title, ...uses) => {
    const { clock, locks, rival } = createHarness();
    let isOver = false;
    const work = (): Promise<void> => new Promise((resolve) => void clock.after(50, resolve));
    const use = ([key = "", ...inner]: readonly string[]): Promise<void> =>
      rival.withLock(key, { waitMs: 10_000 }, () => (inner.length > 0 ? use(inner) : work()));
    const users = [...uses, ...uses].map(async (keys) => {
      while (!isOver) await use(keys);
    });
    await clock.advance(500);
    const set = await clock.settle(locks.acquireAll(["A", "B"], { waitMs: 20_000 }));
    isOver = true;
    await set.release();
    await clock.settle(Promise.all(users));
  });

  /** Regressions: sets that named a key twice, asked under a leaseId in use or waited for a reader's place got something other than they asked for. */
  it.each<[first: Mode | undefined, second: Mode]>([
    ["exclusive", "shared"],
    ["shared", "exclusive"],
    [undefined, "shared"],
  ])("that names a key as %s and as %s means the stronger", async (first, second) => {
    const { locks, rival } = createHarness();
    await locks.acquireAll([
      { key: "A", ...(first && { mode: first }) },
      { key: "A", mode: second },
    ]);
    expect((await rival.inspect("A")).holders).toMatchObject([{ mode: "exclusive" }]);
  });

  it.each([[["A", "C"]], [["A"]]])("under a leaseId that holds another set is refused: %j", async (keys) => {
    const { clock, rival, wire } = createHarness();
    const leaseId = leaseIdAt(clock.wallMs());
    const ask = (names: readonly string[]) => wire.api.acquireSet({ leaseId, locks: names.map((key) => ({ key })) });
    expect(await ask(["A", "B"])).toMatchObject({ ok: true });
    expect(await ask(keys)).toMatchObject({ code: "lease-reused" });
    expect((await rival.inspect("C")).holders).toEqual([]);
  });

  it("waits for a reader's place beside readers no longer than the writer is in its way", async () => {
    const { clock, locks, rival } = createHarness();
    const writer = await rival.acquire("A");
    const waiting = locks.acquireAll([{ key: "A", mode: "shared" }, "B"], { waitMs: 10_000 });
    await clock.advance(500);
    await writer.downgrade();
    expect((await clock.settle(waiting)).isHeld()).toBe(true);
  });

  it("says what else than held it was refused for", async () => {
    const { locks, rival, wire } = createHarness();
    wire.next("acquireSet", { instead: refuse("key-full") });
    await expect(locks.tryAcquireAll(KEYS)).rejects.toMatchObject({ code: "key-full" });
    await rival.acquire("B", { limit: 2 });
    await expect(locks.tryAcquireAll(KEYS)).rejects.toMatchObject({ name: "LockError", code: "limit-mismatch" });
    await expect(locks.acquireAll(KEYS)).rejects.toMatchObject({ code: "limit-mismatch" });
    await locks.close();
    await expect(locks.tryAcquireAll(KEYS)).rejects.toMatchObject({ code: "closed" });
  });
});

describe("a set that is held", () => {
  it("is unknown while its renewals are not answered, and lost at its deadline, not before", async () => {
    const { clock, locks, wire } = createHarness();
    const set = await locks.acquireAll(KEYS, OPTIONS);
    wire.always("renewSet", { lost: "request" });
    await clock.advance(EVERY_MS + 1);
    expect([set.state, set.isHeld()]).toEqual(["unknown", true]);
    await clock.advance(set.remainingMs() - 1);
    expect([set.state, set.signal.aborted]).toEqual(["unknown", false]);
    await clock.advance(1);
    expect([set.state, set.signal.aborted]).toEqual(["lost", true]);
    expect(set.signal.reason).toMatchObject({ name: "LockLostError", reason: "deadline" });
  });

  it("is lost at the next heartbeat after one key was broken", async () => {
    const { clock, locks, rival, events } = createHarness();
    const set = await locks.acquireAll(KEYS, OPTIONS);
    await rival.forceRelease("B", { reason: "test", fencingToken: set.fencingTokens["B"]! });
    await clock.advance(EVERY_MS - 1);
    expect(set.isHeld()).toBe(true);
    await clock.advance(1);
    expect([set.isHeld(), set.signal.aborted]).toEqual([false, true]);
    expect(() => set.assertHeld()).toThrow(LockLostError);
    expect(set.signal.reason).toMatchObject({ reason: "broken" });
    expect(events.map(({ type }) => type)).toEqual(["acquired", "lost"]);
  });

  it("asks whether it is still held before it claims anything after a thaw", async () => {
    const { clock, locks, wire } = createHarness();
    const set = await locks.acquireAll(KEYS, { leaseMs: 60_000 });
    await set.renew({ leaseMs: 600_000 });
    wire.next("renewSet", { instead: refuse("lease-lost", { lost: ["A"] }) });
    await clock.freeze(70_000);
    expect(set.isHeld()).toBe(false);
    expect(wire.of("renewSet")).toHaveLength(2);
  });

  it("is given back, every key of it, when its maxHoldMs is over", async () => {
    const { clock, locks, rival } = createHarness();
    const set = await locks.acquireAll(KEYS, { ...OPTIONS, maxHoldMs: 20_000 });
    await clock.advance(20_000);
    expect(set.signal.reason).toMatchObject({ reason: "max-hold" });
    const again = await rival.tryAcquireAll(KEYS);
    expect(again?.isHeld()).toBe(true);
  });

  it("does not beat when it was told not to", async () => {
    const { clock, locks, wire } = createHarness();
    const set = await locks.acquireAll(KEYS, { ...OPTIONS, heartbeat: false });
    await clock.advance(LEASE_MS);
    expect([set.state, wire.of("renewSet").length]).toEqual(["lost", 0]);
  });
});

describe("a release of a set", () => {
  it("whose answer was lost is sent again: each key's state is true", async () => {
    const { clock, locks, wire } = createHarness();
    const set = await locks.acquireAll(KEYS, OPTIONS);
    wire.next("releaseSet", { lost: "reply" });
    expect(await clock.settle(set.release())).toEqual({ A: "released", B: "released", C: "released" });
    expect(set.state).toBe("released");
  });

  it("ends belief before it is sent", async () => {
    const { locks, wire } = createHarness();
    const set = await locks.acquireAll(KEYS, OPTIONS);
    let believed: boolean | undefined;
    wire.onSend = ({ operation }) => {
      if (operation === "releaseSet") believed = set.isHeld() || !set.signal.aborted;
    };
    await set.release();
    expect(believed).toBe(false);
  });
});

describe("a set that waited in vain for a key that is held", () => {
  it.each([500, 1500, 20_000])(
    "for %d ms is told of a time-out, and not of an outage: whenUnavailable must not let it proceed",
    async (waitMs) => {
      const { clock, locks, rival } = createHarness();
      await rival.acquire(KEYS[1]!);
      const failed = clock.settle(locks.acquireAll(KEYS, { waitMs }).catch((error: unknown) => error));
      expect(await failed).toMatchObject({ name: "LockTimeoutError", holders: [{ owner: "rival" }], waitedMs: waitMs });
      const proceeding = locked({ locks, key: () => KEYS, waitMs, whenUnavailable: "proceed" }, () => expect.unreachable("it is held"));
      await expect(clock.settle(proceeding())).rejects.toMatchObject({ name: "LockTimeoutError" });
    },
  );

  it("control: one that nobody answers is told of an outage", async () => {
    const { clock, locks, wire, rival } = createHarness();
    await rival.acquire(KEYS[1]!);
    const asked = locks.acquireAll(KEYS, { waitMs: 5000 }).catch((error: unknown) => error);
    await clock.advance(1000);
    for (const operation of ["acquire", "check", "acquireSet", "inspect", "release", "releaseSet"] as const)
      wire.always(operation, { lost: "request", silently: true });
    expect(await clock.settle(asked)).toMatchObject({ name: "LockUnavailableError" });
  });
});
