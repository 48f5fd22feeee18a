/**
 * Every state of a key of any kind × every command, by the lease A that the state is about, by a new lease C
 * of A's scope, and by a new lease E of nobody's: what is answered, `+` if the record changed, and who is on
 * it then, in the notation of kinds-key.ts.
 */
import { LEASE_MS, MARGIN_MS, outcomeOf } from "../store/scene.js";
import { IN_S, Key, permits, READER, WRITER } from "./kinds-key.js";

type Step = (key: Key) => unknown;
type Column = readonly [command: string, send: (key: Key) => Parameters<typeof outcomeOf>[0]];

/** Commands of the lease A: five that any lease has, then those of modes and of operators. */
export const SAME_LEASE: readonly Column[] = [
  ["acquire A", (key) => key.acquire("A")],
  ["acquire A otherwise", (key) => key.acquire("A", { params: "others" })],
  ["renew A", (key) => key.renew("A")],
  ["release A", (key) => key.release("A")],
  ["transfer A to D", (key) => key.transfer("A", "D")],
  ["A to exclusive", (key) => key.change("A", "exclusive")],
  ["A to shared", (key) => key.change("A", "shared")],
  ["check A", (key) => key.check("A")],
  ["break A", (key) => key.break("A")],
  ["break A now", (key) => key.break("A", 0)],
];

/** Acquires of a new lease in A's scope. */
export const SAME_SCOPE: readonly Column[] = [
  ["C exclusive", (key) => key.acquire("C", { ...IN_S })],
  ["C shared", (key) => key.acquire("C", { ...IN_S, ...READER })],
  ["C 1 of 3", (key) => key.acquire("C", { ...IN_S, ...permits(1) })],
  ["C 1 of 2", (key) => key.acquire("C", { ...IN_S, ...permits(1, 2) })],
];

/** Acquires of a new lease without a scope. */
export const OTHER: readonly Column[] = [
  ["E exclusive", (key) => key.acquire("E")],
  ["E shared", (key) => key.acquire("E", READER)],
  ["E 1 of 3", (key) => key.acquire("E", permits(1))],
  ["E 2 of 3", (key) => key.acquire("E", permits(2))],
  ["E 1 of 2", (key) => key.acquire("E", permits(1, 2))],
];

/** A state of a key, and how it gets there. */
export interface State {
  readonly state: string;
  readonly steps: readonly Step[];
}

const grant =
  (letter: string, ...options: readonly object[]): Step =>
  (key) =>
    key.acquire(letter, Object.assign({}, ...options));
const at =
  (ms: number, aheadMs?: number): Step =>
  (key) =>
    key.at(ms, aheadMs);
const LATER = at(1);
const MARGIN = at(LEASE_MS);
const TAKEABLE = at(LEASE_MS + MARGIN_MS);
const LONG = { leaseMs: 3 * LEASE_MS };

/** The states, in the order of the table in kinds.test.ts. */
export const STATES: readonly State[] = [
  { state: "free", steps: [] },
  { state: "free, used as a semaphore before", steps: [grant("B", permits(2)), (key) => key.release("B"), LATER] },
  { state: "A exclusive", steps: [grant("A", IN_S, WRITER), LATER] },
  { state: "A exclusive, ran out", steps: [grant("A", IN_S, WRITER), MARGIN] },
  { state: "A exclusive, margin over by the later clock alone", steps: [grant("A", IN_S, WRITER), at(LEASE_MS + MARGIN_MS - 1, 9_000)] },
  { state: "A exclusive, margin over", steps: [grant("A", IN_S, WRITER), TAKEABLE] },
  { state: "A exclusive, being broken", steps: [grant("A", IN_S, WRITER), LATER, (key) => key.break("A")] },
  { state: "A shared", steps: [grant("A", IN_S, READER), LATER] },
  { state: "A shared, ran out", steps: [grant("A", IN_S, READER), MARGIN] },
  { state: "A shared beside B", steps: [grant("A", IN_S, READER), grant("B", READER), LATER] },
  { state: "A shared beside B that ran out", steps: [grant("A", IN_S, READER, LONG), grant("B", READER), MARGIN] },
  { state: "A shared beside B whose margin is over", steps: [grant("A", IN_S, READER, LONG), grant("B", READER), TAKEABLE] },
  {
    state: "A shared, B waits to upgrade",
    steps: [grant("A", IN_S, READER), grant("B", READER), LATER, (key) => key.change("B", "exclusive")],
  },
  { state: "A has 1 of 3", steps: [grant("A", IN_S, permits(1)), LATER] },
  { state: "A has 1 of 3, B has 1", steps: [grant("A", IN_S, permits(1)), grant("B", permits(1)), LATER] },
  { state: "A has 1 of 3, B has 2", steps: [grant("A", IN_S, permits(1)), grant("B", permits(2)), LATER] },
  { state: "A has 1 of 3, B had 2 and ran out", steps: [grant("A", IN_S, permits(1), LONG), grant("B", permits(2)), MARGIN] },
  { state: "A has 1 of 3, B had 2 and its margin is over", steps: [grant("A", IN_S, permits(1), LONG), grant("B", permits(2)), TAKEABLE] },
  { state: "B nested in A exclusive", steps: [grant("A", IN_S), LATER, grant("B", IN_S)] },
  { state: "B nested in A exclusive, A hung and ran out", steps: [grant("A", IN_S), LATER, grant("B", IN_S, LONG), MARGIN] },
  { state: "B nested in A exclusive, B hung and ran out", steps: [grant("A", IN_S, LONG), grant("B", IN_S), MARGIN] },
  { state: "B nested in A shared", steps: [grant("A", IN_S, READER), LATER, grant("B", IN_S, READER)] },
  { state: "B nested in A, who has 2 of 3", steps: [grant("A", IN_S, permits(2)), LATER, grant("B", IN_S, permits(1))] },
];

/** What comes of each of these commands in the state, each on a key of its own. */
export function play({ steps }: State, columns: readonly Column[]): string {
  const start = new Key();
  for (const step of steps) step(start);
  const cells = columns.map(([, send]) => {
    const key = start.copy();
    const outcome = outcomeOf(send(key));
    const changed = key.record?.version !== start.record?.version ? "+" : "";
    return [outcome, [changed, key.holds].join("")].filter(Boolean).join(" ");
  });
  return cells.join(" | ");
}
