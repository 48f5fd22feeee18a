/** Many keys under one leaseId over HTTP: all of them or none. Also the heartbeats of many leases in one request. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

export function sets({ it }: Suite, { freshKey, newId, send, get, post, release }: Calls): void {
  const putSet = (leaseId: string, body: object) => send("PUT", `/v1/lock-sets/${leaseId}`, { body });
  const set = (leaseId: string, verb: "renew" | "release", body: object) => post(`/v1/lock-sets/${leaseId}/${verb}`, body);

  it("are granted whole: 201 with a token for each key, again 200, duplicates merged", async () => {
    const [a, b] = [freshKey(), freshKey()] as const;
    const leaseId = newId();
    const granted = await putSet(leaseId, { keys: [b, a, b], leaseMs: 20_000, owner: "move" });
    expect(granted.status).toBe(201);
    expect(granted.body).toMatchObject({ leaseId, leaseMs: 20_000 });
    expect(Object.keys(granted.body.fencingTokens).sort()).toEqual([a, b].sort());
    expect(granted.body.remainingMs).toBeLessThanOrEqual(20_000);
    const again = await putSet(leaseId, { keys: [a, b], leaseMs: 20_000, owner: "move" });
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body.fencingTokens).toEqual(granted.body.fencingTokens);
    for (const key of [a, b]) expect((await get(`/v1/locks/${key}`)).body.holders).toMatchObject([{ owner: "move" }]);
  });

  it("are renewed together, and told which keys are lost", async () => {
    const keys = [freshKey(), freshKey()];
    const leaseId = newId();
    const granted = await putSet(leaseId, { keys, leaseMs: 20_000 });
    const renewed = await set(leaseId, "renew", { keys, leaseMs: 40_000 });
    expect([renewed.status, renewed.body.leaseMs, renewed.body.fencingTokens]).toEqual([200, 40_000, granted.body.fencingTokens]);
    expect(await release({ url: `/v1/locks/${keys[0]}/leases/${leaseId}` })).toBe("released");
    const refused = await set(leaseId, "renew", { keys });
    expect([...told(refused), refused.body.lost]).toEqual([410, "lease-lost", [keys[0]]]);
  });

  it("are released with a state for each key, again the same, and an unknown one is cancelled", async () => {
    const [a, b] = [freshKey(), freshKey()] as const;
    const leaseId = newId();
    await putSet(leaseId, { keys: [a, b] });
    for (let time = 0; time < 2; time++) {
      const released = await set(leaseId, "release", { keys: [a, b] });
      expect([released.status, released.body.states]).toEqual([200, { [a]: "released", [b]: "released" }]);
    }
    const unknown = newId();
    expect((await set(unknown, "release", { keys: [a, b] })).body.states).toEqual({ [a]: "never", [b]: "never" });
    expect(told(await putSet(unknown, { keys: [a, b] }))).toEqual([410, "lease-over"]);
  });
}

/** Heartbeats in one request. */
export function renewals({ it }: Suite, { newId, post, hold, release }: Calls): void {
  it("are answered one by one, in the order asked, whatever becomes of the others", async () => {
    const [first, gone, last] = [await hold(), await hold(), await hold()] as const;
    await release(gone);
    const never = newId();
    const leases = [first, gone, { key: first.key, leaseId: never }, last].map(({ key, leaseId }) => ({ key, leaseId, leaseMs: 40_000 }));
    const { status, body } = await post("/v1/renewals", { leases });
    expect(status).toBe(200);
    expect(body.results).toMatchObject([
      { status: 200, key: first.key, leaseId: first.leaseId, leaseMs: 40_000, fencingToken: first.body.fencingToken },
      { status: 410, key: gone.key, code: "lease-lost", reason: "released" },
      { status: 410, key: first.key, code: "lease-lost", reason: "never" },
      { status: 200, key: last.key, leaseId: last.leaseId },
    ]);
  });
}
