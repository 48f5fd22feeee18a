/** Values on the wire, there and back, held to the AWS SDK's marshaller. */
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plainItem } from "../../../lib/store/dynamo/attribute-value.js";
import type { WireItem } from "../../../lib/store/dynamo/calls.js";
import { itemText } from "../../../lib/store/dynamo/wire-text.js";

// The SDK takes an object with a member "constructor" for one of a class.
const name = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !(text in Object.prototype));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.string({ unit: "grapheme" }),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, min: -1e15, max: 1e15 }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 4, noNullPrototype: true }),
    fc.uniqueArray(name, { minLength: 1 }).map((members) => new Set(members)),
    fc.uniqueArray(fc.maxSafeInteger(), { minLength: 1 }).map((members) => new Set(members)),
  ),
}));
const item = fc.dictionary(name, fc.option(value, { nil: undefined }), { noNullPrototype: true });

describe("an item on the wire", () => {
  it("is what the AWS SDK makes of it, and is read as the SDK reads it", () => {
    fc.assert(
      fc.property(item, (drawn) => {
        const wire = JSON.parse(itemText(drawn)) as WireItem;
        const theirs = marshall(drawn, { removeUndefinedValues: true });
        expect(wire).toEqual(
          JSON.parse(JSON.stringify(theirs, (_, one: unknown) => (one instanceof Set ? [...(one as Set<unknown>)] : one))),
        );
        expect(plainItem(wire)).toEqual(unmarshall(theirs));
      }),
      { numRuns: 500 },
    );
  });

  it("may have a member __proto__, which is a member like any other", () => {
    const wire = JSON.parse('{"__proto__":{"M":{"h":{"S":"x"}}},"a":{"N":"1"}}') as WireItem;
    const read = plainItem(wire);
    expect(Object.keys(read)).toEqual(["__proto__", "a"]);
    expect(read["h"]).toBeUndefined();
    expect(JSON.parse(itemText(read))).toEqual(wire);
  });

  it("has bytes and their sets, which a newer version may write", () => {
    const bytes = { b: Uint8Array.of(0, 1, 255), s: new Set([Uint8Array.of(7)]) };
    const wire = JSON.parse(itemText(bytes)) as WireItem;
    expect(wire).toEqual({ b: { B: "AAH/" }, s: { BS: ["Bw=="] } });
    expect(JSON.parse(itemText(plainItem(wire)))).toEqual(wire);
  });

  it.each([[Number.NaN], [Number.POSITIVE_INFINITY], [2 ** 53], [Symbol("no")], [() => 0], [new Set([1, "a"])]])(
    "is refused with %s, as the SDK refuses it",
    (odd) => {
      expect(() => itemText({ odd })).toThrow(TypeError);
    },
  );
});
