/** The canonical form of a JSON value: equal values have the same text, different values have different texts. */
import * as fc from "fast-check";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { canonicalJson, digestOf, isShallow, JSON_DEPTH } from "../../lib/core/canonical.js";

/** Returns the same value with its members in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, shuffled(member)]),
  );
}

const nested = (depth: number, make: (inner: unknown) => unknown): unknown => {
  let value: unknown = "deep";
  for (let level = 0; level < depth; level++) value = make(value);
  return value;
};

describe("canonical JSON", () => {
  it.each<[unknown, string]>([
    [{ b: 1, a: { d: [], c: null } }, '{"a":{"c":null,"d":[]},"b":1}'],
    [[3, 1, { z: 0, y: 0 }], '[3,1,{"y":0,"z":0}]'],
    [{ "": 1, B: 2, a: 3, é: 4 }, '{"":1,"B":2,"a":3,"é":4}'],
    [JSON.parse('{"b":1,"__proto__":2,"constructor":3}'), '{"__proto__":2,"b":1,"constructor":3}'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [-0, "0"],
    ["é\u0000\ud800", '"é\\u0000\\ud800"'],
    [null, "null"],
  ])("of %j is %s", (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  it("is a form of the value: read again it is the value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => void expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))),
    );
  });

  it("does not depend on the order of members, whatever their names are", () => {
    const named = fc.dictionary(fc.oneof(fc.string(), fc.nat({ max: 30 }).map(String)), fc.jsonValue());
    fc.assert(fc.property(named, (value) => void expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value))));
  });

  it("is another for another value", () => {
    // Small values, so that some of the pairs are equal.
    const value = fc.jsonValue({ maxDepth: 1 }).map((drawn): unknown => JSON.parse(JSON.stringify(drawn)));
    fc.assert(
      fc.property(
        value,
        value,
        (one, other) => void expect(canonicalJson(one) === canonicalJson(other)).toBe(isDeepStrictEqual(one, other)),
      ),
      { numRuns: 2_000 },
    );
  });

  it("control: the order of members shows in ordinary JSON", () => {
    expect(JSON.stringify(shuffled({ a: 1, b: 2 }))).not.toBe(JSON.stringify({ a: 1, b: 2 }));
  });
});

describe("a digest", () => {
  it("is the SHA-256 of the canonical JSON in base64url", () => {
    // printf '{"a":1,"b":[true,null]}' | openssl dgst -sha256 -binary | basenc --base64url
    expect(digestOf({ b: [true, null], a: 1 })).toBe("HMacf6I2Fsouw-5w0kOQpiJciDLbikyBTH4Of5Qvhmg");
  });

  it("tells 1 from a text of it, and none from an empty one", () => {
    const digests = [1, "1", [1], { 1: 1 }, "", null, [], {}, false, 0].map(digestOf);
    expect(new Set(digests).size).toBe(digests.length);
  });
});

describe("a shallow value", () => {
  it.each<[string, (inner: unknown) => unknown]>([
    ["lists", (inner) => [inner]],
    ["objects", (inner) => ({ inner })],
    ["lists of more than one", (inner) => [1, inner]],
  ])("is nested at most as deep as is allowed, in %s", (_, make) => {
    expect(isShallow(nested(JSON_DEPTH, make))).toBe(true);
    expect(isShallow(nested(JSON_DEPTH + 1, make))).toBe(false);
    expect(canonicalJson(nested(JSON_DEPTH, make))).toContain("deep");
  });

  it("is not nested deeper by members that have none", () => {
    for (const value of [null, undefined, "text", 7]) expect(isShallow([value], 1)).toBe(true);
    expect(isShallow(null, 0)).toBe(true);
  });

  it("may be as wide as it likes", () => {
    expect(isShallow(Array.from({ length: 10_000 }, () => ({ a: [1] })))).toBe(true);
  });

  it("is told before a stack could overflow, however deep the value is", () => {
    expect(isShallow(nested(200_000, (inner) => [inner]))).toBe(false);
  });
});
