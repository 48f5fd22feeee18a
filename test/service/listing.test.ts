/** A filtered list: a page is cut after its filter, so a look for one owner among many holders, or for one state of runs, takes one request. */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { createLockClient, FinalError } from "../../lib/testing.js";

const MANY = 3 * LIMITS.listMax;
const keyOf = (at: number): string => `K${String(at).padStart(4, "0")}`;

/** Reads all pages. Returns the keys of each. */
async function pages(
  page: (query: { readonly cursor?: string }) => Promise<{ readonly items: readonly { readonly key: string }[]; readonly cursor?: string }>,
): Promise<readonly (readonly string[])[]> {
  const found: (readonly string[])[] = [];
  for (let cursor: string | undefined; ;) {
    const { items, cursor: next } = await page({ ...(cursor !== undefined && { cursor }) });
    found.push(items.map(({ key }) => key));
    if (next === undefined) return found;
    cursor = next;
  }
}

describe("a page of one owner's keys", () => {
  it("is chosen from more keys than it has, and none is left out or named twice", async () => {
    const locks = createLockClient();
    for (let at = 0; at < MANY; at++) await locks.acquire(keyOf(at), { owner: at % 2 ? "odd" : "even", heartbeat: false });
    await locks.acquire("Z", { owner: "last", heartbeat: false });
    expect(await pages((query) => locks.list({ owner: "last", max: 10, ...query }))).toEqual([["Z"]]);
    expect(await pages((query) => locks.list({ owner: "nobody", max: 10, ...query }))).toEqual([[]]);
    const odd = Array.from({ length: MANY }, (_, at) => at).flatMap((at) => (at % 2 ? [keyOf(at)] : []));
    const found = await pages((query) => locks.list({ owner: "odd", max: 100, ...query }));
    expect(found.map(({ length }) => length)).toEqual([100, 50]);
    expect(found.flat()).toEqual(odd);
    // Control: without an owner each page has as many as were asked for.
    expect((await pages((query) => locks.list({ max: 100, ...query }))).map(({ length }) => length)).toEqual([100, 100, 100, 1]);
    await locks.close();
  });
});

describe("a page of runs in one state", () => {
  it("is chosen from more runs than it has", async () => {
    const locks = createLockClient();
    for (let at = 0; at < MANY; at++) await locks.runOnce(keyOf(at), () => at);
    await locks.runOnce("Z", () => Promise.reject(new FinalError("no address"))).catch(() => undefined);
    const found = await pages((query) => locks.runs.list({ state: "failed", max: 10, ...query }));
    expect(found).toEqual([["Z"]]);
    expect((await pages((query) => locks.runs.list({ state: "succeeded", max: 100, ...query }))).map(({ length }) => length)).toEqual([
      100, 100, 100,
    ]);
    await locks.close();
  });
});
