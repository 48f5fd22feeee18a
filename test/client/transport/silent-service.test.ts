/**
 * Bounds and secrets of the client's calls. Regressions: an acquire without waiting waited up to its lease's length for a service that never
 * answered; and an error quoted the URL, and with it the leaseId that proves the hold.
 */
import { describe, expect, it } from "vitest";
import { createClient } from "../../../lib/client/client.js";
import { systemRuntime } from "../../../lib/client/runtime.js";
import { httpApi } from "../../../lib/client/wire/http.js";
import { LIMITS } from "../../../lib/core/limits.js";
import { idempotencyHandler, lockHandler } from "../../../lib/middy.js";
import { type Lease, type LockClient, type LockError, type Operation, LockUnavailableError, VirtualClock } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";
import { LEASE_ID } from "../../support/lease-ids.js";

const KEY = "ORDER_1231";
const HOUR_MS = 3_600_000;
/** The time within which an acquire without waiting settles. Its cancel delays nobody during an outage. */
const ASK_ONCE_MS = 3000;
/** The longest time for which the cancel of an attempt without a response is retried. Closing a client waits for it. */
const CANCEL_MS = 2000;

/** A harness whose service never answers from now on, and the time after which an acquire fails with this error. */
function silence(harness = createHarness()) {
  const { clock, wire } = harness;
  for (const operation of Object.keys(wire.api) as Operation[]) wire.always(operation, { lost: "request", silently: true });
  return async (ask: (locks: LockClient) => Promise<unknown>, locks: LockClient = harness.locks): Promise<number> => {
    const beganMs = clock.monotonicMs();
    const code = await clock.settle(ask(locks), 2 * HOUR_MS).then(
      () => "granted",
      (error: unknown) => (error as LockError).code,
    );
    // A view of an invocation ends by the invocation's time, and says so: whose time ran out meets no outage (decision 057).
    expect(["unavailable", ...(locks === harness.locks ? [] : ["invocation-ends"])]).toContain(code);
    return clock.monotonicMs() - beganMs;
  };
}

describe("an acquire that asks once, of a service that never answers, gives up", () => {
  it.each([
    [1000, 1000],
    [6000, ASK_ONCE_MS],
    [30_000, ASK_ONCE_MS],
    [HOUR_MS, ASK_ONCE_MS],
  ])("with a lease of %d ms after %d ms, and closing waits for its cancel", async (leaseMs, boundMs) => {
    const harness = createHarness();
    const waits = silence(harness);
    expect(await waits((locks) => locks.tryAcquire(KEY, { leaseMs }))).toBeLessThanOrEqual(boundMs);
    const asked = harness.wire.of("acquire")[0]?.request.leaseId;
    expect(harness.wire.of("release").map(({ request }) => request.leaseId)).toContain(asked);
    const beganMs = harness.clock.monotonicMs();
    await harness.clock.settle(harness.locks.close());
    expect(harness.clock.monotonicMs() - beganMs).toBeLessThanOrEqual(CANCEL_MS);
    const sent = harness.wire.sent.length;
    await harness.clock.advance(HOUR_MS);
    expect(harness.wire.sent).toHaveLength(sent);
  });

  it("as one of a set does, and one with waitMs 0", async () => {
    for (const ask of [
      (locks: LockClient) => locks.tryAcquireAll(["a", "b"]),
      (locks: LockClient) => locks.acquireAll(["a", "b"], { waitMs: 0 }),
      (locks: LockClient) => locks.acquire(KEY, { waitMs: 0 }),
      (locks: LockClient) => locks.runOnce(KEY, { waitMs: 0 }, () => expect.unreachable("never started")),
    ])
      expect(await silence()(ask)).toBeLessThanOrEqual(ASK_ONCE_MS);
  });

  it("in an attach too, whatever the detached lease's length", async () => {
    const harness = createHarness();
    const handle = await (await harness.rival.acquire(KEY)).detach({ leaseMs: HOUR_MS });
    const waitedMs = await silence(harness)((locks) => locks.attach(handle));
    expect(waitedMs).toBeLessThanOrEqual(10_000);
  });

  it.each([30_000, 8000, 4000])(
    "with %d ms left of an invocation: settles before its last second, when its cancel has left",
    async (leftMs) => {
      const harness = createHarness();
      const handle = await (await harness.rival.acquire("handed")).detach({ leaseMs: HOUR_MS });
      const waits = silence(harness);
      for (const ask of [(locks: LockClient) => locks.tryAcquire(KEY), (locks: LockClient) => locks.attach(handle)]) {
        const beganMs = harness.clock.monotonicMs();
        const [before, boundMs] = [harness.wire.sent.length, Math.min(10_000, leftMs - 1000)];
        const view = harness.locks.forInvocation({ getRemainingTimeInMillis: () => beganMs + leftMs - harness.clock.monotonicMs() });
        expect(await waits(ask, view)).toBeLessThanOrEqual(boundMs);
        const sent = harness.wire.sent.slice(before);
        const cancelled = sent.find(({ operation }) => operation === "release");
        expect((cancelled?.atMs ?? Number.POSITIVE_INFINITY) - beganMs).toBeLessThanOrEqual(boundMs);
        for (const { operation, atMs } of sent) if (operation !== "release") expect(atMs - beganMs).toBeLessThan(boundMs);
      }
    },
  );
});

