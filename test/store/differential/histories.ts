/**
 * Random histories of one key: a few leases of a few principals, time that advances, clocks that disagree. Rare events
 * are frequent here: commands on the present holder, times at the edges of leases, ids out of order, tokens of old
 * holds.
 */
import * as fc from "fast-check";
import type { Acquire, Break, Command, Release, Renew, Transfer } from "../../../lib/core/commands.js";
import type { LeaseId } from "../../../lib/core/lease-id.js";
import { LIMITS } from "../../../lib/core/limits.js";
import type { Ending, Hold, LockRecord } from "../../../lib/core/record.js";
import { type ClockReading, toSecondsUp } from "../../../lib/core/time.js";
import { leaseId, POLICY, START_MS } from "../fixture.js";

const MINUTE_MS = 60_000;

/** Twelve ids that may be granted, one that is too new and one that is too old. */
export const IDS: readonly LeaseId[] = [
  ...Array.from({ length: 12 }, (_, order) => leaseId(order + 1)),
  leaseId(0, 60 * MINUTE_MS),
  leaseId(0, -20 * MINUTE_MS),
];
const PRINCIPALS = ["P", "Q"] as const;
/**
 * The lengths of leases, in ms. With the default, which the guess of a renewal assumes. The shortest is frequent, because clocks may be
 * further apart than its length.
 */
export const LENGTHS_MS = [1_000, 1_000, 10_000, 30_000, 60_000] as const;
/** The margins of these lengths, in ms. */
export const MARGINS_MS = LENGTHS_MS.map((leaseMs) => POLICY.marginMs(leaseMs));

/** The commands of locks. Runs have their own histories. */
type LockCommand = Acquire | Renew | Release | Transfer | Break;

/** The lease of a command: the holder's (or else `to`); the holder's, or a new one that acquires if nobody holds; or one of the pool. */
type Which = "holder" | "new" | number;

interface Draft {
  readonly type: LockCommand["type"];
  readonly which: Which;
  readonly to: number;
  /** True if the caller isn't the principal of the lease. */
  readonly intruder: boolean;
  readonly leaseMs: number | undefined;
  readonly requestHash: string;
  readonly meta: string | undefined;
  /** The number of grants since the hold to break was granted; 0 is the present hold. */
  readonly grantsAgo: number;
  readonly drainMs: number | undefined;
}

/** A step: time passes, then a command is sent. */
export interface Step {
  readonly passMs: number;
  /** The width of the clock interval. */
  readonly aheadMs: number;
  /** True if the step repeats the last command instead: a duplicate. */
  readonly again: boolean;
  readonly draft: Draft;
}

/** True once in ten. */
export const rarely = fc.integer({ min: 0, max: 9 }).map((draw) => draw === 0);
/** The same, or undefined. */
export const perhaps = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });

const step: fc.Arbitrary<Step> = fc.record({
  passMs: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(0, 1) },
    { weight: 3, arbitrary: fc.constantFrom(...LENGTHS_MS, ...LENGTHS_MS.map((ms) => ms - 1), ...MARGINS_MS) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 2_500 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 * MINUTE_MS }) },
  ),
  aheadMs: fc.constantFrom(0, 0, 0, 1, 500, 1_500, 5_000, 9_999),
  again: rarely,
  draft: fc.record<Draft>({
    type: fc.constantFrom("acquire", "acquire", "renew", "renew", "renew", "release", "release", "transfer", "transfer", "break"),
    which: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom<Which[]>("holder", "new", "new") },
      { weight: 1, arbitrary: fc.nat(IDS.length - 1) },
    ),
    to: fc.nat(IDS.length - 1),
    intruder: rarely,
    leaseMs: perhaps(fc.constantFrom(...LENGTHS_MS)),
    requestHash: rarely.map((other) => (other ? "other" : "same")),
    meta: perhaps(fc.constantFrom("one", "two")),
    grantsAgo: fc.constantFrom(0, 0, 0, 1, 2),
    drainMs: perhaps(fc.constantFrom(0, 0, 500, 20_000, 600_000)),
  }),
});

