/** Every command in every state of a key of locks, with the decision on it and the record before and after. */
import type { AnswerTo, Command, Decision } from "../../lib/core/commands.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import type { LockRecord } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import { LEASE_MS, POLICY } from "../store/fixture.js";
import { IN_S, permits, READER } from "./kinds-key.js";
import { type Column, type State, OTHER, OTHER_WAITING, SAME_LEASE, SAME_SCOPE, SAME_SCOPE_WAITING, STATES } from "./kinds-table.js";
import { QueueKey, writtenOver } from "./queue-key.js";

/** Commands of the lease A in addition to those of the table of states. */
const TIMED: readonly Column[] = [
  ["renew A for less", (key) => key.renew("A", 1)],
  ["renew A for more", (key) => key.renew("A", 4 * LEASE_MS)],
  ["break A in a second", (key) => key.break("A", 1000)],
  ["break A in a day", (key) => key.break("A", LIMITS.drainMaxMs)],
];
/** Commands of the lease A that concern conditions. */
const OF_CONDITIONS: readonly Column[] = [
  ["A waits for a condition", (key) => key.wait("A", "Y")],
  ["A notifies one", (key) => key.notify("A", 1)],
  ["A notifies one, without a sequence", (key) => key.notify("A")],
  ["A notifies all", (key) => key.notify("A", 1, { all: true })],
];
/** Every command on a key of locks. */
export const COLUMNS: readonly Column[] = [
  ...SAME_LEASE,
  ...TIMED,
  ...OF_CONDITIONS,
  ...SAME_SCOPE,
  ...OTHER,
  ...SAME_SCOPE_WAITING,
  ...OTHER_WAITING,
];
const LONG = { leaseMs: 3 * LEASE_MS };

/** States in addition to those of the table. */
const MORE_STATES: readonly State[] = [
  {
    state: "A shared beside B, which lasts longer",
    steps: [(key) => key.acquire("A", READER), (key) => key.acquire("B", { ...READER, ...LONG }), (key) => key.at(1)],
  },
  {
    state: "A nested in B, which lasts longer",
    steps: [(key) => key.acquire("B", { ...IN_S, ...LONG }), (key) => key.acquire("A", IN_S), (key) => key.at(1)],
  },
  { state: "A got the lease of B", steps: [(key) => key.acquire("B"), (key) => key.transfer("B", "A"), (key) => key.at(1)] },
  { state: "A exclusive, being broken by force", steps: [(key) => key.acquire("A"), (key) => key.break("A", 1000), (key) => key.at(1)] },
  {
    state: "A exclusive, was broken by force and B waits",
    steps: [(key) => key.acquire("A"), (key) => key.ask("B"), (key) => key.break("A", 1000), (key) => key.at(1000)],
  },
  {
    state: "A exclusive, of those who wait only B was seen in time",
    steps: [
      (key) => key.acquire("A", { ...IN_S, leaseMs: 10 * LEASE_MS }),
      (key) => key.ask("B"),
      (key) => key.ask("D"),
      (key) => key.at(8_000).ask("B"),
      (key) => key.at(17_000),
    ],
  },
  {
    state: "A has 1 of 3, B's turn for 2 lapsed",
    steps: [
      (key) => key.acquire("A", { ...permits(1), ...IN_S, ...LONG }),
      (key) => key.acquire("F", permits(2)),
      (key) => key.ask("B", permits(2)),
      (key) => key.release("F"),
      (key) => key.at(1 + DEFAULTS.offerWindowMs),
    ],
  },
  {
    state: "A's turn for 1 of 3, B of its scope has 1",
    asked: { ...IN_S, ...permits(1) },
    steps: [
      (key) => key.acquire("F", permits(3)),
      (key) => key.ask("A", { ...IN_S, ...permits(1) }),
      (key) => key.ask("B", { ...IN_S, ...permits(1), priority: 1 }),
      (key) => key.release("F"),
      (key) => key.ask("B", { ...IN_S, ...permits(1), priority: 1 }),
    ],
  },
  {
    state: "A exclusive, B and C wait, and the clocks are far apart",
    steps: [(key) => key.acquire("A"), (key) => key.ask("B"), (key) => key.ask("C"), (key) => key.at(1, 2 * DEFAULTS.clockGuardMs)],
  },
  {
    state: "A waits for a condition",
    steps: [(key) => key.acquire("F"), (key) => key.wait("F", "A"), (key) => key.at(1)],
  },
  {
    state: "A waits for a condition, and half of its time is over",
    steps: [(key) => key.acquire("F"), (key) => key.wait("F", "A"), (key) => key.at(DEFAULTS.waiterTtlMs / 2)],
  },
  {
    state: "A waits for a condition, and B of its scope holds",
    asked: IN_S,
    steps: [(key) => key.acquire("F"), (key) => key.wait("F", "A", "c", IN_S), (key) => key.acquire("B", IN_S), (key) => key.at(1)],
  },
  {
    state: "A waits for a condition, and B lets an offer lapse that a notify of it led to",
    steps: [
      (key) => key.acquire("F"),
      (key) => key.wait("F", "B"),
      (key) => key.acquire("H"),
      (key) => key.wait("H", "A"),
      (key) => key.acquire("G"),
      (key) => key.notify("G", 1),
      (key) => key.release("G"),
      (key) => key.at(DEFAULTS.offerWindowMs),
    ],
  },
  {
    state: "A exclusive, B and D wait for a condition",
    steps: [
      (key) => key.acquire("F"),
      (key) => key.wait("F", "B"),
      (key) => key.acquire("G"),
      (key) => key.wait("G", "D"),
      (key) => key.acquire("A"),
      (key) => key.at(1),
    ],
  },
  {
    state: "A exclusive, B waited for a condition and was not seen in time",
    steps: [
      (key) => key.acquire("F"),
      (key) => key.wait("F", "B"),
      (key) => key.acquire("A", { leaseMs: 10 * LEASE_MS }),
      (key) => key.at(DEFAULTS.waiterTtlMs),
    ],
  },
];

