/** Events that time alone causes, over HTTP: the ends of the shortest leases and their margins, all waited for once. */
import { expect } from "vitest";
import { type Calls, type Put, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** The shortest lease. */
const SHORT = { leaseMs: 1_000 };
/** Expires as reliably, and is long enough for a second request within it on a slow connection. */
const MEDIUM = { leaseMs: 3_000 };
/** After this time, a lease of three seconds has expired, and its margin is over (1,007 ms later), with a second for two clocks that differ. */
const OVER_MS = 5_100;

/** Leases and runs that expire. */
export function expires(
  { it, beforeAll }: Suite,
  { fixture, freshKey, get, post, put, hold, release, start, begin, complete }: Calls,
): void {
  let plain: Put, taken: Put, late: Put, dead: Put;

  beforeAll(async () => {
    [plain, taken] = [await hold(freshKey(), SHORT), await hold(freshKey(), SHORT)];
    [late, dead] = [await begin(freshKey(), SHORT), await begin(freshKey(), MEDIUM)];
    await post(`${dead.url}/renew`, { checkpoint: { page: 7 } });
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
