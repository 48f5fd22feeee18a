/** Authorization over HTTP: a lease belongs to its principal, and a namespace to its owner. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** Other principals, of the same namespace and of another. */
export function principals({ itWith }: Suite, { newId, get, post, put, hold, release }: Calls): void {
  itWith("another", "another of the namespace is refused everything that is the holder's: 403, and nothing changed", async () => {
    const held = await hold();
    const refusals = [
      await put(held.key, {}, { leaseId: held.leaseId, as: "another" }),
      await get(held.url, {}, "another"),
      await post(`${held.url}/renew`, {}, "another"),
      await post(`${held.url}/mode`, { mode: "shared", fencingToken: held.body.fencingToken }, "another"),
      await post(`${held.url}/transfer`, { leaseId: newId() }, "another"),
    ];
    for (const refused of refusals) expect([...told(refused), refused.body.definite]).toEqual([403, "forbidden", true]);
    expect(await release(held, "another")).toBe(403);
    const { body } = await post("/v1/renewals", { leases: [{ key: held.key, leaseId: held.leaseId }] }, "another");
    expect(body.results).toMatchObject([{ status: 403, code: "forbidden" }]);
    expect((await get(held.url)).body.version).toBe(held.body.version);
  });

  itWith("stranger", "one of another namespace meets nobody: the same key is another key", async () => {
    const held = await hold(undefined, { owner: "checkout-7" });
    // Before it has a hold of its own there: two records may have the same token.
    const broken = await post(
      `/v1/locks/${held.key}/break`,
      { reason: "not mine", fencingToken: held.body.fencingToken, drainMs: 0 },
      "stranger",
    );
    expect(broken.status).not.toBeLessThan(400);
    const own = await hold(held.key, { scope: randomUUID() }, { as: "stranger" });
    expect((await get(`/v1/locks/${held.key}`, {}, "stranger")).body.holders).toHaveLength(1);
    expect((await get(`/v1/locks/${held.key}`, {}, "stranger")).text).not.toContain("checkout-7");
    expect((await get(held.url, {}, "stranger")).status).toBe(410);
    expect(await release(held, "stranger")).toBe("never");
    expect([(await get(held.url)).status, (await get(own.url, {}, "stranger")).status]).toEqual([200, 200]);
    expect((await get(own.url)).status).toBe(410);
  });
}
