/** Text of others on a terminal: no character of it moves the cursor, sets a colour, or changes the direction of writing. */
import { describe, expect, it } from "vitest";
import { plain, plainJson, plainLines } from "../../console/text/plain-text.js";

/** C0, U+007F and C1; the marks, separators, embeddings and isolates of bidirectional text. */
const CONTROLS = [
  ...Array.from({ length: 0x20 }, (_, code) => code),
  ...Array.from({ length: 0x21 }, (_, at) => 0x7f + at),
  ...[0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069],
].map((code) => String.fromCharCode(code));

describe("plain text", () => {
  it("has no character that a terminal obeys, also as JSON", () => {
    for (const character of CONTROLS) {
      const owner = `a${character}b`;
      expect(plain(owner)).toBe("a\uFFFDb");
      const json = plainJson({ owner });
      expect(json).not.toContain(character);
      expect(JSON.parse(json)).toEqual({ owner });
    }
  });

  it("keeps its line ends and tabs, where it has several lines", () => {
    expect(plainLines("a\tb\r\nc\n\rd\u001B[2J")).toBe("a\tb\nc\n\uFFFDd\uFFFD[2J");
  });

  it("control: other text stays as it is, in any writing", () => {
    const text = "checkout-7, Zoë, 会計部 🎉, עברית";
    expect([plain(text), plainLines(text), plainJson(text)]).toEqual([text, text, JSON.stringify(text)]);
  });
});
