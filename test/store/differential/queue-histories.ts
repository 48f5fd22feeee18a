/**
 * Random histories of one key with many waiters, used by several processes. Each command goes through one process,
 * which may have seen the key lately, or never. Rare events are frequent here: offers that lapse, waiters that poll
 * late or never, full queues, duplicates, clocks that disagree.
 */
import * as fc from "fast-check";
import type { Acquire, Command } from "../../../lib/core/commands.js";
import type { LeaseId } from "../../../lib/core/lease-id.js";
import { DEFAULTS, LIMITS } from "../../../lib/core/limits.js";
import type { Hold, LockRecord, Mode, Waiter } from "../../../lib/core/record.js";
import { type ClockReading, toSecondsUp } from "../../../lib/core/time.js";
import { leaseId, POLICY, START_MS } from "../fixture.js";

/** The kind of an acquire. */
interface Kind {
  readonly mode: Mode;
  readonly limit: number;
  readonly permits: number;
}

const WRITER: Kind = { mode: "exclusive", limit: 1, permits: 1 };
const READER: Kind = { mode: "shared", limit: 1, permits: 1 };
const PERMIT: Kind = { mode: "exclusive", limit: 3, permits: 1 };
const PERMITS: Kind = { mode: "exclusive", limit: 3, permits: 2 };

/** The longest makes a record outlive later leases. */
const LENGTHS_MS = [1_000, 10_000, DEFAULTS.leaseMs, 600_000] as const;
const { offerWindowMs, waiterTtlMs } = DEFAULTS;
const EDGES_MS = [1_000, POLICY.marginMs(1_000), offerWindowMs, offerWindowMs - 1, waiterTtlMs, waiterTtlMs / 2, LIMITS.pollMaxMs];
/** Long enough to count towards the bound in bytes. */
const LONG_OWNER = "x".repeat(LIMITS.ownerChars);

type Act = "queue" | "acquire" | "visit" | "claim" | "release" | "leave" | "renew" | "transfer" | "upgrade" | "break" | "send again";

interface Draft {
  readonly act: Act;
  /** The index of the history's kind. */
  readonly kind: number;
  /** The index of the lease among the candidates. */
  readonly who: number;
  readonly leaseMs: number;
  readonly priority: number;
  readonly owner: string;
  readonly scope: string | undefined;
  /** True if it sends other parameters, or doesn't wait although it waited before. */
  readonly otherwise: boolean;
  readonly intruder: boolean;
  /** For a duplicate: the number of commands since the original was sent. */
  readonly ago: number;
}

/** A step: time passes, then a command or a poll goes to one of the processes. */
export interface Step {
  readonly passMs: number;
  readonly aheadMs: number;
  /** The highest is a new process each time. */
  readonly process: number;
  /** True if the caller polls first, in the same process. */
  readonly looks: boolean;
  readonly draft: Draft;
}

/** The number of processes, the last of which is always new. */
export const PROCESSES = 3;

/** A key's past, and the commands on it. */
export interface History {
  readonly kinds: readonly Kind[];
  readonly remembered: LockRecord | undefined;
  readonly steps: readonly Step[];
  /** For each step, how long a waiter that it queues sleeps. Absent: nobody sleeps. */
  readonly sleepsMs?: readonly (number | undefined)[];
}

const oneIn = (times: number): fc.Arbitrary<boolean> => fc.nat(times - 1).map((draw) => draw === 0);

