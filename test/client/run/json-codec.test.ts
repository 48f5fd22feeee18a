/** Values as JSON and back: every storable value is restored unchanged, and no JSON is misread. */
import fc from "fast-check";
import { isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { errorFromJson, errorToJson, fromJson, toJson, UnkeepableError } from "../../../lib/client/calls/run/json-codec.js";
import { isShallow, JSON_DEPTH } from "../../../lib/core/canonical.js";

/** The value after a round trip over the network, or through a table. */
const asText = (json: unknown): unknown => (json === undefined ? undefined : JSON.parse(JSON.stringify(json)));
const there = (value: unknown): unknown => fromJson(asText(toJson(value)));

/** Every storable value. Names that look like tags are frequent. */
const { anything } = fc.letrec((tie) => ({
  anything: fc.oneof({ depthSize: "small", withCrossShrink: true }, tie("scalar"), tie("list"), tie("members")),
  scalar: fc.oneof(
    fc.string({ unit: "binary" }),
    fc.boolean(),
    fc.double(),
    fc.integer(),
    fc.bigInt(),
    fc.date({ noInvalidDate: false }),
    fc.constantFrom(null, undefined, "bigint", "undefined", "object"),
    // fast-check alone makes one of these in thousands of values.
    fc.constantFrom(Number.NaN, Infinity, -Infinity, -0, new Date(Number.NaN)),
  ),
  list: fc.array(tie("anything"), { maxLength: 4 }),
  members: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("~type", "value", "__proto__", "constructor", "7")), tie("anything"), {
    maxKeys: 4,
    noNullPrototype: true,
  }),
}));

