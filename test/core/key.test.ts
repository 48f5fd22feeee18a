/** Keys are readable and injective, and never contain a missing part. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type KeyPart, isKey, key, keyWithin, markedKey, partsOfKey } from "../../lib/core/key.js";
import { LIMITS } from "../../lib/core/limits.js";

const loosely = key as (...parts: readonly unknown[]) => string;

describe("key()", () => {
  it.each<[readonly KeyPart[], string]>([
    [["ORDER", 1231], "ORDER_1231"],
    [["refund:42"], "refund:42"],
    [["ORDER", "1231", "line", 7], "ORDER_1231_line_7"],
    [["a-b.c:d"], "a-b.c:d"],
    [["ORDER", 12n], "ORDER_12"],
    [["ORDER", 0], "ORDER_0"],
    [["ORDER", -1.5], "ORDER_-1.5"],
    [["ORDER", 1e21], "ORDER_1e~2B21"],
    [["user_name"], "user~5Fname"],
    [["a~b"], "a~7Eb"],
    [["a b/c"], "a~20b~2Fc"],
    [["Käthe"], "K~C3~A4the"],
    [["Ka\u0308the"], "K~C3~A4the"],
    [["\u212B"], "~C3~85"],
    [["🔒"], "~F0~9F~94~92"],
    [["a\u0000b"], "a~00b"],
    [["."], "~2E"],
    [[".."], "~2E~2E"],
    [["..."], "..."],
    [[".", "."], "._."],
    [["__proto__"], "~5F~5Fproto~5F~5F"],
  ])("of %o is %s", (parts, expected) => {
    expect(key(...parts)).toBe(expected);
    expect(isKey(expected)).toBe(true);
  });

  it.each<[readonly unknown[], string]>([
    [[], "needs at least one part"],
    [["ORDER", undefined], "part 2 is undefined"],
    [[null, "ORDER"], "part 1 is null"],
    [["ORDER", ""], "part 2 is empty"],
    [["ORDER", Number.NaN], "part 2 is NaN"],
    [["ORDER", Number.POSITIVE_INFINITY], "part 2 is Infinity"],
    [["ORDER", {}], "part 2 is an object"],
    [["ORDER", ["a"]], "part 2 is an object"],
    [["ORDER", new Date(0)], "part 2 is an object"],
    [["ORDER", true], "part 2 is a boolean"],
    [["ORDER", () => 1], "part 2 is a function"],
    [["ORDER", Symbol("id")], "part 2 is a symbol"],
    [["ORDER", "\ud83d"], "part 2 has half a surrogate pair"],
    [["ORDER", 1, "\udd12x"], "part 3 has half a surrogate pair"],
  ])("refuses %o: %s", (parts, message) => {
    expect(() => loosely(...parts)).toThrow(TypeError);
    expect(() => loosely(...parts)).toThrow(message);
  });

  const text = fc.string({ unit: "binary", minLength: 1, maxLength: 40 }).filter((part) => part.isWellFormed());
  const nasty = fc.string({ unit: fc.constantFrom("_", "~", ".", "5", "F", "7", "E", "a", "ä", "2", "1"), minLength: 1, maxLength: 6 });
  const parts = fc.array(fc.oneof(nasty, text), { minLength: 1, maxLength: 5 });

  it("is always a key", () => {
    fc.assert(fc.property(parts, (some) => isKey(key(...some))));
  });

  it("is the same for a text in each of its canonical forms; control: case differs, and so do compatible characters", () => {
    fc.assert(fc.property(text, (part) => key(part.normalize("NFD")) === key(part.normalize("NFC"))));
    expect(new Set([key("ﬁ"), key("fi"), key("Fi")]).size).toBe(3);
  });

  it("is injective: different parts never share a key", () => {
    const normal = (some: readonly string[]): string => JSON.stringify(some.map((part) => part.normalize("NFC")));
    fc.assert(
      fc.property(parts, parts, (some, others) => {
        const same = normal(some) === normal(others);
        expect(key(...some) === key(...others)).toBe(same);
      }),
      { numRuns: 2000 },
    );
    // All pairs of difficult parts.
    const small = ["_", "~", "a", "~5F", "_a", "a_", "a_a", ".", "..", "5F", "~2E", "2E"];
    const lists = small.flatMap((first) => [[first], ...small.map((second) => [first, second])]);
    expect(new Set(lists.map((list) => key(...list))).size).toBe(lists.length);
  });

  it("gives back its parts: nothing is lost in it", () => {
    const decode = (whole: string) => whole.split("_").map((part) => decodeURIComponent(part.replaceAll("~", "%")));
    fc.assert(
      fc.property(fc.array(nasty, { minLength: 1, maxLength: 5 }), (some) => {
        expect(decode(key(...some))).toEqual(some);
      }),
    );
  });
});

describe("a key that would take 200 characters or more", () => {
  const whole = (length: number): string => "x".repeat(length);

  it("is kept whole up to 199", () => {
    expect(key(whole(199))).toBe(whole(199));
  });

  it.each([200, 201, 5000])("keeps its beginning, then ~ and the SHA-256 of the whole: %d", (length) => {
    const made = key(whole(length));
    expect(made).toBe(`${whole(135)}~${createHash("sha256").update(whole(length)).digest("hex")}`);
    expect(made).toHaveLength(LIMITS.keyChars);
    expect(isKey(made)).toBe(true);
  });

  it("differs where only the end differs", () => {
    expect(key(`${whole(5000)}a`)).not.toBe(key(`${whole(5000)}b`));
  });

  it("is not the key of any short parts: only hashed keys have 200 characters", () => {
    const made = key(whole(300));
    expect(key(made)).not.toBe(made);
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 250 }), (part) => key(part).length < LIMITS.keyChars || key(part).includes("~")),
    );
  });

  it("is a key also where the cut goes through an escape", () => {
    for (let shift = 0; shift < 3; shift++) expect(isKey(key("x".repeat(shift) + "ä".repeat(100)))).toBe(true);
  });
});

describe("markedKey()", () => {
  const text = fc.oneof(fc.constantFrom("a", "_", "~", "~http", "http", "a_b"), fc.string({ minLength: 1, maxLength: 250 }));
  const parts = fc.array(text, { minLength: 1, maxLength: 4 });

  it("has the mark after the first part", () => {
    expect(markedKey("a", "http", "b", "c")).toBe("a_~http_b_c");
  });

  it("is always a key, and never one of key()", () => {
    fc.assert(
      fc.property(parts, parts, ([first, ...rest], others) => {
        const marked = markedKey(first!, "http", ...rest);
        expect([isKey(marked), marked === key(...others), marked === key(first!, "http", ...rest)]).toEqual([true, false, false]);
      }),
    );
  });

  it("is injective", () => {
    fc.assert(
      fc.property(parts, parts, (some, others) => {
        const made = [some, others].map(([first, ...rest]) => markedKey(first!, "http", ...rest));
        expect(made[0] === made[1]).toBe(JSON.stringify(some) === JSON.stringify(others));
      }),
      { numRuns: 1000 },
    );
  });
});

describe("keyWithin()", () => {
  it("is the key of the first part and the others, and is bounded as that is", () => {
    expect(keyWithin("a_b", key("nightly", 7))).toBe(key("a_b", "nightly", 7));
    const long = ["x".repeat(99), "y".repeat(99)] as const;
    expect(keyWithin("shop", key(...long))).toBe(key("shop", ...long));
    expect(isKey(keyWithin("shop", key("x".repeat(300))))).toBe(true);
  });

  it("is injective", () => {
    const firsts = ["a", "a_b", "~", "x".repeat(150)];
    const inner = ["a", "b_a", key("a_b", "a"), "x".repeat(199), key("x".repeat(300))];
    const made = firsts.flatMap((first) => inner.map((key) => keyWithin(first, key)));
    expect(new Set(made).size).toBe(made.length);
  });
});

describe("isKey", () => {
  it.each(["a", "ORDER_1231", "refund:42", "a~b-c.d", "...", "x".repeat(200), "-", "~"])("takes %s", (text) => {
    expect(isKey(text)).toBe(true);
  });

  it.each(["", ".", "..", "a b", "a/b", "a%b", "ä", "a\n", "\u0000", "x".repeat(201)])("refuses %j", (text) => {
    expect(isKey(text)).toBe(false);
  });
});

describe("partsOfKey", () => {
  it.each([
    ["ORDER_1231", "ORDER", "1231"],
    ["ORDER_1231_7", "ORDER", "1231_7"],
    ["refund:42", "", "refund:42"],
    ["_x", "", "x"],
  ])("of %s: model %j, id %j", (text, model, id) => {
    expect(partsOfKey(text)).toEqual({ model, id });
  });
});
