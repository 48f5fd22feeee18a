/**
 * Events that time alone causes, over HTTP: the expiry of the shortest leases, their margins, and the window of an
 * offer. All of them are started together and then waited for once.
 */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Calls, type Put, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** The shortest lease. */
const SHORT = { leaseMs: 1_000 };
/** Expires as reliably, and is long enough for a second request within it on a slow connection. */
const MEDIUM = { leaseMs: 3_000 };
const LONG = { leaseMs: 120_000 };
/**
 * After this time, a lease of three seconds has expired, its margin is over (1,007 ms later), and so is the window of
 * an offer (5 s). Each has an extra second for two clocks that differ.
 */
const OVER_MS = 6_200;

/** Leases, runs, reentrant holds and offers that expire. */
// Over 60 lines: a list of tests, each of which is short.
export function expires(
  { it, beforeAll }: Suite,
  { fixture, freshKey, get, post, put, queue, hold, release, start, begin, complete }: Calls,
): void {
  const scope = randomUUID();
  let plain: Put, taken: Put, permit: Put, reader: Put, outer: Put, inner: Put, late: Put, dead: Put, offered: Put, next: Put, full: Put;

  beforeAll(async () => {
    [plain, taken, reader] = [
      await hold(freshKey(), SHORT),
      await hold(freshKey(), SHORT),
      await hold(freshKey(), { ...SHORT, mode: "shared" }),
    ];
    permit = await hold(freshKey(), { ...SHORT, limit: 2 });
    full = await hold(permit.key, { ...LONG, limit: 2 });
    outer = await hold(freshKey(), { ...MEDIUM, scope });
    inner = await hold(outer.key, { ...LONG, scope });
    [late, dead] = [await begin(freshKey(), SHORT), await begin(freshKey(), MEDIUM)];
    await post(`${dead.url}/renew`, { checkpoint: { page: 7 } });
    const holder = await hold();
    [offered, next] = [await queue(holder.key, LONG), await queue(holder.key, LONG)];
    await release(holder);
    await fixture().pass(OVER_MS);
  });

  it("ends a lease that nobody renewed: 410 expired, and a release says so", async () => {
    for (const refused of [await get(plain.url), await post(`${plain.url}/renew`)]) {
      expect([...told(refused), refused.body.reason]).toEqual([410, "lease-lost", "expired"]);
    }
    expect(told(await put(plain.key, SHORT, plain))).toEqual([410, "lease-over"]);
    expect(await release(plain)).toBe("expired");
  });

  it("lets the next one take the key over, with a greater token, and tells the old one that it lost", async () => {
    const next = await hold(taken.key);
    expect(next.body.fencingToken).toBeGreaterThan(taken.body.fencingToken as number);
    const renewed = await post(`${taken.url}/renew`);
    expect([...told(renewed), renewed.body.reason]).toEqual([410, "lease-lost", "taken"]);
    expect(await release(taken)).toBe("lost");
    expect((await get(next.url)).status).toBe(200);
  });

  it("frees what a reader and a permit that ran out kept", async () => {
    await hold(reader.key);
    await hold(permit.key, { limit: 2 });
    expect(told(await put(permit.key, { limit: 2 }))).toEqual([423, "locked"]);
    expect((await get(full.url)).status).toBe(200);
  });

  it("ends each level of a scope by its own length: the key is free when the last is gone", async () => {
    expect((await get(outer.url)).status).toBe(410);
    expect((await get(inner.url)).body.holdCount).toBe(1);
    expect(told(await put(outer.key))).toEqual([423, "locked"]);
    expect(await release(inner)).toBe("released");
    await hold(outer.key);
  });

  it("passes an offer on that nobody came for", async () => {
    const claimed = await queue(next.key, LONG, next);
    expect([claimed.status, claimed.body.leaseMs]).toEqual([201, LONG.leaseMs]);
    expect((await get(offered.url)).status).toBe(410);
  });

  it("makes a run interrupted, records an outcome past its lease, and hands it to a takeover otherwise", async () => {
    expect((await get(`/v1/runs/${late.key}`)).body.state).toBe("interrupted");
    expect((await complete(late, { state: "succeeded", result: 1 })).status).toBe(200);
    expect((await start(late.key)).body).toMatchObject({ state: "succeeded", result: 1, attempt: 1 });

    const successor = await begin(dead.key);
    expect(successor.body).toMatchObject({ attempt: 2, takeover: true, checkpoint: { page: 7 } });
    expect(successor.body.fencingToken).toBeGreaterThan(dead.body.fencingToken as number);
    const zombie = await complete(dead, { state: "succeeded", result: "stale" });
    expect([...told(zombie), zombie.body.reason]).toEqual([410, "lease-lost", "taken"]);
    expect((await get(`/v1/runs/${dead.key}`)).body).toMatchObject({ state: "running", attempt: 2 });
  });
}
