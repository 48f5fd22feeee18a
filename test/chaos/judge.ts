/**
 * Judges the histories of workers and the data of the resource, key by key:
 *
 * - no two holds were treated as held at the same instant;
 * - the tokens in the log strictly increase;
 * - some order of the increments explains every answer and the final count. An increment whose answer was lost may have
 *   happened or not, so it forks the state;
 * - after the faults, every key was granted again.
 */
import type { Line } from "./worker.js";
import type { Guarded } from "./resource.js";

/** The outcome of a run. */
export interface Verdict {
  /** The broken properties, each with its key. */
  readonly violations: readonly { readonly key: string; readonly what: string }[];
  /** The number of events of each kind. */
  readonly counts: Readonly<Record<string, number>>;
}

/** An increment of a key's counter to `value`. */
export interface Increment {
  readonly value: number;
  readonly hold: string;
  readonly invokedAt: number;
  /** Absent if its answer was lost: it may take effect at any time after its invocation, or never. */
  readonly returnedAt?: number;
}

/** One hold's part of a key's history. */
interface Stay {
  readonly hold: string;
  readonly grantedAt: number;
  /** The last time at which it was treated as held. */
  heldUntil: number;
  value?: number;
  wroteAt?: number;
  isRefused: boolean;
}

/** Judges the lines of all workers and the resource's data. `healedAt` is the time of the last fault, if keys had time to recover from it. */
export function judge(
  lines: readonly Line[],
  resource: Readonly<Record<string, Guarded>>,
  keys: readonly string[],
  healedAt?: number,
): Verdict {
  const counts: Record<string, number> = {};
  const count = (what: string, by = 1): void => void (counts[what] = (counts[what] ?? 0) + by);
  for (const { event, code } of lines) if (event !== "writing") count(event === "failed" ? `failed: ${code}` : event);
  const violations = keys.flatMap((key) => {
    const stays = staysOf(lines.filter((line) => line.key === key && line.event !== "failed"));
    const increments = stays.flatMap(incrementOf);
    count("unknown outcomes", increments.filter(({ returnedAt }) => returnedAt === undefined).length);
    const { count: final, log, refusals } = resource[key] ?? { count: 0, log: [], refusals: 0 };
    count("refusals of a token at the resource", refusals);
    const isGranted = healedAt === undefined || stays.some(({ grantedAt }) => grantedAt > healedAt);
    const found = [
      together(stays),
      disordered(log),
      unexplained(increments, final),
      isGranted ? undefined : "not granted again after the faults",
    ];
    return found.flatMap((what) => (what === undefined ? [] : [{ key, what }]));
  });
  return { violations, counts };
}

function staysOf(lines: readonly Line[]): readonly Stay[] {
  const stays = new Map<string, Stay>();
  for (const { event, hold, at, isHeld, value } of [...lines].sort((a, b) => a.at - b.at)) {
    const stay = stays.get(hold) ?? { hold, grantedAt: at, heldUntil: -Infinity, isRefused: false };
    stays.set(hold, stay);
    if (isHeld) stay.heldUntil = at;
    if (event === "writing" && value !== undefined) stay.value = value;
    if (event === "wrote") stay.wroteAt = at;
    if (event === "refused") stay.isRefused = true;
  }
  return [...stays.values()];
}

function incrementOf({ hold, value, grantedAt, wroteAt, isRefused }: Stay): readonly Increment[] {
  if (value === undefined || isRefused) return [];
  return [{ value, hold, invokedAt: grantedAt, ...(wroteAt !== undefined && { returnedAt: wroteAt }) }];
}

/** Finds two holds that were treated as held at the same instant. */
function together(stays: readonly Stay[]): string | undefined {
  const believed = stays.filter(({ grantedAt, heldUntil }) => heldUntil >= grantedAt).sort((a, b) => a.grantedAt - b.grantedAt);
  let longest: Stay | undefined;
  for (const stay of believed) {
    if (longest && stay.grantedAt <= longest.heldUntil) {
      return `${longest.hold} and ${stay.hold} both held it for ${Math.min(longest.heldUntil, stay.heldUntil) - stay.grantedAt} µs`;
    }
    if (stay.heldUntil > (longest?.heldUntil ?? -Infinity)) longest = stay;
  }
  return undefined;
}

/** Finds a token of the log that is not above the one before it. */
function disordered(log: Guarded["log"]): string | undefined {
  const at = log.findIndex(({ token }, index) => token !== undefined && token <= (log[index - 1]?.token ?? -Infinity));
  return at < 0 ? undefined : `token ${log[at]?.token} of ${log[at]?.hold} follows token ${log[at - 1]?.token} of ${log[at - 1]?.hold}`;
}

/** A possible state: the count, and the unanswered increments that took effect and will be answered. */
interface State {
  readonly count: number;
  readonly done: ReadonlySet<Increment>;
}

/**
 * Finds an increment that no order explains. All possible states are followed through the invocations and answers in the
 * order of time. Before an increment is answered, every increment that is in progress may take effect, and the answered
 * one must have.
 */
export function unexplained(increments: readonly Increment[], finalCount: number): string | undefined {
  const events = increments.flatMap((increment) => {
    const { invokedAt, returnedAt } = increment;
    const invoked = { at: invokedAt, increment, isAnswer: false };
    return returnedAt === undefined ? [invoked] : [invoked, { at: returnedAt, increment, isAnswer: true }];
  });
  const inProgress = new Set<Increment>();
  let states: readonly State[] = [{ count: 0, done: new Set() }];
  for (const { increment, isAnswer } of events.sort((a, b) => a.at - b.at || Number(a.isAnswer) - Number(b.isAnswer))) {
    inProgress.add(increment);
    if (!isAnswer) continue;
    states = distinct(
      states
        .flatMap((state) => reachable(state, inProgress))
        .filter(({ done }) => done.has(increment))
        .map(({ count, done }) => ({ count, done: new Set([...done].filter((one) => one !== increment)) })),
    );
    if (states.length === 0) return `no order of the increments explains that ${increment.hold} counted to ${increment.value}`;
    inProgress.delete(increment);
    // An increment of unknown outcome sets a count that was passed since: it can't take effect any more.
    const lowest = Math.min(...states.map(({ count }) => count));
    for (const one of inProgress) if (one.returnedAt === undefined && one.value <= lowest) inProgress.delete(one);
  }
  const counts = states.flatMap((state) => reachable(state, inProgress)).map(({ count }) => count);
  return counts.includes(finalCount)
    ? undefined
    : `the count is ${finalCount}, and the answers allow only ${[...new Set(counts)].join(", ")}`;
}

/** Returns the state, and every state that increments in progress can make of it. */
function reachable(state: State, inProgress: ReadonlySet<Increment>): readonly State[] {
  const next = [...inProgress].filter((one) => one.value === state.count + 1 && !state.done.has(one));
  return [state, ...next.flatMap((one) => reachable(after(state, one), inProgress))];
}

function after({ count, done }: State, increment: Increment): State {
  return { count: count + 1, done: increment.returnedAt === undefined ? done : new Set([...done, increment]) };
}

function distinct(states: readonly State[]): readonly State[] {
  const nameOf = ({ count, done }: State): string =>
    `${count} ${[...done]
      .map(({ hold }) => hold)
      .sort()
      .join(" ")}`;
  return [...new Map(states.map((state) => [nameOf(state), state])).values()];
}