/** Every state of a key of locks. */
export const ALL_STATES: readonly State[] = [...STATES, ...MORE_STATES];

/** One decision, and the record that it left. */
export interface Taken {
  readonly command: Command;
  readonly before: LockRecord | undefined;
  readonly reading: ClockReading;
  readonly decision: Decision;
  readonly after: LockRecord | undefined;
}

/** A key that tells of every decision on it. */
class WatchedKey extends QueueKey {
  constructor(readonly told: (taken: Taken) => void) {
    super();
  }

  override send<C extends Command>(command: C): AnswerTo<C> {
    const { record: before, reading } = this;
    const decision = transition(before, command, reading, POLICY);
    this.decision = decision;
    this.record = writtenOver(before, decision);
    this.told({ command, before, reading, decision, after: this.record });
    return decision.answer;
  }

  override copy(): WatchedKey {
    const copy = new WatchedKey(this.told);
    copy.record = this.record;
    copy.reading = this.reading;
    return copy;
  }
}

/** The time until which the leases of a record require it, in epoch seconds. */
export function keptForLeasesSec({ holds }: LockRecord): number {
  const untilMs = Object.values(holds).map(({ expiresAtMs, marginMs }) => expiresAtMs + marginMs + POLICY.retentionMs);
  return Math.ceil(Math.max(0, ...untilMs) / 1000);
}

/** Plays each of the commands in the state, and returns the decisions, those on the way into the state included. */
export function decisionsIn({ steps, asked = {} }: Omit<State, "state">, columns: readonly Column[]): readonly Taken[] {
  const all: Taken[] = [];
  const start = new WatchedKey((taken) => void all.push(taken));
  for (const step of steps) step(start);
  const { record } = start;
  // Kept for no longer than its leases require, so that a command that must keep it for longer shows. Before that, for much longer.
  for (const moreSec of record ? [10 * DEFAULTS.retentionMs, 0] : [0]) {
    if (record) start.record = { ...record, ttlAtSec: keptForLeasesSec(record) + moreSec };
    for (const [, send] of columns) send(start.copy(), asked);
  }
  return all;
}
