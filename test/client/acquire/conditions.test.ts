/** Waits for a condition, beside what else the lease does. Regressions: such a wait held no key, lost a notify, or never ended. */
import { describe, expect, it } from "vitest";
import * as DEFAULTS from "../../../lib/core/request-defaults.js";
import { LockLostError, LockTimeoutError, LockUnavailableError } from "../../../lib/index.js";
import { type Harness, createHarness } from "../harness.js";
import { invocation } from "../../support/invocation.js";

const KEY = "STOCK_1";
const SCOPE = "the-scope-of-one-request";
/** Every operation of a client whose service is away. */
const ALL = ["acquire", "check", "release", "renew", "inspect"] as const;

/** Carries out once more the requests of `operation` that `locks` has sent, as a network may. */
async function repeat({ wire }: Harness, operation: "waitForCondition"): Promise<unknown> {
  const [sent] = wire.of(operation);
  return wire.api[operation](sent!.request as never);
}

describe("a wait that the service refuses", () => {
  it("is not carried out later, by a duplicate of its request, while its lease holds on", async () => {
    const harness = createHarness();
    const { clock, locks, rival } = harness;
    const inScope = locks.scope(SCOPE);
    const levels = [await inScope.acquire(KEY), await inScope.acquire(KEY)];
    await expect(clock.settle(levels[1]!.wait("filled"))).rejects.toMatchObject({ code: "not-exclusive" });
    await levels[0]!.release();
    await repeat(harness, "waitForCondition");
    expect([levels[1]!.isHeld(), await rival.tryAcquire(KEY)]).toEqual([true, null]);
  });

  it("leaves the lease held also if an earlier attempt got no response", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { mode: "shared" });
    wire.next("waitForCondition", { lost: "request" });
    await expect(clock.settle(lease.wait("filled"))).rejects.toMatchObject({ code: "not-exclusive" });
    expect(lease.isHeld()).toBe(true);
  });

  it("holds nothing if a duplicate of its request came before it was cancelled", async () => {
    const harness = createHarness();
    const { clock, locks, rival, wire } = harness;
    const inScope = locks.scope(SCOPE);
    const levels = [await inScope.acquire(KEY), await inScope.acquire(KEY)];
    wire.next("waitForCondition", { replyMs: 500 });
    const refused = levels[1]!.wait("filled");
    refused.catch(() => undefined);
    await clock.advance(100);
    await levels[0]!.release();
    await repeat(harness, "waitForCondition");
    await expect(clock.settle(refused)).rejects.toThrow();
    expect([levels[1]!.isHeld(), (await rival.tryAcquire(KEY))?.isHeld()]).toEqual([false, true]);
  });
});

describe("a change of mode whose answer comes during a wait", () => {
  it("doesn't end the lease, which the wait has freed itself", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    wire.next("changeMode", { requestMs: 50 });
    const downgraded = lease.downgrade();
    downgraded.catch(() => undefined);
    const waited = lease.wait("filled");
    await clock.advance(100);
    await expect(downgraded).rejects.toBeInstanceOf(LockLostError);
    expect(lease.state).toBe("waiting");
    await rival.withLock(KEY, (filling) => filling.notify("filled"));
    await clock.settle(waited);
    expect([lease.isHeld(), lease.mode]).toEqual([true, "exclusive"]);
  });
});

describe("a wait that has been notified", () => {
  it("is not lost to an outage that is over when it is cancelled", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    const waited = lease.wait("filled", { waitMs: 5000 });
    // Its first poll, before which the notify comes, gets the key, and no response says so until the wait is over.
    wire.always("acquire", { lost: "reply" });
    wire.onSend = ({ operation }) => void (operation === "release" && wire.always("acquire", undefined));
    await clock.advance(10);
    await rival.withLock(KEY, async (filling) => expect(await filling.notify("filled")).toBe(1));
    await clock.settle(waited);
    expect(lease.isHeld()).toBe(true);
  });

  it("ends before its invocation does", async () => {
    const { clock, locks, rival } = createHarness();
    const began = clock.monotonicMs();
    const lease = await locks.forInvocation(invocation(clock, 30_000)).acquire(KEY);
    const waited = lease.wait("filled");
    await clock.advance(1000);
    const filling = (await rival.tryAcquire(KEY))!;
    await filling.notify("filled");
    const outcome = await clock.settle(waited).catch((error: unknown) => error);
    expect(outcome).toBeInstanceOf(LockLostError);
    expect(clock.monotonicMs() - began).toBeLessThanOrEqual(29_500);
    expect((await rival.inspect(KEY)).waiters).toEqual([]);
  });

  it("gives up after its own time to take the key back, and its notify goes to the next", async () => {
    const { clock, locks, rival } = createHarness();
    const [first, second] = [await locks.acquire(KEY), locks.acquire(KEY, { waitMs: 60_000 })];
    const waited = first.wait("filled", { takeBackMs: 10_000 });
    const next = (await clock.settle(second)).wait("filled", { waitMs: 600_000 });
    await clock.advance(1000);
    const filling = (await rival.tryAcquire(KEY))!;
    expect(await filling.notify("filled")).toBe(1);
    await expect(clock.settle(waited)).rejects.toMatchObject({ name: "LockLostError", reason: "taken" });
    expect([first.state, first.signal.aborted]).toEqual(["lost", true]);
    await filling.release();
    await clock.settle(next);
  });

  it("takes the key back for 5 minutes unless it is told otherwise", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.acquire(KEY);
    const waited = lease.wait("filled", { waitMs: 1000 });
    await clock.advance(500);
    await rival.acquire(KEY);
    waited.catch(() => undefined);
    await clock.advance(DEFAULTS.takeBackMs);
    expect(lease.state).toBe("waiting");
    await clock.advance(1000);
    expect(lease.state).toBe("lost");
    await expect(waited).rejects.toMatchObject({ name: "LockLostError", reason: "taken" });
  });
});

