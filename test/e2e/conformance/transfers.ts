/** Transfers over HTTP: the hold goes to a new leaseId, and belongs to that id's first caller. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** Transfers a hold to another process or step. */
export function transfers({ it }: Suite, { newId, get, post, put, hold, release }: Calls): void {
  it("is 200 with a new token, again 200 with the same, and the old lease is over", async () => {
    const held = await hold(undefined, { leaseMs: 20_000 });
    const to = { leaseId: newId(), owner: "worker", leaseMs: 40_000 };
    const handed = await post(`${held.url}/transfer`, to);
    expect(handed.status).toBe(200);
    expect(handed.body).toMatchObject({ key: held.key, ...to });
    expect(handed.body.fencingToken).toBeGreaterThan(held.body.fencingToken as number);
    const again = await post(`${held.url}/transfer`, to);
    expect([again.status, again.body.fencingToken]).toEqual([200, handed.body.fencingToken]);

    for (const refused of [
      await post(`${held.url}/renew`),
      await get(held.url),
      await post(`${held.url}/transfer`, { leaseId: newId() }),
    ]) {
      expect([...told(refused), refused.body.reason]).toEqual([410, "lease-lost", "transferred"]);
    }
    expect(await release(held)).toBe("transferred");
    expect(told(await put(held.key))).toEqual([423, "locked"]);
    expect(await release({ url: held.url.replace(held.leaseId, to.leaseId) })).toBe("released");
  });
}
