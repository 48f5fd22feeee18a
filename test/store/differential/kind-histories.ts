/**
 * Random histories of one key in all its kinds: writers, readers, permits, reentrant holds in scopes, changes of mode,
 * late duplicates. Time advances. One of the two server clocks is close to the true time and the other is anywhere
 * within the guard, so either of them may be the earliest.
 */
import * as fc from "fast-check";
import type { Command } from "../../../lib/core/commands.js";
import type { LeaseId } from "../../../lib/core/lease-id.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { LockRecord, Mode } from "../../../lib/core/record.js";
import type { ClockReading } from "../../../lib/core/time.js";
import { leaseId, POLICY, START_MS } from "../fixture.js";

/** The kind of an acquire. */
interface Kind {
  readonly mode: Mode;
  readonly limit: number;
  readonly permits: number;
}

const KINDS: readonly Kind[] = [
  { mode: "exclusive", limit: 1, permits: 1 },
  { mode: "shared", limit: 1, permits: 1 },
  { mode: "exclusive", limit: 3, permits: 1 },
  { mode: "exclusive", limit: 3, permits: 2 },
  { mode: "exclusive", limit: 2, permits: 1 },
];
/** With the default, which the guess of a renewal assumes. The shortest is frequent, because clocks may be further apart than its length. */
const LENGTHS_MS = [1_000, 1_000, 10_000, DEFAULTS.leaseMs] as const;
const EDGES_MS = [...LENGTHS_MS, ...LENGTHS_MS.map((ms) => ms - 1), ...LENGTHS_MS.map((ms) => POLICY.marginMs(ms))];

type Act = "acquire" | "acquire again" | "renew" | "release" | "transfer" | "upgrade" | "downgrade" | "break" | "send again";

interface Draft {
  readonly act: Act;
  /** The index of the history's kind. */
  readonly kind: number;
  readonly scope: string | undefined;
  /** The index of a present holder, or of a former holder if nobody holds. */
  readonly who: number;
  readonly leaseMs: number;
  /** True if it names a token, or a length, other than the lease's own. */
  readonly otherwise: boolean;
  readonly intruder: boolean;
  readonly drainMs: number | undefined;
  /** For a duplicate: the number of commands since the original was sent. */
  readonly ago: number;
}

/** A step: time passes, then a command is sent. */
interface Step {
  readonly passMs: number;
  /** The error of the clock that is nearly right, within E, and the other clock's distance from it. */
  readonly errorMs: number;
  readonly apartMs: number;
  readonly draft: Draft;
}

/** The kinds in which the key is used, and the commands on it. */
export interface History {
  readonly kinds: readonly Kind[];
  readonly steps: readonly Step[];
}

const oneIn = (times: number): fc.Arbitrary<boolean> => fc.nat(times - 1).map((draw) => draw === 0);
const E = DEFAULTS.clockErrorMs;

const step: fc.Arbitrary<Step> = fc.record({
  passMs: fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom(0, 1) },
    { weight: 4, arbitrary: fc.constantFrom(...EDGES_MS) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 2_500 }) },
    { weight: 1, arbitrary: fc.constantFrom(DEFAULTS.waiterTtlMs - 1, DEFAULTS.waiterTtlMs) },
  ),
  errorMs: fc.constantFrom(0, 0, 0, -E, E),
  apartMs: fc.constantFrom(0, 0, 0, 0, 1, -900, 900, 4_000, -4_000, 9_999, -9_999),
  draft: fc.record<Draft>({
    act: fc.oneof(
      { weight: 10, arbitrary: fc.constant<Act>("acquire") },
      { weight: 3, arbitrary: fc.constantFrom<Act[]>("renew", "release", "upgrade", "send again") },
      { weight: 1, arbitrary: fc.constantFrom<Act[]>("acquire again", "transfer", "break", "downgrade") },
    ),
    kind: fc.nat(99),
    scope: fc.constantFrom(undefined, undefined, "scope S", "scope S", "scope T"),
    who: fc.nat(99),
    leaseMs: fc.constantFrom(...LENGTHS_MS),
    otherwise: oneIn(6),
    intruder: oneIn(20),
    drainMs: fc.constantFrom(undefined, undefined, 0, 500, 600_000),
    ago: fc.constantFrom(0, 0, 1, 2, 3, 5, 8),
  }),
});

