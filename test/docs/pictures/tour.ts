/** The recording of the tour: scenes of `npm run demo`, one after another, as they ran. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { filmOf } from "./film.js";
import { FOLDER, TOUR } from "./pictures.js";
import { type Screen, record } from "./recording.js";

/** The scenes that are shown, by their names on the command line. */
const SCENES = ["crash", "zombie", "payment"];
const SIZE = { columns: 98, rows: 10 };
/** The rows above, in and below a scene that say where to watch it and what to do next, which a picture does without. */
const OTHER_ROWS = 6;
/** A pause in which nothing happens, such as the start of the processes, is shown so long at most, in ms. */
const PAUSE_MAX_MS = 1_200;
/** The time to read the end of a scene, in ms. */
const READ_MS = 3_000;
/** The length of the film, in ms. The scenes are shown faster by as much as it needs; the film says so. */
const LENGTH_MS = 25_000;

const TITLE =
  "The tour in a terminal: a holder is killed and the next in the queue gets the key, a late write is refused by its token, and a payment is made once though its first process dies.";

/** Runs the scenes, and makes their film. @throws Error if a scene did not prove what it says */
export async function pictureTour(): Promise<void> {
  const screens: Screen[] = [];
  let atMs = 0;
  for (const scene of SCENES) {
    const recorded = changesOf(
      await record(["npm", "run", "--silent", "demo", "--", "--only", scene], { ...SIZE, rows: SIZE.rows + OTHER_ROWS }),
    );
    for (const [at, screen] of recorded.entries()) {
      if (at > 0) atMs += Math.min(PAUSE_MAX_MS, screen.atMs - recorded[at - 1]!.atMs);
      screens.push({ ...screen, atMs });
    }
    atMs += READ_MS;
  }
  const speed = Math.max(1, atMs / LENGTH_MS);
  const faster = screens.map((screen) => ({ ...screen, atMs: screen.atMs / speed }));
  const film = { title: TITLE, command: "npm run demo", columns: SIZE.columns, speed, lengthMs: atMs / speed };
  await writeFile(join(FOLDER, TOUR), filmOf({ ...film, screens: faster }));
}

/** The screens that differ from the one before, from the first that shows something on. */
function changesOf(recorded: readonly Screen[]): readonly Screen[] {
  const screens = recorded.map((screen) => ({ ...screen, rows: sceneOf(screen) }));
  const texts = screens.map(({ rows }) => JSON.stringify(rows));
  const changed = screens.filter((_, at) => texts[at] !== texts[at - 1]);
  return changed.slice(changed.findIndex(({ rows }) => rows.some((runs) => runs.length > 0)));
}

/** The scene and its legend: without the console's addresses, without empty rows above and without the last line. */
function sceneOf({ rows }: Screen): Screen["rows"] {
  const named = rows.filter((runs) => !runs.some(({ text }) => /\/console| proved in /.test(text)));
  const scene = named.slice(
    Math.max(
      0,
      named.findIndex((runs) => runs.length > 0),
    ),
  );
  return Array.from({ length: SIZE.rows }, (_, row) => scene[row] ?? []);
}
