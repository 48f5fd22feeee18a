/** The fingerprint of a payload: the same in every version, and taken without stopping the process. */
import { createHash } from "node:crypto";
import { assert, jsonValue, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { fingerprintOf } from "../../../lib/client/calls/run/fingerprint.js";
import { canonicalJson, canonicalPieces } from "../../../lib/core/canonical.js";
import { nextTurn } from "../../../lib/core/time.js";

const MB = 1024 * 1024;

/** Turns of the event loop, which it counts. */
function counting() {
  let turns = 0;
  const turn = (): Promise<void> => {
    turns++;
    return nextTurn();
  };
  return { turn, turns: () => turns };
}

/** Orders with lines, of `bytes` as JSON. */
function orders(bytes: number): readonly object[] {
  const order = (id: number) => ({
    id,
    buyer: `buyer ${id}`,
    10: "ten",
    9: "nine",
    lines: [{ sku: `sku-${id}`, at: new Date(id), count: 2 }],
  });
  return Array.from({ length: Math.ceil(bytes / JSON.stringify(order(12_345)).length) }, (_, id) => order(id));
}

describe("a fingerprint", () => {
  it("is the one that earlier versions stored", async () => {
    const payload = { b: [1, "two", null], a: { 10: true, 9: false, at: new Date(0) } };
    expect(await fingerprintOf(payload)).toBe("F6LGN5f_nRBSFnY6g1d514iFNXJEzeFFPSslbdZqItA");
  });

  it("is taken of the canonical JSON, whatever its size and shape", async () => {
    assert(property(jsonValue(), (value) => [...canonicalPieces(value)].join("") === canonicalJson(value)));
    const list = orders(MB / 4);
    for (const large of [list, { orders: { 2: list, 1: [], z: {}, a: "x".repeat(MB) } }, [[[list]], list]]) {
      const json: unknown = JSON.parse(JSON.stringify(large));
      const pieces = [...canonicalPieces(json)];
      expect(pieces.length).toBeGreaterThan(100);
      expect(createHash("sha256").update(pieces.join("")).digest("hex")).toBe(
        createHash("sha256").update(canonicalJson(json)).digest("hex"),
      );
    }
  });

  it("of 2 MB leaves the event loop to others 6 times, and one of a usual size never", async () => {
    const { turn, turns } = counting();
    await fingerprintOf(orders(2 * MB), turn);
    expect(turns()).toBeGreaterThanOrEqual(6);
    const before = turns();
    await fingerprintOf(orders(MB / 8), turn);
    expect(turns()).toBe(before);
  });

  it("is of the payload at the time of the call", async () => {
    const payload = { orders: orders(MB), note: "before" };
    const before = await fingerprintOf(payload);
    const during = fingerprintOf(payload);
    payload.note = "after";
    expect(await during).toBe(before);
    expect(await fingerprintOf(payload)).not.toBe(before);
  });
});
