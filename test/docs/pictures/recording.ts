/** A recording of a program in a terminal of its own, which util-linux's `script` makes: its screens, and when they changed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
// The package is CommonJS: Node finds no named exports in it.
import xterm from "@xterm/headless";
import type { IBufferLine } from "@xterm/headless";
import { plainEnvironment } from "../npm-start.js";

/** Characters of one style. */
export interface Run {
  readonly text: string;
  /** The column of its first character. */
  readonly column: number;
  /** One of the 8 colours of a terminal; undefined is the default. */
  readonly colour: number | undefined;
  readonly isBold: boolean;
  readonly isDim: boolean;
}

/** The terminal from `atMs` on: the runs of each row. */
export interface Screen {
  readonly atMs: number;
  readonly rows: readonly (readonly Run[])[];
}

/** The size of a terminal, in characters. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Output within so many ms is one change of the screen. */
const CHANGE_MS = 40;

/** Runs it, and returns every change of the screen. @throws Error unless it succeeds */
export async function record(command: readonly string[], { columns, rows }: Size): Promise<readonly Screen[]> {
  const line = `stty cols ${columns} rows ${rows}; exec ${command.join(" ")}`;
  const script = spawn("script", ["-q", "-e", "-f", "-c", line, "/dev/null"], {
    env: plainEnvironment({ TERM: "xterm-256color", SHELL: "/bin/sh" }),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output: { readonly atMs: number; readonly text: string }[] = [];
  script.stdout.setEncoding("utf8").on("data", (text: string) => output.push({ atMs: performance.now(), text }));
  const [status] = (await once(script, "close")) as [number | null];
  if (status !== 0) throw new Error(`${command.join(" ")} ended with ${status}:\n${output.map(({ text }) => text).join("")}`);

  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
  const screens: Screen[] = [];
  for (const [at, { atMs, text }] of output.entries()) {
    await new Promise<void>((resolve) => terminal.write(text, resolve));
    if ((output[at + 1]?.atMs ?? Infinity) - atMs < CHANGE_MS) continue;
    const { active } = terminal.buffer;
    screens.push({ atMs, rows: Array.from({ length: rows }, (_, row) => runsOf(active.getLine(active.viewportY + row))) });
  }
  return screens;
}

function runsOf(line: IBufferLine | undefined): readonly Run[] {
  const runs: Run[] = [];
  for (let column = 0; column < (line?.length ?? 0); column++) {
    const cell = line?.getCell(column);
    const text = cell?.getChars() || " ";
    const colour = cell?.isFgPalette() ? cell.getFgColor() % 8 : undefined;
    const style = { colour, isBold: cell?.isBold() !== 0, isDim: cell?.isDim() !== 0 };
    const last = runs.at(-1);
    if (last && last.colour === style.colour && last.isBold === style.isBold && last.isDim === style.isDim)
      runs[runs.length - 1] = { ...last, text: last.text + text };
    else runs.push({ text, column, ...style });
  }
  return runs.filter(({ text }) => text.trim() !== "");
}
