/** Lanes: what each process did when, as a line of characters under a common time. Pure. */

/** The state of a process at a moment. */
export type State = "away" | "waiting" | "holding" | "frozen" | "dead";

/** A process, and its states, each with the time from which it lasts, in ms since the scene began. */
export interface Lane {
  readonly name: string;
  readonly changes: readonly { readonly atMs: number; readonly state: State }[];
  /** Its last message, for people. */
  readonly said: string;
}

/** The characters of the states. Each can be told from the others without colour. */
export const SIGNS: Readonly<Record<State, string>> = { away: " ", waiting: "·", holding: "█", frozen: "░", dead: " " };
/** The sign of the moment at which a process is killed. */
export const KILLED = "✕";
const NAME_CHARS = 8;
/** The longest message of a process. */
const SAID_CHARS = 25;
/** The most signs of a lane: it then has the 79 characters that fit into every terminal. */
const SIGNS_MAX = 43;
const SIGNS_MIN = 5;
/** The time that a lane shows, in ms: a sign of the longest one is 0.2 s. */
const LANE_MS = SIGNS_MAX * 200;

/** Returns the number of signs for which lanes of at most `width` characters have room beside what their processes say. */
export function signsWithin(width: number): number {
  return Math.max(SIGNS_MIN, Math.min(SIGNS_MAX, width - NAME_CHARS - 1 - SAID_CHARS));
}

/** Returns the time that a sign stands for in lanes of so many signs, in ms: however few they are, nearly a whole scene fits. */
export function stepMsOf(signs: number): number {
  return Math.ceil(LANE_MS / signs / 100) * 100;
}

/** Returns the meaning of the signs, each with its words. */
export function legendOf(stepMs: number): readonly string[] {
  const { holding, waiting, frozen } = SIGNS;
  return [`${holding} holds`, `${waiting} waits`, `${frozen} is frozen`, `${KILLED} is killed`, `(a sign is ${stepMs / 1000} s)`];
}

/** Returns the lane as text from the scene's begin until `nowMs`: the last `columns` signs of it, and what the process said. */
export function laneText({ name, changes, said }: Lane, nowMs: number, columns: number, stepMs: number): string {
  const last = Math.floor(nowMs / stepMs);
  const first = Math.max(0, last - columns + 1);
  const signs = Array.from({ length: last - first + 1 }, (_, at) => signAt(changes, (first + at) * stepMs, stepMs));
  return `${name.padEnd(NAME_CHARS)}${signs.join("").padEnd(columns)} ${said}`.trimEnd();
}

/** The sign for the time from `fromMs` on: the longest hold is drawn even if it was shorter than a step. */
function signAt(changes: Lane["changes"], fromMs: number, stepMs: number): string {
  const within = changes.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + stepMs).map(({ state }) => state);
  if (within.includes("dead")) return KILLED;
  if (within.includes("holding")) return SIGNS.holding;
  return SIGNS[changes.findLast(({ atMs }) => atMs < fromMs + stepMs)?.state ?? "away"];
}
