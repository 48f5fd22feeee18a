/**
 * Every state of a key of any kind × every command, by the lease A that the state is about, by a new lease C in A's
 * scope, and by a new lease E without a scope. A cell is the answer, `+` if the record changed, and the holders and
 * waiters afterwards, in the notation of queue-key.ts.
 */
import { DEFAULTS } from "../../lib/core/limits.js";
import { LEASE_MS, MARGIN_MS, outcomeOf } from "../store/fixture.js";
import { IN_S, permits, READER, WRITER } from "./kinds-key.js";
import { type QueueOptions, QueueKey } from "./queue-key.js";

type Step = (key: QueueKey) => unknown;
/** A command, and the function that sends it to the key. A repeats its own request. */
export type Column = readonly [command: string, send: (key: QueueKey, asked: QueueOptions) => Parameters<typeof outcomeOf>[0]];

/** Commands of the lease A: the five of any lease, then those of modes and of operators. */
export const SAME_LEASE: readonly Column[] = [
  ["acquire A", (key, asked) => key.acquire("A", asked)],
  ["acquire A otherwise", (key, asked) => key.acquire("A", { ...asked, requestHash: "others" })],
  ["renew A", (key) => key.renew("A")],
  ["release A", (key) => key.release("A")],
  ["transfer A to D", (key) => key.transfer("A", "D")],
  ["A to exclusive", (key) => key.change("A", "exclusive")],
  ["A to shared", (key) => key.change("A", "shared")],
  ["check A", (key) => key.check("A")],
  ["break A", (key) => key.break("A")],
  ["break A now", (key) => key.break("A", 0)],
];

const acquires = (letter: string, kinds: Readonly<Record<string, QueueOptions>>, also: QueueOptions = {}): readonly Column[] =>
  Object.entries(kinds).map(([kind, options]) => [`${letter} ${kind}`, (key) => key.acquire(letter, { ...options, ...also })]);
const KINDS = { exclusive: WRITER, shared: READER, "1 of 3": permits(1) };
const OF_SCOPE = { ...KINDS, "1 of 2": permits(1, 2) };
const OF_NOBODY = { ...KINDS, "2 of 3": permits(2), "1 of 2": permits(1, 2) };
const WAITING = { wait: true } as const;

/** Acquires of a new lease in A's scope. */
export const SAME_SCOPE = acquires("C", OF_SCOPE, IN_S);
/** The same, by a lease that waits if it must. */
export const SAME_SCOPE_WAITING = acquires("C", OF_SCOPE, { ...IN_S, ...WAITING });
/** Acquires of a new lease without a scope. */
export const OTHER = acquires("E", OF_NOBODY);
/** The same, by a lease that waits if it must. */
export const OTHER_WAITING = acquires("E", OF_NOBODY, WAITING);

/** A state of a key, and the steps into it. */
export interface State {
  readonly state: string;
  readonly steps: readonly Step[];
  /** The options of A's request, if A doesn't have the lock yet. */
  readonly asked?: QueueOptions;
}

const grant =
  (letter: string, ...options: readonly object[]): Step =>
  (key) =>
    key.acquire(letter, Object.assign({}, ...options));
const waits =
  (letter: string, ...options: readonly object[]): Step =>
  (key) =>
    key.ask(letter, Object.assign({}, ...options));
const releases =
  (letter: string): Step =>
  (key) =>
    key.release(letter);
const at =
  (ms: number, aheadMs?: number): Step =>
  (key) =>
    key.at(ms, aheadMs);
const LATER = at(1);
const MARGIN = at(LEASE_MS);
const TAKEABLE = at(LEASE_MS + MARGIN_MS);
const LAPSED = at(1 + DEFAULTS.offerWindowMs);
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
  { state: "A exclusive, B waits", steps: [grant("A", IN_S, WRITER), waits("B"), LATER] },
  { state: "A exclusive, B waits and the margin is over", steps: [grant("A", IN_S, WRITER), waits("B"), TAKEABLE] },
  { state: "A exclusive, B waits to read", steps: [grant("A", IN_S, WRITER), waits("B", READER), LATER] },
  { state: "A shared, B waits to write", steps: [grant("A", IN_S, READER), waits("B"), LATER] },
  { state: "A has 1 of 3, B waits for 3", steps: [grant("A", IN_S, permits(1)), waits("B", permits(3)), LATER] },
  {
    state: "A shared, it is B's turn to read",
    steps: [grant("F"), waits("A", IN_S, READER), waits("B", READER), releases("F"), waits("A", IN_S, READER), LATER],
  },
  { state: "A waits to write, B exclusive", asked: IN_S, steps: [grant("B"), waits("A", IN_S), LATER] },
  { state: "A waits to write, B shared", asked: IN_S, steps: [grant("B", READER), waits("A", IN_S), LATER] },
  { state: "A waits to read, B exclusive", asked: { ...IN_S, ...READER }, steps: [grant("B"), waits("A", IN_S, READER), LATER] },
  {
    state: "A waits for 2 of 3, B has 2",
    asked: { ...IN_S, ...permits(2) },
    steps: [grant("B", permits(2)), waits("A", IN_S, permits(2)), LATER],
  },
  { state: "A waits to write, B's margin is over", asked: IN_S, steps: [grant("B"), waits("A", IN_S), TAKEABLE] },
  {
    state: "A waits to write, its scope's B exclusive",
    asked: IN_S,
    steps: [grant("F"), waits("A", IN_S), waits("B", IN_S, { priority: 1 }), releases("F"), waits("B", IN_S, { priority: 1 }), LATER],
  },
  { state: "A's turn to write", asked: IN_S, steps: [grant("B"), waits("A", IN_S), releases("B"), LATER] },
  { state: "A's turn to write, B waits", asked: IN_S, steps: [grant("F"), waits("A", IN_S), waits("B"), releases("F"), LATER] },
  { state: "A's turn to write lapsed", asked: IN_S, steps: [grant("B"), waits("A", IN_S), releases("B"), LAPSED] },
  {
    state: "A's turn to write lapsed, B waits and was not heard of",
    asked: IN_S,
    steps: [grant("F"), waits("A", IN_S), waits("B"), LATER, releases("F"), LAPSED],
  },
  { state: "A's turn to read", asked: { ...IN_S, ...READER }, steps: [grant("B"), waits("A", IN_S, READER), releases("B"), LATER] },
  {
    state: "A's turn to read, B waits to write",
    asked: { ...IN_S, ...READER },
    steps: [grant("F"), waits("A", IN_S, READER), waits("B"), releases("F"), LATER],
  },
  {
    state: "A's turn for 2 of 3",
    asked: { ...IN_S, ...permits(2) },
    steps: [grant("B", permits(2)), waits("A", IN_S, permits(2)), releases("B"), LATER],
  },
];

/** The outcome of each of these commands in the state, each on a copy of the key. */
export function play({ steps, asked = {} }: State, columns: readonly Column[]): string {
  const start = new QueueKey();
  for (const step of steps) step(start);
  const cells = columns.map(([, send]) => {
    const key = start.copy();
    const outcome = outcomeOf(send(key, asked));
    const changed = key.record?.version !== start.record?.version ? "+" : "";
    return [outcome, [changed, key.all].join("")].filter(Boolean).join(" ");
  });
  return cells.join(" | ");
}