/** The key's record when the history begins: many ended leases, sometimes a token of tomorrow, sometimes a holder. */
const remembered: fc.Arbitrary<LockRecord> = fc
  .record({
    ids: fc.shuffledSubarray([...IDS], { minLength: 7, maxLength: LIMITS.tombstonesMax + 1 }),
    ending: fc.constantFrom<Ending[]>("released", "expired", "taken", "broken", "transferred", "cancelled"),
    floor: fc.constantFrom(...IDS.slice(0, 6)),
    fencingToken: fc.constantFrom(1, START_MS - 1, START_MS, START_MS + 5_000),
    held: fc.boolean(),
    leaseMs: fc.constantFrom(...LENGTHS_MS),
    broken: fc.constantFrom(undefined, undefined, undefined, "drain" as const),
    longerUsed: fc.constantFrom(0, 100),
  })
  .map(({ ids: [id = "", ...ended], ending, floor, fencingToken, held, leaseMs, broken, longerUsed }) => {
    const expiresAtMs = START_MS + leaseMs;
    const marginMs = POLICY.marginMs(leaseMs);
    const times = { fencingToken, leaseMs, grantedAtMs: START_MS, expiresAtMs, marginMs };
    const hold: Hold = {
      principal: ownerOf(id),
      owner: "first",
      mode: "exclusive",
      permits: 1,
      ...times,
      requestHash: "same",
      ...(broken && { broken }),
    };
    return {
      version: START_MS - 7,
      fencingToken,
      fenceFloor: fencingToken,
      limit: 1,
      holds: held ? { [id]: hold } : {},
      offers: [],
      waiters: [],
      tombstones: ended.map((leaseId) => ({ leaseId, ending })),
      lowWatermark: ended.length === LIMITS.tombstonesMax ? floor : "",
      ttlAtSec: toSecondsUp(expiresAtMs + marginMs + POLICY.retentionMs) + longerUsed,
    };
  });

/** A history: the initial record (undefined: none), then the steps. */
export interface History {
  readonly remembered: LockRecord | undefined;
  readonly steps: readonly Step[];
}

/** Draws histories. */
export const histories: fc.Arbitrary<History> = fc.record({
  remembered: perhaps(remembered),
  steps: fc.array(step, { minLength: 1, maxLength: 30, size: "max" }),
});

/** The commands of a history with their clocks. Each is created after the previous one was carried out. */
export async function* commandsOf(
  { steps }: History,
  key: string,
  read: () => Promise<LockRecord | undefined>,
): AsyncGenerator<{ readonly command: Command; readonly reading: ClockReading }> {
  let nowMs = START_MS;
  const tokens: number[] = [];
  let unheard = IDS.length;
  let command: Command | undefined;
  for (const { passMs, aheadMs, again, draft } of steps) {
    nowMs += passMs;
    const record = await read();
    if (record && record.fencingToken !== tokens[0]) tokens.unshift(record.fencingToken);
    if (!again || !command) command = resolve(draft, key, record, tokens, leaseId(++unheard));
    yield { command, reading: { earliestMs: nowMs, latestMs: nowMs + aheadMs } };
  }
}

/** The principal of a lease. */
export function ownerOf(id: LeaseId): string {
  return PRINCIPALS[Number.parseInt(id.at(-1) ?? "0", 16) % 2]!;
}

/** The principal of a request about this lease: another than its own, if it is an intruder's. */
export function callerOf(id: LeaseId, intruder: boolean): string {
  return PRINCIPALS.find((name) => (name === ownerOf(id)) !== intruder)!;
}

function resolve(draft: Draft, key: string, record: LockRecord | undefined, tokens: readonly number[], unheard: LeaseId): Command {
  const { which, intruder, leaseMs, requestHash, meta, grantsAgo, drainMs } = draft;
  const [held] = Object.keys(record?.holds ?? {});
  // Without a holder, most commands would only be refused.
  const type = held === undefined && which !== "holder" ? "acquire" : draft.type;
  const id = typeof which === "number" ? IDS[which]! : which === "new" && type === "acquire" ? unheard : (held ?? IDS[draft.to]!);
  const principal = callerOf(id, intruder);
  const length = leaseMs !== undefined && { leaseMs };
  const note = meta !== undefined && { meta: { note: meta } };
  switch (type) {
    case "acquire":
      return {
        type,
        key,
        leaseId: id,
        principal,
        owner: "somebody",
        leaseMs: leaseMs ?? 30_000,
        mode: "exclusive",
        limit: 1,
        permits: 1,
        priority: 0,
        requestHash,
        ...note,
      };
    case "renew":
      return { type, key, leaseId: id, principal, ...length, ...note };
    case "release":
      return { type, key, leaseId: id, principal };
    case "transfer":
      return { type, key, leaseId: id, principal, toLeaseId: IDS[draft.to]!, ...length, ...(meta && { toOwner: meta }) };
    case "break":
      return { type, key, fencingToken: tokens[grantsAgo] ?? 1, ...(drainMs !== undefined && { drainMs }) };
  }
}