describe("a wait for a service that never answers ends when its time does", () => {
  const WAITS: readonly (readonly [string, (locks: LockClient, waitMs: number) => Promise<unknown>])[] = [
    ["acquire", (locks, waitMs) => locks.acquire(KEY, { waitMs })],
    ["acquire of a reader", (locks, waitMs) => locks.acquire(KEY, { waitMs, mode: "shared" })],
    ["acquireAll", (locks, waitMs) => locks.acquireAll(["a", "b"], { waitMs })],
    ["runOnce", (locks, waitMs) => locks.runOnce(KEY, { waitMs }, () => "done")],
  ];

  it.each(WAITS.flatMap(([name, ask]) => [500, 2000, 20_000].map((waitMs) => [name, waitMs, ask] as const)))(
    "%s, within %d ms",
    async (_name, waitMs, ask) => {
      const waitedMs = await silence()((locks) => ask(locks, waitMs));
      expect(waitedMs).toBeLessThanOrEqual(waitMs);
      expect(waitedMs).toBeGreaterThanOrEqual(Math.min(waitMs, 500) - 1);
    },
  );

  it.each(WAITS)("%s, and one that is shorter gives the first request half a second all the same", async (_name, ask) => {
    expect(await silence()((locks) => ask(locks, 20))).toBe(500);
    // A free key is granted even if the response takes longer than the wait.
    const { clock, wire, locks } = createHarness();
    for (const operation of ["acquire", "acquireSet", "start"] as const) wire.always(operation, { replyMs: 300 });
    await clock.settle(ask(locks, 20));
  });

  it.each([500, 2000, 20_000])("upgrade, within %d ms", async (waitMs) => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, { mode: "shared", leaseMs: 60_000 });
    expect(await silence(harness)(() => lease.upgrade({ waitMs }))).toBeLessThanOrEqual(waitMs);
    expect(lease.isHeld()).toBe(true);
  });

  it.each(WAITS)("%s, and begun when the key was held", async (_name, ask) => {
    const harness = createHarness();
    await harness.rival.acquireAll([KEY, "a"]);
    void harness.rival.runOnce(KEY, () => new Promise(() => undefined));
    await harness.clock.advance(0);
    const beganMs = harness.clock.monotonicMs();
    // Longer than the service may hold two requests of a run: until then nobody can tell that it is silent.
    const waitMs = 2 * LIMITS.serverWaitMs + 2000;
    const asked = ask(harness.locks, waitMs).catch((error: unknown) => error);
    await harness.clock.advance(1000);
    silence(harness);
    expect(await harness.clock.settle(asked)).toBeInstanceOf(LockUnavailableError);
    expect(harness.clock.monotonicMs() - beganMs).toBe(waitMs);
  });

  it.each(WAITS)("%s, and a second before its invocation does", async (_name, ask) => {
    for (const leftMs of [3000, 1800, 1200, 600, 100]) {
      const harness = createHarness();
      const endsMs = harness.clock.monotonicMs() + leftMs;
      const view = harness.locks.forInvocation({ getRemainingTimeInMillis: () => endsMs - harness.clock.monotonicMs() });
      const waitedMs = await silence(harness)((locks) => ask(locks, 30_000), view);
      expect(waitedMs).toBeLessThanOrEqual(leftMs >= 1500 ? leftMs - 1000 : Math.min(500, leftMs - 50));
      await harness.clock.settle(view.close());
      expect(harness.clock.monotonicMs()).toBeLessThan(endsMs);
    }
  });
});

