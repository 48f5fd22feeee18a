/** The rate at which `npm run sim` plays histories, on every core. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Report, Sizes } from "./report/report.js";
import { markdownTable } from "./report/table.js";

const HISTORIES = 60;
const QUICK_HISTORIES = 10;
/** A run of so few takes hardly longer than its start. */
const START_HISTORIES = 2;
const MAIN = join(import.meta.dirname, "../test/simulation/main.ts");

/** The rate of the simulation, without the time of its start. */
export interface SimulationFigures {
  readonly histories: number;
  readonly perSecond: number;
}

/** Returns the table. @throws Error if a history violates a property. */
export async function simulation({ isQuick }: Sizes): Promise<Report> {
  const startMs = await playMs(START_HISTORIES);
  const all = isQuick ? QUICK_HISTORIES : HISTORIES;
  const histories = all - START_HISTORIES;
  const figures: SimulationFigures = { histories, perSecond: (1000 * histories) / ((await playMs(all)) - startMs) };
  return {
    tables: [
      markdownTable([
        ["histories", "a second"],
        [`${histories}`, figures.perSecond.toFixed(1)],
      ]),
    ],
    figures,
  };
}

async function playMs(histories: number): Promise<number> {
  const beganMs = performance.now();
  const args = ["--import", "tsx", MAIN, "--seeds", String(histories)];
  const said = await text(spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }).stdout);
  // Its status is 1 also where so few histories miss a situation.
  if (!said.includes(`${histories} histories, 0 violations`)) throw new Error(`the simulation said: ${said}`);
  return performance.now() - beganMs;
}
