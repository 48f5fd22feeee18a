/**
 * What a client must bound or keep to itself. Once, an acquire that asks once waited for as long as its
 * lease for a service that never answered; an error quoted the URL, and with it the leaseId that proves
 * the hold; a listener that threw left the key held; and an oversized meta was sent by a renewal.
 */
import { describe, expect, it } from "vitest";
import { CANCEL_IN_INVOCATION_MS } from "../../lib/client/invocation.js";
import { LeaseIds } from "../../lib/client/acquire.js";
import { createClient } from "../../lib/client/client.js";
import { httpApi } from "../../lib/client/http-transport.js";
import { randomBytes } from "../../lib/client/world.js";
import { createLockClient as createHttpClient } from "../../lib/index.js";
import { createLockClient, InvalidRequestError, LockUnavailableError, VirtualClock } from "../../lib/testing.js";
import type { LockClient, Operation } from "../../lib/testing.js";
import { createRig } from "../client/rig.js";
import { LEASE_ID } from "../support/lease-ids.js";

const KEY = "ORDER_1231";
const HOUR_MS = 3_600_000;
/** The cancel of a try that nobody answered takes so long at most. */
const CANCEL_MS = 2000;

/** A rig whose service never answers from now on, and how long an acquire waits for it. */
function silence(rig = createRig()) {
  const { clock, wire } = rig;
  for (const operation of Object.keys(wire.api) as Operation[]) wire.always(operation, { lost: "request", silently: true });
  return async (ask: (locks: LockClient) => Promise<unknown>, locks: LockClient = rig.locks): Promise<number> => {
    const beganMs = clock.monotonicMs();
    const asked = expect(clock.settle(ask(locks), 2 * HOUR_MS)).rejects.toBeInstanceOf(LockUnavailableError);
    await asked;
    return clock.monotonicMs() - beganMs;
  };
}

describe("an acquire that asks once, of a service that never answers, gives up", () => {
  it.each([
    [1000, 1000],
    [6000, 6000],
    [30_000, 10_000],
    [HOUR_MS, 10_000],
  ])("with a lease of %d ms after %d ms, and its cancel", async (leaseMs, boundMs) => {
    const waitedMs = await silence()((locks) => locks.tryAcquire(KEY, { leaseMs }));
    expect(waitedMs).toBeLessThanOrEqual(boundMs + CANCEL_MS);
  });

  it("in an attach too, whatever the detached lease's length", async () => {
    const rig = createRig();
    const handle = await (await rig.rival.acquire(KEY)).detach({ leaseMs: HOUR_MS });
    const waitedMs = await silence(rig)((locks) => locks.attach(handle));
    expect(waitedMs).toBeLessThanOrEqual(10_000 + CANCEL_MS);
  });

  it.each([30_000, 8000, 4000])(
    "with %d ms left of an invocation: asks no more in its last second, and its cancel has left by then",
    async (leftMs) => {
      const rig = createRig();
      const handle = await (await rig.rival.acquire("handed")).detach({ leaseMs: HOUR_MS });
      const waits = silence(rig);
      for (const ask of [(locks: LockClient) => locks.tryAcquire(KEY), (locks: LockClient) => locks.attach(handle)]) {
        const beganMs = rig.clock.monotonicMs();
        const [before, boundMs] = [rig.wire.sent.length, Math.min(10_000, leftMs - 1000)];
        const view = rig.locks.forInvocation({ getRemainingTimeInMillis: () => beganMs + leftMs - rig.clock.monotonicMs() });
        expect(await waits(ask, view)).toBeLessThanOrEqual(boundMs + CANCEL_IN_INVOCATION_MS);
        const sent = rig.wire.sent.slice(before);
        const cancelled = sent.find(({ operation }) => operation === "release");
        expect((cancelled?.atMs ?? Number.POSITIVE_INFINITY) - beganMs).toBeLessThanOrEqual(boundMs);
        for (const { operation, atMs } of sent) if (operation !== "release") expect(atMs - beganMs).toBeLessThan(boundMs);
      }
    },
  );
});

describe("a leaseId", () => {
  it.each(["https://user@api.example.com", "https://user:s3cret@api.example.com/prod", "https://:s3cret@api.example.com"])(
    "is safe from fetch's refusal of %s: the client refuses it first",
    (url) => {
      expect(() => createHttpClient({ url })).toThrow(InvalidRequestError);
      expect(() => createHttpClient({ url })).toThrow(
        expect.not.objectContaining({ message: expect.stringContaining("s3cret") as string }),
      );
    },
  );

  it("is in no error that the client throws or tells of, though fetch's message quotes the URL", async () => {
    const clock = new VirtualClock();
    const quoting = ((url: string) => Promise.reject(new TypeError(`Failed to parse URL from ${url}`))) as unknown as typeof fetch;
    const api = httpApi({ url: "https://api.example.com", fetch: quoting });
    const locks = createClient({ api, clock, random: () => 0.5, ids: new LeaseIds(clock, randomBytes) });
    const errors = [
      await clock.settle(locks.tryAcquire(KEY).catch((error: unknown) => error)),
      await clock.settle(locks.acquire(KEY, { waitMs: 1000 }).catch((error: unknown) => error)),
    ];
    for (const error of errors) {
      expect(error).toBeInstanceOf(LockUnavailableError);
      for (let at: unknown = error; at instanceof Error; at = at.cause) expect(at.message).not.toMatch(new RegExp(LEASE_ID.source, "i"));
    }
  });
});

describe("a listener that throws", () => {
  it.each(["acquired", "released"])("at %s stops nothing: the key is free afterwards", async (type) => {
    const locks = createLockClient({
      onEvent: (event) => {
        if (event.type === type) throw new Error("the metrics are down");
      },
    });
    const lease = await locks.acquire(KEY);
    expect(await lease.release()).toBe("released");
    expect((await locks.inspect(KEY)).holders).toEqual([]);
    expect(await locks.withLock(KEY, () => "done")).toBe("done");
    expect((await locks.inspect(KEY)).holders).toEqual([]);
  });

  it("at the loss of a lease ends neither its signal nor the process", async () => {
    const locks = createLockClient({
      onEvent: (event) => {
        if (event.type === "lost") throw new Error("the metrics are down");
      },
    });
    const lease = await locks.acquire(KEY, { leaseMs: 1000, heartbeat: false });
    await locks.clock.advance(1000);
    expect(lease.signal.reason).toMatchObject({ reason: "deadline" });
  });
});

describe("a renewal", () => {
  it.each([
    ["too large", { note: "x".repeat(1024) }],
    ["no object", ["a"] as unknown as Record<string, unknown>],
  ])("with a meta that is %s is refused before anything is sent", async (_what, meta) => {
    const { locks, wire } = createRig();
    const lease = await locks.acquire(KEY);
    await expect(lease.renew({ meta })).rejects.toMatchObject({ name: "InvalidRequestError", field: "meta" });
    expect(wire.of("renew")).toEqual([]);
    expect(lease.state).toBe("held");
    const inMemory = await createLockClient().acquire(KEY);
    await expect(inMemory.renew({ meta })).rejects.toBeInstanceOf(InvalidRequestError);
    await lease.renew({ meta: { note: "x".repeat(900) } });
  });
});
