/** The tour in a narrow terminal: whole scenes, and whole words. */
import xterm from "@xterm/headless";
import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { type Lane, laneText, signsWithin, stepMsOf } from "../../examples/tour/lanes.js";
import { painterOn } from "../../examples/tour/painter.js";

const SIZE = { cols: 50, rows: 12 };
const KILLED: Lane = {
  name: "ann",
  said: "killed",
  changes: [
    { atMs: 0, state: "holding" },
    { atMs: 1_500, state: "dead" },
  ],
};

describe("a lane", () => {
  it.each([40, 50, 79, Infinity])(
    "has a whole scene of 8 s in %i columns; control: with signs of 0.2 s a narrow one has not",
    (columns) => {
      const signs = signsWithin(columns);
      expect(laneText(KILLED, 8_000, signs, stepMsOf(signs))).toMatch(/^ann +█+✕ +killed$/);
      if (signs < 40) expect(laneText(KILLED, 8_000, signs, 200)).not.toContain("✕");
    },
  );

  it("has signs of 0.2 s where there is room", () => expect(stepMsOf(signsWithin(Infinity))).toBe(200));
});

/** Returns the lines that a terminal of 50 columns has after `paint`. */
async function shown(paint: (painter: ReturnType<typeof painterOn>) => void): Promise<readonly string[]> {
  const terminal = new xterm.Terminal({ ...SIZE, convertEol: true, allowProposedApi: true });
  let written = "";
  const stream = new Writable({
    write: (text: Buffer, _encoding, done) => {
      written += text.toString();
      done();
    },
  });
  paint(painterOn(Object.assign(stream, { isTTY: true, columns: SIZE.cols }) as unknown as NodeJS.WriteStream));
  await new Promise<void>((resolve) => terminal.write(written, resolve));
  const { active } = terminal.buffer;
  const lines = Array.from({ length: SIZE.rows }, (_, row) => active.getLine(row)!.translateToString(true));
  return lines.slice(0, lines.findLastIndex((line) => line !== "") + 1);
}

describe("a narrow terminal", () => {
  it("has the legend in lines that end between signs, with the time of a sign there", async () => {
    expect(await shown((painter) => painter.legend())).toEqual(["█ holds  · waits  ░ is frozen  ✕ is killed", "(a sign is 0.7 s)"]);
  });

  it("has a sentence of two lines in place of two lanes, and nothing of them beside it", async () => {
    const drawn = { lanes: [KILLED, { ...KILLED, name: "bob" }], nowMs: () => 4_000 };
    const lines = await shown((painter) => {
      const stop = painter.draw(drawn);
      painter.tell("bob has the key", drawn);
      painter.tell("bob has the key, 3.1 s after ann was killed", drawn);
      stop();
    });
    expect(lines.map((line) => line.replaceAll(/ +/g, " "))).toEqual([
      " 4.0 s bob has the key",
      " 4.0 s bob has the key, 3.1 s after ann was",
      " killed",
      " ann ██✕ killed",
      " bob ██✕ killed",
    ]);
  });
});