/** Draws histories of a key that is used in these kinds. */
const historiesOf = (kinds: fc.Arbitrary<readonly Kind[]>): fc.Arbitrary<History> =>
  fc.record({ kinds, steps: fc.array(step, { minLength: 1, maxLength: 40, size: "max" }) });

/** Draws histories of readers alone. */
export const readerHistories = historiesOf(fc.constant(KINDS.slice(1, 2)));
/** Draws histories of permits alone. */
export const permitHistories = historiesOf(fc.constant(KINDS.slice(2)));
/** Draws histories of every kind, and of several kinds on the same key. */
export const kindHistories = historiesOf(
  fc.oneof(
    fc.constantFrom(KINDS.slice(0, 2), KINDS.slice(1, 2), KINDS.slice(2, 4), KINDS.slice(2, 3)),
    fc.shuffledSubarray([...KINDS], { minLength: 1 }),
  ),
);

/** A command, the true time of its sending, and the server clocks' readings at that time. */
interface Asked {
  readonly command: Command;
  readonly nowMs: number;
  readonly reading: ClockReading;
}

/** Creates each command of a history from the record that the previous commands left. */
// Over 60 lines: one model or one server, whose parts share its state.
export function resolver({ kinds }: History, key: string): (step: Step, record: LockRecord | undefined) => Asked {
  let nowMs = START_MS;
  let order = 0;
  const sent: Command[] = [];
  const tokens: number[] = [];
  const ids: LeaseId[] = [];

  const newId = (): LeaseId => leaseId(++order, nowMs - START_MS);

  function resolve(draft: Draft, record: LockRecord | undefined): Command {
    const { who, leaseMs, otherwise, intruder, drainMs } = draft;
    const held = Object.entries(record?.holds ?? {});
    const [id = ids[who % ids.length], hold] = held[who % held.length] ?? [];
    const again = draft.act === "send again" ? sent.at(-1 - draft.ago) : undefined;
    if (again) return again;
    const act = id === undefined || draft.act === "send again" ? "acquire" : draft.act;
    const ref = { key, leaseId: id ?? "", principal: intruder ? "Q" : "P" };
    const token = otherwise ? (tokens.at(-1 - (who % 3)) ?? 1) : (hold?.fencingToken ?? 1);
    switch (act) {
      case "acquire": {
        const { mode, limit, permits } = kinds[draft.kind % kinds.length]!;
        const leaseIdOfNew = newId();
        ids.push(leaseIdOfNew);
        const { scope } = draft;
        const asked = { mode, limit, permits, leaseMs, ...(scope !== undefined && { scope }) };
        return {
          type: "acquire",
          key,
          leaseId: leaseIdOfNew,
          principal: "P",
          owner: "",
          priority: 0,
          ...asked,
          requestHash: JSON.stringify(asked),
        };
      }
      case "acquire again": {
        const first = sent.find((command) => command.type === "acquire" && command.leaseId === id);
        if (first?.type !== "acquire") return { type: "renew", ...ref };
        return { ...first, principal: ref.principal, ...(otherwise && { requestHash: "others" }) };
      }
      case "renew":
        return { type: "renew", ...ref, ...(otherwise && { leaseMs }) };
      case "release":
        return { type: "release", ...ref };
      case "transfer": {
        const toLeaseId = newId();
        ids.push(toLeaseId);
        return { type: "transfer", ...ref, toLeaseId, ...(otherwise && { leaseMs }) };
      }
      case "upgrade":
      case "downgrade":
        return { type: "mode", ...ref, mode: act === "upgrade" ? "exclusive" : "shared", fencingToken: token };
      case "break":
        return { type: "break", key, fencingToken: token, ...(drainMs !== undefined && { drainMs }) };
    }
  }

  return ({ passMs, errorMs, apartMs, draft }, record) => {
    nowMs += passMs;
    const clocksMs = [nowMs + errorMs, nowMs + errorMs + apartMs] as const;
    if (record && record.fencingToken !== tokens.at(-1)) tokens.push(record.fencingToken);
    const command = resolve(draft, record);
    sent.push(command);
    return { command, nowMs, reading: { earliestMs: Math.min(...clocksMs), latestMs: Math.max(...clocksMs) } };
  };
}