describe("every call in an invocation settles before it ends, of a service that stops to answer", () => {
  const CALLS: readonly (readonly [string, (locks: LockClient, lease: Lease) => Promise<unknown>])[] = [
    ["inspect", (locks) => locks.inspect(KEY)],
    ["list", (locks) => locks.list()],
    ["runs.get", (locks) => locks.runs.get(KEY)],
    ["attach", async (locks, lease) => locks.attach(await lease.detach())],
    ["renew", (_locks, lease) => lease.renew()],
    ["upgrade", (_locks, lease) => lease.upgrade()],
    ["downgrade", (_locks, lease) => lease.downgrade()],
    ["release", (_locks, lease) => lease.release()],
    ["detach", (_locks, lease) => lease.detach()],
    ["close", (locks) => locks.close()],
    ["withLock", (locks) => locks.withLock("another", () => 1)],
    ["elect", (locks) => locks.elect("another", () => undefined)],
  ];

  it.each([6000, 3000, 1500])("a wrapped handler, with %d ms left: the 503 is answered in time", async (leftMs) => {
    const unanswered = async (): Promise<never> => expect.unreachable("nobody answered");
    for (const wrap of [
      (locks: LockClient) => idempotencyHandler({ locks, service: "shop", caller: "none", key: () => KEY }, unanswered),
      (locks: LockClient) => lockHandler({ locks, key: () => KEY }, unanswered),
    ]) {
      const harness = createHarness();
      const endsMs = harness.clock.monotonicMs() + leftMs;
      silence(harness);
      const handler = wrap(harness.locks);
      const context = { getRemainingTimeInMillis: () => endsMs - harness.clock.monotonicMs() };
      const answer = await harness.clock.settle(handler({ headers: {}, httpMethod: "POST" }, context));
      expect(answer).toMatchObject({ statusCode: 503 });
      expect(harness.clock.monotonicMs()).toBeLessThanOrEqual(endsMs - Math.min(1000, leftMs / 2));
    }
  });

  it.each(CALLS)("%s", async (_name, ask) => {
    for (const leftMs of [3000, 900, 300]) {
      const harness = createHarness();
      const endsMs = harness.clock.monotonicMs() + leftMs + 600;
      const view = harness.locks.forInvocation({ getRemainingTimeInMillis: () => endsMs - harness.clock.monotonicMs() });
      const lease = await view.acquire("held", { mode: "shared" });
      await harness.clock.advance(600);
      silence(harness);
      await harness.clock.settle(ask(view, lease).catch(() => undefined));
      expect(harness.clock.monotonicMs()).toBeLessThan(endsMs);
    }
  });
});

it("a leaseId is in no error that the client throws, though fetch's message quotes the URL", async () => {
  const clock = new VirtualClock();
  const quoting = ((url: string) =>
    Promise.reject(new TypeError(`Failed to parse URL from ${url} at ${new URL(url).pathname}`))) as unknown as typeof fetch;
  const locks = createClient(systemRuntime(httpApi({ url: "https://api.example.com", fetch: quoting }), clock));
  for (const ask of [() => locks.tryAcquire(KEY), () => locks.acquire(KEY, { waitMs: 1000 })]) {
    const error: unknown = await clock.settle(ask().catch((thrown: unknown) => thrown));
    expect(error).toMatchObject({ code: "not-configured" });
    for (let at: unknown = error; at instanceof Error; at = at.cause) expect(at.message).not.toMatch(new RegExp(LEASE_ID.source, "i"));
  }
});
