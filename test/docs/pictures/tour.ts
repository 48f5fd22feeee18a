/** The recording of the tour: scenes of `npm run demo`, one after another, as they ran. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { filmOf } from "./film.js";
import { FOLDER, TOUR_SCENES, TOURS } from "./pictures.js";
import { type Screen, record } from "./recording.js";

/** More rows than a scene has: a film leaves out those that stay empty. */
const ROWS = 30;
/** A pause in which nothing happens, such as the start of the processes, is shown so long at most, in ms. */
const PAUSE_MAX_MS = 1_200;
/** The time to read the end of a scene, in ms. */
const READ_MS = 3_000;
/** The length of the film, in ms. The scenes are shown faster by as much as it needs; the film says so. */
const LENGTH_MS = 25_000;

const TITLE =
  "The tour in a terminal: a holder is killed and the next in the queue gets the key, a late write is refused by its token, and a payment is made once though its first process dies.";

/** Runs the scenes in a terminal of each width, and makes their films. @throws Error if a scene did not prove what it says */
export async function pictureTour(): Promise<void> {
  for (const { file, columns } of TOURS) await writeFile(join(FOLDER, file), await filmIn(columns));
}

async function filmIn(columns: number): Promise<string> {
  const screens: Screen[] = [];
  let atMs = 0;
  for (const scene of TOUR_SCENES) {
    const recorded = changesOf(await record(["npm", "run", "--silent", "demo", "--", "--only", scene], { columns, rows: ROWS }));
    for (const [at, screen] of recorded.entries()) {
      if (at > 0) atMs += Math.min(PAUSE_MAX_MS, screen.atMs - recorded[at - 1]!.atMs);
      screens.push({ ...screen, atMs });
    }
    atMs += READ_MS;
  }
  const speed = Math.max(1, atMs / LENGTH_MS);
  const faster = screens.map((screen) => ({ ...screen, atMs: screen.atMs / speed }));
  return filmOf({ title: TITLE, command: "npm run demo", columns, speed, lengthMs: atMs / speed, screens: faster });
}

/** The screens that differ from the one before, from the first that shows something on. */
function changesOf(recorded: readonly Screen[]): readonly Screen[] {
  const screens = recorded.map((screen) => ({ ...screen, rows: sceneOf(screen) }));
  const texts = screens.map(({ rows }) => JSON.stringify(rows));
  const changed = screens.filter((_, at) => texts[at] !== texts[at - 1]);
  return changed.slice(changed.findIndex(({ rows }) => rows.some((runs) => runs.length > 0)));
}

/** The scene and its legend: without empty rows, without what is dim as a whole, such as the console's address, and without the tour's end. */
function sceneOf({ rows }: Screen): Screen["rows"] {
  const end = rows.findIndex((runs) => runs.some(({ text }) => text.includes(" proved in ")));
  const scene = rows.slice(0, end < 0 ? undefined : end).filter((runs) => runs.some(({ isDim }) => !isDim));
  return Array.from({ length: ROWS }, (_, row) => scene[row] ?? []);
}
