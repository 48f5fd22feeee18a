/** The stored output of a command is the printed output or its size, and lists end. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RESULT_BYTES, OutputBuffer, replayOf } from "../../bin/exec/stored-output.js";
import { firstOf } from "../../console/pages.js";
import { cutMiddle } from "../../bin/table.js";
import { widthOf } from "../../bin/terminal.js";

function kept(chunks: readonly Uint8Array[], exitCode: number) {
  const output = new OutputBuffer();
  for (const chunk of chunks) output.add(Buffer.from(chunk));
  return output.result(exitCode);
}

describe("output that is kept", () => {
  it("comes back byte for byte, with its status, whatever it is and however it came", () => {
    const anyStatus = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.uint8Array(),
            fc.string().map((text) => Buffer.from(text)),
          ),
        ),
        anyStatus,
        (chunks, status) => {
          const value = JSON.parse(JSON.stringify(kept(chunks, status))) as unknown;
          expect(replayOf(value)).toEqual({ exitCode: status, stdout: Buffer.concat(chunks) });
        },
      ),
    );
  });

  it("of text whose characters were cut in two by the way it came is still text", () => {
    const bytes = Buffer.from("für 5 €");
    expect(
      kept(
        Array.from(bytes, (byte) => Buffer.of(byte)),
        0,
      ),
    ).toEqual({ exitCode: 0, stdout: "für 5 €" });
  });

  it("is never over what the service keeps, and says how much it was when it is not kept", () => {
    for (const bytes of [RESULT_BYTES - 100, RESULT_BYTES, RESULT_BYTES + 1, 3 * RESULT_BYTES]) {
      const half = Math.floor(bytes / 2);
      const value = kept([Buffer.alloc(half, "x"), Buffer.alloc(bytes - half, "x")], 7);
      expect(Buffer.byteLength(JSON.stringify(value))).toBeLessThanOrEqual(RESULT_BYTES);
      const replay = replayOf(value);
      expect(replay.exitCode).toBe(7);
      if ("stdout" in replay) expect(replay.stdout.equals(Buffer.alloc(bytes, "x"))).toBe(true);
      else expect([replay.omittedBytes, bytes >= RESULT_BYTES]).toEqual([bytes, true]);
    }
  });
});

describe("a list in pages", () => {
  it("whose pages are all empty and never the last is given up, and said to have more", async () => {
    let pages = 0;
    const endless = async () => ({ items: [], cursor: String(++pages) });
    expect(await firstOf(10, endless)).toMatchObject({ items: [], more: true, requests: 1000 });
    expect(pages).toBe(1000);
  });

  it("is read to its end, or to as many as were asked for, in pages of at most a hundred", async () => {
    const all = Array.from({ length: 250 }, (_, at) => at);
    const asked: number[] = [];
    const page = async ({ max, cursor = "0" }: { max: number; cursor?: string }) => {
      asked.push(max);
      const end = Number(cursor) + max;
      return { items: all.slice(Number(cursor), end), ...(end < all.length && { cursor: String(end) }) };
    };
    expect(await firstOf(1000, page)).toEqual({ items: all, more: false, requests: 3 });
    expect(await firstOf(120, page)).toEqual({ items: all.slice(0, 120), more: true, cursor: "120", requests: 2 });
    expect((await firstOf(1000, page, { cursor: "120" })).items).toEqual(all.slice(120));
    expect(Math.max(...asked)).toBe(100);
  });
});

describe("a key that is cut", () => {
  it("takes no more columns than it may, whatever its parts are made of", () => {
    const parts = fc.array(fc.constantFrom("会", "計", "🎉", "é", "e\u0301", "👨‍👩‍👧", "x", "~", "ﾊ", "한"), { minLength: 20 });
    fc.assert(
      fc.property(parts, fc.integer({ min: 5, max: 19 }), (characters, columns) => {
        expect(widthOf(cutMiddle(characters.join(""), columns))).toBeLessThanOrEqual(columns);
      }),
    );
  });

  it("is as long as it may be, with the beginning and the end that it has", () => {
    const anyKey = fc.stringMatching(/^[\w.:~-]{30,200}$/);
    fc.assert(
      fc.property(anyKey, fc.integer({ min: 5, max: 29 }), (key, columns) => {
        const cut = cutMiddle(key, columns);
        const [head = "", tail = ""] = cut.split("…");
        expect(cut).toHaveLength(columns);
        expect(key.startsWith(head) && key.endsWith(tail)).toBe(true);
        expect(head.length - tail.length).toBeLessThanOrEqual(1);
      }),
    );
  });
});