describe("a wait that can't take the key back", () => {
  it("does not end as a timeout, after which the lease would be held", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.forInvocation(invocation(clock, 10_000)).acquire(KEY);
    const waited = lease.wait("filled");
    await clock.advance(500);
    await rival.acquire(KEY);
    const outcome = await clock.settle(waited).catch((error: unknown) => error);
    expect([outcome instanceof LockTimeoutError, lease.isHeld()]).toEqual([false, false]);
    expect(outcome).toBeInstanceOf(LockLostError);
  });

  it("is a loss that withLock reports, whatever the work does with the error", async () => {
    const { clock, locks, wire } = createHarness();
    const worked = locks.withLock(KEY, async (lease) => {
      wire.always("waitForCondition", { lost: "request" });
      await lease.wait("filled").catch(() => undefined);
    });
    await expect(clock.settle(worked)).rejects.toBeInstanceOf(LockLostError);
  });
});

describe("a wait that is aborted", () => {
  it("ends in an outage too, and holds nothing", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    const giveUp = new AbortController();
    const waited = lease.wait("filled", { waitMs: 3_600_000, signal: giveUp.signal });
    let outcome: unknown;
    waited.catch((error: unknown) => (outcome = error));
    await clock.advance(1000);
    for (const operation of ALL) wire.always(operation, { lost: "request" });
    giveUp.abort();
    await clock.advance(10_000);
    expect([outcome, lease.isHeld()]).toMatchObject([{ name: "AbortError" }, false]);
  });
});

describe("a wait beside other calls of its lease", () => {
  it("is not ended by a notify that it overtook", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    wire.next("notify", { requestMs: 500 });
    const notified = lease.notify("emptied");
    const waited = lease.wait("filled", { waitMs: 60_000 });
    await expect(clock.settle(notified)).rejects.toBeInstanceOf(LockLostError);
    await rival.withLock(KEY, async (filling) => expect(await filling.notify("filled")).toBe(1));
    await clock.settle(waited);
    expect(lease.isHeld()).toBe(true);
  });

  it("does not begin the lease's maxHoldMs anew if it is refused", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { mode: "shared", maxHoldMs: 10_000 });
    await clock.advance(8000);
    await expect(clock.settle(lease.wait("filled"))).rejects.toMatchObject({ code: "not-exclusive" });
    await clock.advance(2500);
    expect(lease.signal.reason).toMatchObject({ reason: "max-hold" });
  });

  it("asks for no longer lease than its invocation can need", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.forInvocation(invocation(clock, 60_000)).acquire(KEY);
    await clock.advance(50_000);
    await expect(clock.settle(lease.wait("filled", { waitMs: 1000 }))).rejects.toBeInstanceOf(LockTimeoutError);
    expect(wire.of("waitForCondition")[0]?.request).toMatchObject({ to: { leaseMs: 12_000 } });
    expect(wire.of("acquire").at(-1)!.request.leaseMs).toBeLessThanOrEqual(12_000);
  });
});

describe("a wait during an outage", () => {
  it("whose time is over takes the key back when the service answers, or fails in bounded time", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    const waited = lease.wait("filled", { waitMs: 1000, takeBackMs: 20_000 });
    await clock.advance(900);
    for (const operation of ALL) wire.always(operation, { lost: "request", silently: true });
    let outcome: unknown;
    waited.catch((error: unknown) => (outcome = error));
    await clock.advance(60_000);
    expect([outcome instanceof LockUnavailableError, lease.isHeld()]).toEqual([true, false]);
  });
});
