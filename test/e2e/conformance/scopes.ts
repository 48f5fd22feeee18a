/** Reentrancy over HTTP: one request with several holds, and a scope that no response reveals. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** Reentrant holds of one scope. */
export function scopes({ it, itWith }: Suite, { freshKey, get, put, queue, hold, release }: Calls): void {
  it("let a nested acquire in past the queue, with the same token, until the last level is gone", async () => {
    const key = freshKey();
    const scope = randomUUID();
    const outer = await hold(key, { scope });
    const waiting = await queue(key);
    const inner = await hold(key, { scope });
    expect([inner.body.fencingToken, inner.body.holdCount]).toEqual([outer.body.fencingToken, 2]);
    expect((await get(outer.url)).body.holdCount).toBe(2);
    expect([await release(outer), (await queue(key, {}, waiting)).status]).toEqual(["released", 202]);
    expect([await release(inner), (await queue(key, {}, waiting)).status]).toEqual(["released", 201]);
  });

  it("count each level once, however often it is asked for", async () => {
    const key = freshKey();
    const scope = randomUUID();
    await hold(key, { scope });
    const inner = await hold(key, { scope });
    const again = await put(key, { scope }, inner);
    expect([again.status, again.body.holdCount, again.headers["idempotent-replayed"]]).toEqual([200, 2, "true"]);
  });

  it("let nobody else in: not without a scope, not under another, and no writer inside of a reader", async () => {
    const key = freshKey();
    const scope = randomUUID();
    await hold(key, { scope, mode: "shared" });
    for (const body of [{}, { scope: randomUUID() }, { scope }]) expect(told(await put(key, body))).toEqual([423, "locked"]);
    expect((await hold(key, { scope, mode: "shared" })).body.holdCount).toBe(2);
  });

  it("of fewer than 16 characters are 400, naming scope", async () => {
    const refused = await put(freshKey(), { scope: randomUUID().slice(0, 15) });
    expect([...told(refused), refused.body.field]).toEqual([400, "invalid-request", "scope"]);
  });

  itWith("another", "serve any principal of the namespace, each level under its own", async () => {
    const key = freshKey();
    const scope = randomUUID();
    const outer = await hold(key, { scope });
    const inner = await hold(key, { scope }, { as: "another" });
    expect(inner.body.fencingToken).toBe(outer.body.fencingToken);
    expect(await release(inner)).toBe(403);
    expect(await release(inner, "another")).toBe("released");
  });
}
