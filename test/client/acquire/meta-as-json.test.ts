/** A meta goes through JSON once. Regression: one that JSON changes made an acquire ask for ever, on a free key. */
import { describe, expect, it } from "vitest";
import { LockTimeoutError } from "../../../lib/client/wire/errors.js";
import type { LockClient } from "../../../lib/index.js";
import { refuseLocally } from "../../../lib/core/errors.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { createHarness } from "../harness.js";

const AT = new Date(0);
const JSON_OF_AT = "1970-01-01T00:00:00.000Z";
const ENOUGH = 30;

/** A harness whose wire carries JSON, as HTTP does. It breaks after {@link ENOUGH} requests: a call that asks for ever fails. */
function overJson(change: (operation: string, answer: unknown) => unknown = (_operation, answer) => answer) {
  const harness = createHarness();
  const { api } = harness.wire;
  const viaJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  let sent = 0;
  for (const [operation, carryOut] of Object.entries(api) as [keyof ServiceApi, (...asked: readonly unknown[]) => Promise<unknown>][])
    Object.assign(api, {
      [operation]: async (request: unknown, options: unknown) => {
        if (++sent > ENOUGH) throw new Error(`${sent} requests`);
        return change(operation, viaJson(await carryOut(viaJson(request), options)));
      },
    });
  return { ...harness, asked: () => harness.wire.sent.map(({ operation }) => operation) };
}

const CALLS: readonly (readonly [name: string, call: (locks: LockClient) => Promise<unknown>])[] = [
  ["acquire", async (locks) => (await locks.acquire("k", { meta: { at: AT } })).release()],
  ["withLock", (locks) => locks.withLock("k", { meta: { at: AT, of: { toJSON: () => "order" } } }, () => 1)],
  ["tryAcquire", async (locks) => (await locks.tryAcquire("k", { meta: { at: AT } }))?.release()],
];

describe("a meta that JSON changes", () => {
  it.each(CALLS)("takes one request of %s, and one of its release", async (_name, call) => {
    const { locks, clock, asked } = overJson();
    await clock.settle(call(locks));
    expect(asked()).toEqual(["acquire", "release"]);
  });

  it("is what JSON makes of it at the time of the call, in every request of the acquire", async () => {
    const { locks, clock, wire, rival } = overJson();
    const before = await rival.acquire("k");
    const meta = { at: AT, steps: [1] };
    const waiting = locks.acquire("k", { meta });
    meta.steps.push(2);
    await clock.advance(300);
    await clock.settle(before.release());
    const lease = await clock.settle(waiting);
    const asked = wire.of("acquire").map(({ request }) => (request as { readonly meta?: unknown }).meta);
    expect(asked.length).toBeGreaterThan(1);
    expect(new Set(asked.map((one) => JSON.stringify(one)))).toEqual(new Set([JSON.stringify({ at: JSON_OF_AT, steps: [1] })]));
    await clock.settle(lease.renew({ meta: { at: AT } }));
    expect(wire.of("renew")[0]?.request).toMatchObject({ meta: { at: JSON_OF_AT } });
  });
});

describe("a service that doesn't say back what it was asked", () => {
  const forgetful = (operation: string, answer: unknown): unknown => {
    const { lease } = answer as { readonly lease?: object };
    return lease && operation !== "release" ? { ...(answer as object), lease: { ...lease, meta: { other: true }, owner: "x" } } : answer;
  };

  it("grants with one request: a grant fits whoever it was asked for", async () => {
    const { locks, clock, asked } = overJson(forgetful);
    const lease = await clock.settle(locks.acquire("k", { meta: { step: 1 }, owner: "a" }));
    expect([lease.isHeld(), asked()]).toEqual([true, ["acquire"]]);
  });
});

describe("a wait whose every grant is spoilt", () => {
  const ROUNDS = 200;

  it("ends when its time is over, however fast the service answers", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("acquire", { replyMs: 20 });
    wire.always("renew", { instead: refuseLocally("lease-lost", { reason: "never" }) });
    const stops = Array.from({ length: ROUNDS }, () => new AbortController());
    const callers = [...stops];
    // The caller for whom each grant was asked leaves before it comes, and it can't be renewed for the next one.
    wire.onSend = ({ operation }) => {
      if (operation === "acquire") clock.after(10, () => stops.shift()?.abort());
    };
    callers.forEach(({ signal }, caller) => {
      void locks.acquire("k", { meta: { caller }, signal, waitMs: 60_000 }).catch(() => undefined);
    });
    const began = clock.monotonicMs();
    const ended = await clock.settle(locks.acquire("k", { waitMs: 1000 }).catch((error: unknown) => error));
    expect(stops.length).toBeLessThan(ROUNDS);
    expect(ended).toBeInstanceOf(LockTimeoutError);
    expect(clock.monotonicMs() - began).toBeLessThanOrEqual(1000 + 20);
  });
});