describe("a value that was kept", () => {
  it("comes back equal", () => {
    fc.assert(
      fc.property(anything, (value) => {
        expect(there(value)).toEqual(value);
      }),
      { numRuns: 2000 },
    );
  });

  it("is JSON, and nothing but", () => {
    fc.assert(
      fc.property(anything, (value) => {
        const json = toJson(value);
        expect(isDeepStrictEqual(asText(json), json)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it("is kept as it stands where JSON has it, so that anybody reads it", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(!JSON.stringify(value).includes('"~type"') && !hasMinusZero(value));
        expect(toJson(value)).toEqual(value);
      }),
    );
  });

  it("control: through JSON alone it does not come back", () => {
    const comesBack = (value: unknown): void => expect(asText(value)).toEqual(value);
    for (const value of [-0, Number.NaN, [undefined], new Date(0)]) expect(() => comesBack(value)).toThrow();
    expect(() => asText(1n)).toThrow(TypeError);
  });

  it("may be nested as deep as the service takes it, tags included, and no deeper", () => {
    const layer = fc.constantFrom<readonly [depth: number, wrap: (inner: unknown) => unknown]>(
      [1, (inner) => [inner]],
      [1, (inner) => ({ inner })],
      [2, (inner) => ({ "~type": inner })],
    );
    const core = fc.constantFrom<readonly [depth: number, value: unknown]>(
      [0, 1],
      [1, 1n],
      [1, []],
      [1, {}],
      [1, new Date(0)],
      [2, new Error()],
    );
    fc.assert(
      fc.property(fc.array(layer, { minLength: 60, maxLength: 110 }), core, (layers, [coreDepth, innermost]) => {
        const value = layers.reduceRight((inner, [, wrap]) => wrap(inner), innermost);
        const depth = layers.reduce((sum, [deeper]) => sum + deeper, coreDepth);
        if (depth > JSON_DEPTH) expect(() => toJson(value)).toThrow(UnkeepableError);
        else expect(isShallow(toJson(value))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it("may be exactly as deep as the service takes it", () => {
    const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
    expect(there(nested(JSON_DEPTH))).toEqual(nested(JSON_DEPTH));
    expect(() => toJson(nested(JSON_DEPTH + 1))).toThrow(`value${"[0]".repeat(JSON_DEPTH + 1)}: is nested more than`);
  });

  it("comes back without members that are undefined, but with the places in a list", () => {
    const value = { a: undefined, list: [undefined, { b: undefined }, , 1] };
    expect(there(value)).toStrictEqual({ list: [undefined, {}, undefined, 1] });
    expect(Object.hasOwn(there(value) as object, "a")).toBe(false);
    expect((there(value) as { list: unknown[] }).list).toHaveLength(4);
  });

  it("comes back by its toJSON where it has one", () => {
    class Tagged {
      toJSON(): unknown {
        return { at: new Date(5), nothing: undefined };
      }
    }
    expect(there([new Tagged(), new URL("http://localhost/")])).toStrictEqual([{ at: new Date(5) }, "http://localhost/"]);
  });

  it("comes back plain where it had no prototype, or that of another realm's plain objects", () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    expect(there([bare, runInNewContext("({ b: [2] })")])).toStrictEqual([{ a: 1 }, { b: [2] }]);
  });

  it("never reaches a prototype", () => {
    const back = there(JSON.parse('{"__proto__": {"polluted": true}}')) as { polluted?: unknown };
    expect(back.polluted).toBeUndefined();
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(Object.keys(back)).toEqual(["__proto__"]);
  });
});

describe("a value that can't be kept", () => {
  const cycle: unknown[] = [];
  cycle.push({ again: cycle });
  it.each<[where: string, value: unknown, message: string]>([
    ["a function", () => 1, "value: a function can't be kept"],
    ["a symbol", { a: [1, Symbol("s")] }, "value.a[1]: a symbol can't be kept"],
    ["a method", { done: { by: () => 1 } }, "value.done.by: a function can't be kept"],
    ["a class", [Date], "value[0]: a function can't be kept"],
  ])("is refused, naming where: %s", (_where, value, message) => {
    expect(() => toJson(value)).toThrow(UnkeepableError);
    expect(() => toJson(value)).toThrow(message);
  });

  /** An amount that only its methods expose, as in most classes of the platform. */
  class Money {
    readonly #cents: number;
    constructor(cents: number) {
      this.#cents = cents;
    }
    get cents(): number {
      return this.#cents;
    }
  }
  it.each<[name: string, value: object]>([
    ["Map", new Map([["cents", 1]])],
    ["Set", new Set([1])],
    ["WeakMap", new WeakMap()],
    ["Uint8Array", Uint8Array.of(1)],
    ["Buffer", Buffer.from("1")],
    ["ArrayBuffer", new ArrayBuffer(1)],
    ["SharedArrayBuffer", new SharedArrayBuffer(1)],
    ["DataView", new DataView(new ArrayBuffer(1))],
    ["Blob", new Blob(["1"])],
    ["URLSearchParams", new URLSearchParams("cents=1")],
    ["FormData", new FormData()],
    ["Headers", new Headers({ cents: "1" })],
    ["Request", new Request("http://localhost/")],
    ["Response", new Response("1")],
    ["RegExp", /1/],
    ["Number", new Number(1)],
    ["String", new String("1")],
    ["Boolean", new Boolean(true)],
    ["BigInt", Object(1n) as object],
    ["Promise", Promise.resolve(1)],
    ["Money", new Money(1)],
    [
      "Generator",
      (function* () {
        yield 1;
      })(),
    ],
    [
      "AsyncGenerator",
      (async function* () {
        yield await Promise.resolve(1);
      })(),
    ],
    [
      "nameless class",
      new (class {
        readonly cents = 1;
      })(),
    ],
  ])("is refused by its name, where JSON would have {} or a list of bytes: %s", (name, value) => {
    expect(() => toJson(value)).toThrow(UnkeepableError);
    expect(() => toJson({ paid: [value] })).toThrow(`value.paid[0]: a ${name} can't be kept; `);
  });

  it("is refused although its prototype has no such member, or one that throws", () => {
    const hostile = Object.create({
      get constructor(): unknown {
        throw new Error("not yours");
      },
    }) as object;
    for (const value of [hostile, [1].values(), new Map().entries()]) expect(() => toJson(value)).toThrow(UnkeepableError);
    expect(() => toJson(hostile)).toThrow("value: a nameless class can't be kept");
    const tagged = Object.create(Object.create({ [Symbol.toStringTag]: "Pouch" }) as object) as object;
    expect(() => toJson(tagged)).toThrow("value: a Pouch can't be kept");
  });

  it("is refused when it is in itself", () => {
    expect(() => toJson(cycle)).toThrow(UnkeepableError);
    expect(() => toJson(cycle)).toThrow("is nested more than 100 deep, or in itself");
  });

  it("is refused where its toJSON gives itself", () => {
    const selfish = { toJSON: (): unknown => selfish };
    expect(() => toJson(selfish)).toThrow(UnkeepableError);
  });
});

describe("JSON that somebody else wrote", () => {
  it.each<[what: string, json: unknown]>([
    ["an unknown tag", { "~type": "set", value: [1] }],
    ["a bigint that is none", { "~type": "bigint", value: "seven" }],
    ["a bigint without a value", { "~type": "bigint" }],
    ["an object without a value", { "~type": "object" }],
    ["an object of null", { "~type": "object", value: null }],
    ["a tag that is no text", { "~type": { "~type": 7 } }],
    ["an error of text", { "~type": "error", value: "no stock" }],
    ["a date of an object", { "~type": "date", value: {} }],
  ])("is read, whatever it says: %s", (_what, json) => {
    expect(() => fromJson(json)).not.toThrow();
  });

  it.each<[json: unknown, value: unknown]>([
    [{ "~type": "number", value: "-0" }, -0],
    [{ "~type": "number", value: "NaN" }, Number.NaN],
    [{ "~type": "bigint", value: "-12" }, -12n],
    [{ "~type": "date", value: "1970-01-01T00:00:00.005Z" }, new Date(5)],
    [{ "~type": "date", value: null }, new Date(Number.NaN)],
    [{ "~type": "object", value: { "~type": "date" } }, { "~type": "date" }],
  ])("is what it says, if its tag has a value that fits: %j", (json, value) => {
    expect(fromJson(json)).toStrictEqual(value);
  });

  it.each<[json: object]>([
    [{ "~type": "number", value: 7 }],
    [{ "~type": "number" }],
    [{ "~type": "bigint", value: 7 }],
    [{ "~type": "bigint", value: "x7" }],
    [{ "~type": "bigint", value: "7x" }],
    [{ "~type": "date", value: 7 }],
    [{ "~type": "date" }],
    [{ "~type": "set", value: [1] }],
    [{ "~type": "set", value: "7" }],
  ])("is left as it is otherwise: %j", (json) => {
    expect(fromJson(json)).toStrictEqual(json);
  });

  it("is an error where its tag says so", () => {
    const error = fromJson({ "~type": "error", value: { name: "RangeError", message: "no stock" } });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: "RangeError", message: "no stock" });
  });

  it("of any kind is read", () => {
    const tag = fc.constantFrom("undefined", "number", "bigint", "date", "error", "object", "~type");
    const json = fc.oneof(fc.jsonValue(), fc.record({ "~type": tag, value: fc.jsonValue() }, { requiredKeys: ["~type"] }));
    fc.assert(fc.property(json, (value) => void fromJson(value)));
  });
});

describe("an error", () => {
  it.each<[what: string, thrown: unknown, name: string, message: string]>([
    ["as it is", new TypeError("no stock"), "TypeError", "no stock"],
    ["of text", "no stock", "Error", "no stock"],
    ["of nothing", undefined, "Error", "undefined"],
    ["of null", null, "Error", "null"],
    ["of an object", { code: 7 }, "Error", "[object Object]"],
    ["without a message", new Error(), "Error", ""],
    ["without a text for one", Object.assign(new Error(), { message: undefined }), "Error", "undefined"],
    ["with a number for a name", Object.assign(new Error("no stock"), { name: 7 }), "7", "no stock"],
    ["of a long story", new Error("x".repeat(801)), "Error", `${"x".repeat(800)}…`],
    ["of a story that just fits", new Error("x".repeat(800)), "Error", "x".repeat(800)],
    ["of what can't be made into text", Object.create(null), "Error", "object"],
    ["of what has no text", { toString: () => Object.fromEntries([]) as unknown }, "Error", "object"],
  ])("comes back with its name and message: %s", (_what, thrown, name, message) => {
    const back = errorFromJson(asText(errorToJson(thrown)));
    expect(back).toBeInstanceOf(Error);
    expect([back.name, back.message]).toEqual([name, message]);
  });

  it.each<[json: unknown, message: string]>([
    ["no stock", "no stock"],
    [undefined, "failed"],
    [null, "failed"],
    [{ code: 7 }, '{"code":7}'],
    [{ message: 7 }, '{"message":7}'],
    [["a"], '["a"]'],
  ])("that somebody recorded as %j says what there is to say", (json, message) => {
    expect(errorFromJson(json).message).toBe(message);
  });

  it.each([[7], [null]])("has the usual name where that is recorded as %j", (name) => {
    expect(errorFromJson({ name, message: "no stock" })).toMatchObject({ name: "Error", message: "no stock" });
  });

  it("keeps neither its stack nor its cause", () => {
    expect(Object.keys(errorToJson(new Error("no stock", { cause: new Error("secret") })))).toEqual(["name", "message"]);
  });
});

function hasMinusZero(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return Object.is(value, -0);
  return Object.values(value).some(hasMinusZero);
}