const step: fc.Arbitrary<Step> = fc.record({
  passMs: fc.oneof(
    { weight: 16, arbitrary: fc.constantFrom(0, 1, 1) },
    { weight: 3, arbitrary: fc.constantFrom(...EDGES_MS) },
    { weight: 3, arbitrary: fc.constantFrom(LIMITS.keepAliveAfterMs, LIMITS.keepAliveAfterMs - 1) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  ),
  aheadMs: fc.constantFrom(0, 0, 0, 0, 1, 900, 4_000, 9_999),
  process: fc.nat(PROCESSES - 1),
  looks: oneIn(3),
  draft: fc.record<Draft>({
    act: fc.oneof(
      { weight: 8, arbitrary: fc.constant<Act>("queue") },
      { weight: 9, arbitrary: fc.constantFrom<Act[]>("visit", "claim", "claim", "release") },
      { weight: 2, arbitrary: fc.constantFrom<Act[]>("acquire", "leave", "renew", "send again") },
      { weight: 1, arbitrary: fc.constantFrom<Act[]>("transfer", "upgrade", "break") },
    ),
    kind: fc.nat(99),
    who: fc.nat(99),
    leaseMs: fc.constantFrom(...LENGTHS_MS),
    priority: fc.constantFrom(0, 0, 0, 0, 0, 5, 9),
    owner: fc.constantFrom("", "", "", "checkout-7", "checkout-7", "checkout-7", LONG_OWNER),
    scope: fc.constantFrom(undefined, undefined, undefined, undefined, "scope S"),
    otherwise: oneIn(8),
    intruder: oneIn(16),
    ago: fc.constantFrom(0, 0, 1, 2, 3, 5, 8),
  }),
});

/** A key in use: eight ended leases, a holder with some of its time left, and a number of waiters. */
const remembered: fc.Arbitrary<LockRecord> = fc
  .record({
    waiting: fc.constantFrom(1, 1, 2, 2, 3, 3, 8, LIMITS.waitersMax - 1),
    ended: fc.shuffledSubarray([1, 2, 3, 4, 5, 6, 7, 8, 9], { minLength: LIMITS.tombstonesMax, maxLength: LIMITS.tombstonesMax }),
    fencingToken: fc.constantFrom(1, START_MS - 1, START_MS + 5_000),
    leaseMs: fc.constantFrom(...LENGTHS_MS),
    broken: fc.constantFrom(undefined, undefined, undefined, "drain" as const),
    longerUsed: fc.constantFrom(0, 0, 5_000),
  })
  .map(({ waiting, ended, fencingToken, leaseMs, broken, longerUsed }) => {
    const expiresAtMs = START_MS + leaseMs;
    const marginMs = POLICY.marginMs(leaseMs);
    const hold: Hold = {
      ...{ principal: "P", owner: "first", mode: "exclusive", permits: 1, requestHash: "{}", leaseMs, fencingToken },
      ...{ grantedAtMs: START_MS, expiresAtMs, marginMs, ...(broken && { broken }) },
    };
    const waiters = Array.from({ length: waiting }, (_, place): Waiter => {
      const common = { principal: "P", owner: "", mode: "exclusive", permits: 1, requestHash: "{}", priority: 0 } as const;
      return { leaseId: leaseId(100 + place), ...common, ttlMs: waiterTtlMs, aliveUntilMs: START_MS + waiterTtlMs - place };
    });
    return {
      ...{ version: START_MS - 7, fencingToken, fenceFloor: fencingToken, limit: 1 },
      holds: { [leaseId(99)]: hold },
      offers: [],
      waiters,
      tombstones: ended.map((order) => ({ leaseId: leaseId(order), ending: "released" })),
      lowWatermark: leaseId(0),
      ttlAtSec: toSecondsUp(expiresAtMs + marginMs + POLICY.retentionMs) + longerUsed,
    };
  });

const historiesOf = (kinds: fc.Arbitrary<readonly Kind[]>): fc.Arbitrary<History> =>
  fc.record({
    kinds,
    remembered: fc.option(remembered, { nil: undefined, freq: 2 }),
    steps: fc.array(step, { minLength: 1, maxLength: 30, size: "max" }),
  });

/** Draws histories of writers alone, who are written in forms of their own. */
export const writerHistories = historiesOf(fc.constant([WRITER]));
/** Draws histories of every kind. */
export const queueHistories = historiesOf(
  fc.constantFrom([WRITER], [WRITER], [WRITER, READER], [READER], [PERMIT, PERMITS], [WRITER, PERMIT]),
);

/** Draws histories of every kind in which some sleep: for less than an offer to a sleeper lasts, or longer. */
export const sleeperHistories = fc
  .record({
    history: queueHistories,
    sleepsMs: fc.array(fc.constantFrom(undefined, undefined, 2_000, 10 * DEFAULTS.wakeWindowMs), { minLength: 30, maxLength: 30 }),
  })
  .map(({ history, sleepsMs }): History => ({ ...history, sleepsMs }));

/** A command, the server clocks' readings, and the clock of the processes. */
export interface Asked {
  readonly command: Command;
  readonly reading: ClockReading;
  readonly nowMs: number;
}

/** Returns an acquire as it is sent again: by an agent, whose claim for a sleeper is a poll, or by the sleeper itself. */
function asked({ sleepMs, wait, ...acquire }: Acquire, act: Act): Acquire {
  if (sleepMs === undefined) return { ...acquire, ...(wait && { wait }) };
  return act === "claim" ? acquire : { ...acquire, wait: true, sleepMs };
}

/** Creates each command of a history from the record that the previous commands left. */
// Over 60 lines: one model or one server, whose parts share its state.
export function resolver({ kinds, sleepsMs = [] }: History, key: string): (step: Step, record: LockRecord | undefined) => Asked {
  let nowMs = START_MS;
  let order = 1000;
  const sent: Command[] = [];

  function ask(draft: Draft): Command {
    const { leaseMs, priority, owner, scope, otherwise } = draft;
    const asked = { ...kinds[draft.kind % kinds.length]!, leaseMs, priority, owner, ...(scope !== undefined && { scope }) };
    const waits = (draft.act === "queue") !== otherwise;
    const sleepMs = waits ? sleepsMs[sent.length] : undefined;
    // Some of these ids ended earlier.
    const id = draft.who < 12 ? leaseId(draft.who) : leaseId(++order, nowMs - START_MS);
    return {
      type: "acquire",
      key,
      leaseId: id,
      principal: "P",
      ...asked,
      requestHash: JSON.stringify(asked),
      ...(waits && { wait: true }),
      ...(sleepMs !== undefined && { sleepMs }),
    };
  }

  function askAgain(id: LeaseId, { act, otherwise, intruder }: Draft): Command {
    const first = sent.find((command) => command.type === "acquire" && command.leaseId === id);
    const usual = { owner: "", leaseMs: DEFAULTS.leaseMs, priority: 0, ...WRITER };
    const again: Command =
      first?.type === "acquire"
        ? asked(first, act)
        : { type: "acquire", key, leaseId: id, principal: "P", ...usual, requestHash: "{}", wait: true };
    return { ...again, ...(intruder && { principal: "Q" }), ...(otherwise && { requestHash: "other" }) };
  }

  function resolve(draft: Draft, record: LockRecord | undefined): Command {
    const { act, who, leaseMs, otherwise, intruder } = draft;
    const pick = <T>(of: readonly T[]): T | undefined => of[who % of.length];
    const { holds = {}, offers = [], waiters = [] } = record ?? {};
    const [held, hold] = pick(Object.entries(holds)) ?? [];
    // The first waiters matter most.
    const queued = pick([...offers, ...waiters.slice(0, 4), ...waiters.slice(-1)])?.leaseId;
    const own = intruder ? "Q" : "P";
    const about = (id: LeaseId) => ({ key, leaseId: id, principal: own });
    if (act === "send again") return sent.at(-1 - draft.ago) ?? ask(draft);
    if (act === "claim" && offers.length > 0) return askAgain(pick(offers)!.leaseId, draft);
    if ((act === "visit" || act === "claim") && queued !== undefined) return askAgain(queued, draft);
    if (act === "leave" && queued !== undefined) return { type: "release", ...about(queued) };
    if (held === undefined || !hold) return ask({ ...draft, act: "queue" });
    switch (act) {
      case "renew":
        return { type: "renew", ...about(held), ...(otherwise && { leaseMs }) };
      case "transfer":
        return { type: "transfer", ...about(held), toLeaseId: leaseId(++order, nowMs - START_MS) };
      case "upgrade":
        return {
          ...{ type: "mode", ...about(held), fencingToken: hold.fencingToken },
          mode: hold.mode === "shared" ? "exclusive" : "shared",
        };
      case "break":
        return { type: "break", key, fencingToken: hold.fencingToken, ...(otherwise ? {} : { drainMs: 0 }) };
      case "release":
        return { type: "release", ...about(held) };
      default:
        return ask(draft);
    }
  }

  return ({ passMs, aheadMs, draft }, record) => {
    nowMs += passMs;
    const command = resolve(draft, record);
    sent.push(command);
    return { command, nowMs, reading: { earliestMs: nowMs, latestMs: nowMs + aheadMs } };
  };
}
