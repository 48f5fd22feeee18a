/** A filtered list: a page is cut after its filter, so a look for one owner among many holders, or for one state of runs, takes one request. */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { createLockClient, FinalError } from "../../lib/testing.js";
import { pages } from "../support/pages.js";

const MANY = 3 * LIMITS.listMax;
const keyOf = (at: number): string => `K${String(at).padStart(4, "0")}`;

describe("a page of one owner's keys", () => {
  it("is chosen from more keys than it has, and none is left out or named twice", async () => {
    const locks = createLockClient();
    for (let at = 0; at < MANY; at++) await locks.acquire(keyOf(at), { owner: at % 2 ? "odd" : "even", heartbeat: false });
    await locks.acquire("Z", { owner: "last", heartbeat: false });
    expect(await pages(locks, { owner: "last", max: 10 })).toEqual([["Z"]]);
    expect(await pages(locks, { owner: "nobody", max: 10 })).toEqual([[]]);
    const odd = Array.from({ length: MANY }, (_, at) => at).flatMap((at) => (at % 2 ? [keyOf(at)] : []));
    const found = await pages(locks, { owner: "odd", max: 100 });
    expect(found.map(({ length }) => length)).toEqual([100, 50]);
    expect(found.flat()).toEqual(odd);
    // Control: without an owner each page has as many as were asked for.
    expect((await pages(locks, { max: 100 })).map(({ length }) => length)).toEqual([100, 100, 100, 1]);
    await locks.close();
  });
});

describe("a page of runs in one state", () => {
  it("is chosen from more runs than it has", async () => {
    const locks = createLockClient();
    for (let at = 0; at < MANY; at++) await locks.runOnce(keyOf(at), () => at);
    await locks.runOnce("Z", () => Promise.reject(new FinalError("no address"))).catch(() => undefined);
    const found = await pages(locks.runs, { state: "failed", max: 10 });
    expect(found).toEqual([["Z"]]);
    expect((await pages(locks.runs, { state: "succeeded", max: 100 })).map(({ length }) => length)).toEqual([100, 100, 100]);
    await locks.close();
  });
});
