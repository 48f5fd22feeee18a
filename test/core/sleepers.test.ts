/** Waiters that sleep: they are never granted the key by their own request, they are not expected to poll, and an agent's poll claims. */
import { describe, expect, it } from "vitest";
import { inspection } from "../../lib/core/lock/views.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { recordBytes, waitersBytes } from "../../lib/core/record-bytes.js";
import { toSecondsUp } from "../../lib/core/time.js";
import { LEASE_MS, POLICY, START_MS } from "../store/fixture.js";
import { IN_S, permits, READER } from "./kinds-key.js";
import { QueueKey, queueOf } from "./queue-key.js";

/** Shorter than the time for which an id stays valid. */
const SLEEP_MS = 600_000;
const { wakeWindowMs: WAKE_MS, offerWindowMs: OFFER_MS, waiterTtlMs: TTL_MS } = DEFAULTS;
const SLEEPS = { wait: true, sleepMs: SLEEP_MS } as const;

/** A key that A holds for two hours, and that these wait for asleep. */
function sleepersOf(letters: string): QueueKey {
  const key = new QueueKey();
  key.acquire("A", { leaseMs: 2 * SLEEP_MS });
  for (const letter of letters) key.acquire(letter, SLEEPS);
  return key;
}

describe("a request to sleep", () => {
  it("queues behind a holder, with its place and without a time to poll", () => {
    const key = sleepersOf("B");
    expect(key.acquire("C", SLEEPS)).toMatchObject({ ok: true, state: "waiting", asleep: true, position: 2 });
    expect(key.events).toBe("C queued");
    expect(key.waiter("C")).toMatchObject({ asleep: true, ttlMs: 0, aliveUntilMs: START_MS + SLEEP_MS });
  });

  it("is offered a free key in the same write, and never granted it, however often it is sent", () => {
    const key = new QueueKey();
    expect(key.acquire("A", SLEEPS)).toMatchObject({ state: "waiting", asleep: true, position: 1 });
    expect([key.all, key.events]).toEqual(["Ax?", "A offered, A queued"]);
    const { record } = key;
    expect(key.acquire("A", SLEEPS)).toMatchObject({ state: "waiting", asleep: true, position: 1 });
    expect(key.record).toBe(record);
    expect(key.decision?.events).toEqual([]);
  });

  it("leaves a record that outlives the sleep", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.acquire("B", { wait: true, sleepMs: 90 * 24 * SLEEP_MS });
    expect(key.record?.ttlAtSec).toBe(toSecondsUp(START_MS + 90 * 24 * SLEEP_MS + POLICY.retentionMs));
  });

  it("waits although a lease of its own scope holds: only a poll nests in it", () => {
    const key = new QueueKey();
    key.acquire("A", IN_S);
    expect(key.acquire("B", { ...IN_S, ...SLEEPS })).toMatchObject({ state: "waiting", asleep: true });
    expect(key.ask("B", IN_S)).toMatchObject({ how: "granted", lease: { holdCount: 2 } });
  });

  it.each([
    ["by another principal", { principal: "Q" }, "forbidden"],
    ["with other parameters", { requestHash: "other" }, "lease-reused"],
  ] as const)("is refused %s", (_how, options, code) => {
    expect(sleepersOf("B").acquire("B", { ...SLEEPS, ...options })).toMatchObject({ code });
  });

  it("is refused by an id that waits by polling, which would lose its place asleep", () => {
    const detail = expect.stringMatching(/^This leaseId waits for the key by polling: /) as string;
    expect(queueOf("B").acquire("B", SLEEPS)).toMatchObject({ code: "lease-reused", detail });
    const conditions = new QueueKey();
    conditions.acquire("A");
    conditions.wait("A", "B");
    expect(conditions.acquire("B", SLEEPS)).toMatchObject({ code: "lease-reused" });
  });

  it("takes more bytes than a poller, which the record's bound counts", () => {
    const [asleep, awake] = [sleepersOf("B"), queueOf("B")];
    expect(recordBytes(asleep.record!) - recordBytes(awake.record!)).toBe(12);
    expect(waitersBytes([asleep.waiter("B")]) - waitersBytes([awake.waiter("B")])).toBe(8);
  });
});

