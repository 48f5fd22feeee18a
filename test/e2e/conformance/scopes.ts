/** Reentrancy over HTTP: one request with several holds, and a scope that no response reveals. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Calls } from "../calls.js";
import type { Suite } from "../suite.js";

/** Reentrant holds of one scope. */
export function scopes({ it, itWith }: Suite, { freshKey, get, queue, hold, release }: Calls): void {
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
