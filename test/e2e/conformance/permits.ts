/** Semaphores over HTTP: several permits of one key. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** Permits of a key, acquired and released. */
export function permits({ it }: Suite, { freshKey, get, put, hold, release }: Calls): void {
  it("are out up to the limit, by their number and not by the leases, and the next is refused", async () => {
    const key = freshKey();
    const [two, one] = [await hold(key, { limit: 3, permits: 2, owner: "two" }), await hold(key, { limit: 3, owner: "one" })];
    expect([two.body.permits, one.body.permits]).toEqual([2, 1]);
    expect(two.body.fenceFloor).toBeLessThanOrEqual(two.body.fencingToken as number);
    expect(one.body.fencingToken).toBeGreaterThan(two.body.fencingToken as number);
    const refused = await put(key, { limit: 3 });
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.body.holders).toMatchObject([
      { owner: "two", permits: 2 },
      { owner: "one", permits: 1 },
    ]);
    expect((await get(`/v1/locks/${key}`)).body).toMatchObject({ limit: 3, holders: [{ permits: 2 }, { permits: 1 }] });
    await release(one);
    expect(told(await put(key, { limit: 3, permits: 2 }))).toEqual([423, "locked"]);
    await hold(key, { limit: 3 });
  });
}