describe("a waiter that sleeps", () => {
  it("keeps its place until its own deadline, by the earlier clock, and no longer", () => {
    const key = sleepersOf("B").at(SLEEP_MS - 1, 9_000);
    key.ask("C");
    expect(key.all).toBe("Ax Bx… Cx…");
    key.at(SLEEP_MS).ask("D");
    expect(key.all).toBe("Ax Cx… Dx…");
  });

  it("sends no keep-alive and is lengthened by no poll, past its deadline too", () => {
    const key = sleepersOf("B");
    const { record } = key;
    for (const [ms, aheadMs] of [[0], [SLEEP_MS - 1], [SLEEP_MS - 1, 9_000]] as const) {
      expect(key.at(ms, aheadMs).ask("B")).toMatchObject({ state: "waiting" });
      expect(key.decision).not.toHaveProperty("touch");
      expect(key.record).toBe(record);
    }
  });

  it("is lengthened by no move that its poll makes either", () => {
    const key = queueOf("CD");
    key.acquire("B", SLEEPS);
    const asleep = key.waiter("B");
    key.at(1).release("A");
    key.at(1 + LIMITS.keepAliveAfterMs).ask("D");
    key.at(1 + OFFER_MS).ask("B");
    expect([key.all, key.events]).toEqual(["Dx? Bx…", "C skipped, D offered"]);
    expect(key.waiter("B")).toEqual(asleep);
  });

  it("isn't skipped for an offer that lapsed, although nothing was heard of it", () => {
    const key = queueOf("B");
    key.acquire("C", SLEEPS);
    key.at(1).release("A");
    key.at(1 + OFFER_MS).ask("D");
    expect([key.all, key.events]).toEqual(["Cx? Dx…", "B skipped, C offered, D queued"]);
  });

  it("is offered the key by a release, from then for as long as an agent may take", () => {
    const key = sleepersOf("B").at(5);
    key.ask("C");
    key.release("A");
    expect(key.all).toBe("Bx? Cx…");
    expect(key.record?.offers[0]).toMatchObject({ asleep: true, offeredAtMs: START_MS + 5 });
    expect(key.at(5 + WAKE_MS - 1, 9_000).ask("D")).toMatchObject({ state: "waiting" });
    expect(key.all).toContain("Bx?");
    key.at(5 + WAKE_MS).ask("D");
    expect(key.all).toBe("Dx");
  });

  it("has the key reserved that long, as a refusal says", () => {
    const key = sleepersOf("B");
    key.release("A");
    expect(key.at(1).acquire("C")).toMatchObject({ code: "locked", retryAfterMs: WAKE_MS - 1 });
  });

  it("is claimed for by a poll without a wait, whose lease begins then", () => {
    const key = sleepersOf("B").at(5);
    key.release("A");
    expect(key.at(60_000).acquire("B")).toMatchObject({ how: "granted", lease: { remainingMs: LEASE_MS } });
    expect(key.all).toBe("Bx");
  });

  it("is claimed for when nobody noticed that the holder's lease ran out", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.acquire("B", SLEEPS);
    expect(key.at(LEASE_MS).acquire("B")).toMatchObject({ state: "waiting" });
    expect(key.at(LEASE_MS + POLICY.marginMs(LEASE_MS)).acquire("B")).toMatchObject({ how: "granted" });
  });

  it("is offered permits and a share as a poller is, and its claim doesn't commute", () => {
    for (const kind of [permits(1), READER]) {
      const key = new QueueKey();
      key.acquire("A", kind);
      key.acquire("B", { ...SLEEPS, ...kind });
      expect(key.all).toMatch(/^A\S+ B\S+\?$/);
      expect(key.acquire("B", kind)).toMatchObject({ how: "granted" });
      expect(key.decision).not.toHaveProperty("commutes");
    }
  });

  it("leaves by a release, and the next is offered the key", () => {
    const key = sleepersOf("BC");
    key.release("A");
    expect(key.release("B")).toMatchObject({ state: "never" });
    expect(key.all).toBe("Cx?");
  });

  it("is shown asleep, in the queue and with its offer", () => {
    const key = sleepersOf("BC");
    key.release("A");
    key.at(TTL_MS).ask("D");
    const { waiters } = inspection("k", key.record, key.reading);
    expect(waiters.map(({ offered, asleep }) => ({ offered, asleep }))).toEqual([
      { offered: true, asleep: true },
      { offered: undefined, asleep: true },
      { offered: undefined, asleep: undefined },
    ]);
  });
});
