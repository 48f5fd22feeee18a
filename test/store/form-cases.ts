/**
 * The common writes of forms, and the differences that a key may have by the time a write arrives. `form-states.test.ts` takes
 * each write on each difference. `form-expressions.slow.test.ts` does so with a change in the write's expressions.
 */
import { expect } from "vitest";
import type { Kind } from "../../lib/core/api/locks.js";
import type { AnswerTo, Command } from "../../lib/core/commands.js";
import { LIMITS } from "../../lib/core/limits.js";
import { waiterFor } from "../../lib/core/lock/places.js";
import { isCrowd } from "../../lib/core/lock/crowd.js";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import { highestLowWatermark } from "../../lib/core/lock/expiry.js";
import { recordBytes, SHORT_OWNER_BYTES, waitersBytes } from "../../lib/core/record-bytes.js";
import type { Hold, LockRecord, Member, Waiter } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import { isConditionFailed } from "../../lib/store/dynamo/calls.js";
import { LISTED_MAX } from "../../lib/store/dynamo/crowd-item.js";
import { applies } from "../../lib/store/compare-and-set.js";
import { formsOf, resultOf } from "../../lib/store/dynamo/forms.js";
import type { Item } from "../../lib/store/dynamo/layout.js";
import { FORMAT_VERSION, fromItem, itemKey, storedIn, toItem, TOMBSTONES } from "../../lib/store/dynamo/item.js";
import { type Stored, hasLeftPlaces, LEFT, LEFT_BYTES, listBytes, NO_ENTRY, wholly } from "../../lib/store/dynamo/lists.js";
import type { AttemptOf, FormWrite, Write } from "../../lib/store/dynamo/predicates.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { decisionsIn } from "../core/decisions.js";
import { IN_S, permits, READER } from "../core/kinds-key.js";
import type { QueueKey, QueueOptions } from "../core/queue-key.js";
import { at, complete, DAY_MS, hold, LEASE_MS as RUN_LEASE_MS, ME, NOW_MS, record, run, start } from "../core/run-parts.js";
import { DynamoTable } from "../../lib/testing/table/table.js";
import { expectSame } from "../support/same.js";
import { storedId } from "../../lib/store/dynamo/stored-id.js";
import { leaseId, LEASE_MS, POLICY } from "./fixture.js";

/** One command on the record of a key. */
export interface Asked {
  readonly kind: Kind;
  readonly before: LockRecord | undefined;
  readonly command: Command;
  readonly reading: ClockReading;
  /** The key as the process saw it lately. Absent: not at all. */
  readonly seen?: Stored | undefined;
}

/** A form is not there, was refused, or was written. */
export type Came = "none" | "refused" | "written";

function attemptOf({ command, reading, seen }: Asked, isFresh = false, refusals = 0): AttemptOf {
  const decision = seen && transition(seen.record, command, reading, POLICY);
  return { command, reading, policy: POLICY, seen, decision, isFresh, refusals };
}

/** Returns the write of the command in a form of its own: by what an earlier request saw, or by what this one has, after so many writes were refused. */
export function pathOf(asked: Asked, isFresh = false, refusals = 0): FormWrite | undefined {
  const attempt = attemptOf(asked, isFresh, refusals);
  const form = formsOf(asked.kind, asked.command).find((each) => applies(each, attempt));
  return form?.name === "whole" || form?.name === "keep-alive" ? undefined : form?.write(attempt);
}

/** Returns the write of a decision on the record that this request saw. */
export function decidedPathOf(asked: Asked, refusals = 0): FormWrite | undefined {
  return pathOf({ ...asked, seen: asked.before && wholly(asked.before) }, true, refusals);
}

/**
 * Sends the form of the command. Returns what became of it.
 * @param item The stored item.
 * @throws an assertion if it left anything but the core's record.
 */
export function take(asked: Asked, fast = pathOf(asked), item: Item | null = asked.before ? toItem(asked.before) : null): Came {
  const { kind, command, reading } = asked;
  if (!fast) return "none";
  // The service refuses values that aren't used. The SDK would leave these out.
  expectSame(Object.values(fast.values).includes(undefined), false, command);
  const stored = written(kind, item, fast, reading);
  if (!stored) return "refused";
  const was = item ? fromItem(item) : undefined;
  const core = transition(was, command, reading, POLICY);
  // A waiter that is appended leaves it to its first poll to look for leases that ran out.
  const wanted = fast.decides && was ? fast.decides(was) : core;
  expectSame(core.answer.ok, true, command);
  expectSame(fromItem(stored), wanted.next, command);
  if (item && was) expectSame(storedIn(stored).lists, fast.lists?.(storedIn(item).lists) ?? storedIn(item).lists, command);
  expectSound(stored, item, asked);
  expectTold(asked, fast, item, stored);
  const { behind: _appended, commutes: _together, ...decided } = core;
  const { commutes: _also, ...decision } = wanted;
  // Of a waiter too that could have joined by now, its first poll finds out. A release leaves the queue to it only where the core does.
  const waits = wanted.answer.ok && "state" in wanted.answer;
  const isRenewal = command.type === "renew" && item && !hasLeftPlaces(storedIn(item));
  if (core.behind || command.type === "release" || isRenewal || (core.commutes && !waits)) expectSame(decision, decided, command);
  return "written";
}

/** Checks what the store answers and remembers after a write: what was written, whether or not the process saw this very item before. */
export function expectTold(asked: Asked, fast: FormWrite, item: Item | null, stored: Item): void {
  for (const seen of [undefined, item ? storedIn(item) : undefined]) {
    const { decided, after } = resultOf(fast, attemptOf({ ...asked, seen }), item ?? undefined);
    expectSame(decided.next, fromItem(stored), asked.command);
    expectSame(after, storedIn(stored), asked.command);
  }
}

/** Sends a write to a table with this item. Returns the item that it leaves, or nothing if it was refused. */
export function written(
  kind: Kind,
  item: Item | null,
  { condition, update, names, values }: Write,
  reading: ClockReading,
): Item | undefined {
  const table = new DynamoTable({ tableName: "t", ...TABLE }, () => reading.latestMs);
  const Key = itemKey({ namespace: "n", kind, key: "k" });
  if (item) table.put({ TableName: "t", Item: { ...Key, ...item } });
  const expressions = { ConditionExpression: condition, UpdateExpression: update, ExpressionAttributeValues: values };
  try {
    table.update({ TableName: "t", Key, ...expressions, ...(Object.keys(names).length > 0 && { ExpressionAttributeNames: names }) });
  } catch (error) {
    if (isConditionFailed(error)) return undefined;
    throw error;
  }
  return table.get({ TableName: "t", Key }).Item;
}

/** Checks what the record doesn't show: the attributes of a new item, the ids of the queue, and the sums of a crowd. */
function expectSound({ p: _partition, k: _key, ...item }: Item, before: Item | null, { command, seen }: Asked): void {
  const whole = toItem(fromItem(item));
  if (!before) expectSame(item, Object.fromEntries(Object.entries(whole).filter(([name]) => !TOMBSTONES.includes(name))), command);
  const idsIn = (it: Item | null, name: "qi" | "rl"): readonly string[] => (it?.[name] as readonly string[] | undefined) ?? [];
  const stays = idsIn(item, "qi").filter((id) => id !== LEFT);
  expectSame(item["qs"], whole["qs"], command);
  if (waitersBytes(fromItem(item).waiters) > LIMITS.queueBytes)
    expectSame(fromItem(item).waiters, before && fromItem(before).waiters, command);
  expectSame(stays, whole["qi"], command);
  expectSame(
    (item["q"] as readonly Item[] | undefined)?.filter((_, place) => idsIn(item, "qi")[place] !== LEFT) ?? [],
    whole["q"],
    command,
  );
  // A release offers to what its first place says, and does not read the marks.
  idsIn(item, "qi").forEach((id, place) => id === LEFT && expectSame((item["q"] as readonly Item[])[place], NO_ENTRY, command));
  // The ids of those that ended are counted until they are tombstones, and so are the places that were left.
  const left = (it: Item | null): number => LEFT_BYTES * idsIn(it, "qi").filter((id) => id === LEFT).length;
  const besides = listBytes(idsIn(item, "rl")) - listBytes(idsIn(before, "rl")) + left(item) - left(before);
  const wrote = { ...whole, ...(whole["cb"] !== undefined && { cb: Number(whole["cb"]) + besides }) };
  const sums = ({ cv, cp, cb, co }: Item): Item => ({ cv, cp, cb, co });
  const isFree = (it: Item | null): boolean => Object.keys(it?.["h"] ?? {}).length === 0;
  if (isFree(before) && !isFree(item)) expectSame({ ...sums(item), jt: item["jt"] }, { ...sums(whole), jt: whole["jt"] }, command);
  // A lease that shares its permits with others of its scope leaves the sums behind, and so does who didn't know of the crowd.
  else if (before?.["cv"] !== before?.["v"] || (command.type === "release" && seen?.record.holds[command.leaseId]?.scope)) return;
  // Once nobody holds, nobody can join beside.
  else if (whole["cv"] === undefined) {
    expectSame(item["cv"] === item["v"] && item["co"] !== Object.keys(item["h"] as Item).length, false, command);
    // The bytes are right or gone: whoever comes to wait looks at them.
    const bytes = recordBytes(fromItem(item)) + besides;
    if (!isFree(before) && !/"(?:mt|sc)"/.test(JSON.stringify(before)))
      expectSame(item["cb"], item["cb"] === undefined ? undefined : bytes, command);
  }
  // The bytes of a meta that changed stay in the sum.
  else if (seen && isCrowd(seen.record))
    expectSame(sums(item), JSON.stringify(before).includes('"mt"') ? { ...sums(wrote), cb: expect.any(Number) } : sums(wrote), command);
}

type Step = (key: QueueKey) => unknown;

/** Returns the last command of these steps on a lock, with the record before it. */
export function lock(knows: "nothing" | "the record", ...steps: readonly Step[]): Asked {
  const { command, before, reading } = decisionsIn({ steps: [] }, [
    ["all", (key) => steps.map((step) => step(key)).at(-1) as AnswerTo<Command>],
  ]).at(-1)!;
  // As long as a record of this kind is kept in fact, so that no release has to raise it.
  const kept = before && { ...before, ttlAtSec: touchedSec(reading) };
  return { kind: "locks", command, before: kept, reading, seen: knows === "nothing" || !kept ? undefined : wholly(kept) };
}

function runs(command: Command, parts: Partial<LockRecord["run"]> | undefined, reading = at(1, 1)): Asked {
  const running = { holds: { [ME]: hold() }, run: run(parts), ttlAtSec: Math.ceil((NOW_MS + 9 * DAY_MS) / 1000) };
  return { kind: "runs", command, before: parts && record(running), reading };
}

function touchedSec({ latestMs }: ClockReading): number {
  return Math.ceil((latestMs + POLICY.retentionMs) / 1000);
}

export const grants =
  (letter: string, options: QueueOptions = {}): Step =>
  (key) =>
    key.acquire(letter, options);
export const asks =
  (letter: string, options: QueueOptions = {}): Step =>
  (key) =>
    key.ask(letter, options);
const renews =
  (letter: string, leaseMs?: number): Step =>
  (key) =>
    key.renew(letter, leaseMs);
export const releases =
  (letter: string): Step =>
  (key) =>
    key.release(letter);
export const later =
  (ms = 1): Step =>
  (key) =>
    key.at(ms, 1);
/** Eight leases end whose ids are lower than one that ended before them. */
export const ends =
  (letters: string): Step =>
  (key) =>
    letters.split("").forEach((letter) => key.release(letter));
/** Other leases than those of the commands, with an id that is lower and one that is higher than theirs. */
const [LOWER, HIGHER] = [leaseId(0, -60_000), leaseId(90)];
const LONG = { leaseMs: 10 * LIMITS.nextTokenMs };
const MANY_LIMIT = 2 * LIMITS.leasesMax;
const MANY = permits(1, MANY_LIMIT);
const SOME = permits(1, 9);
const CHECKPOINT = { digest: "c", bytes: 1, text: "1" };
/** A run whose attempt before this one told why it failed. */
const AGAIN = {
  attempt: 2,
  checkpoint: CHECKPOINT,
  outcome: { recordedBy: HIGHER, principal: "x", owner: "", startedAtMs: 1, endedAtMs: 2, omitted: true, payload: CHECKPOINT },
} as const;
const RENEW = { type: "renew", key: "k", leaseId: ME, principal: "me" } as const;

/** The common writes, each of which is taken. The command's lease is E in a grant, or else A. */
export const COMMON: Readonly<Record<string, Asked>> = {
  grant: lock("nothing", later(), grants("E")),
  "grant to a reader": lock("nothing", later(), grants("E", READER)),
  "grant of permits": lock("nothing", later(), grants("E", permits(1))),
  "grant of a used key": lock("nothing", grants("B", permits(1)), releases("B"), later(), grants("E")),
  "grant of permits on a used key": lock("nothing", grants("B"), releases("B"), later(), grants("E", permits(1))),
  append: lock("the record", grants("B"), later(), asks("E")),
  "append behind permits": lock("the record", grants("B", permits(3)), later(), asks("E", permits(2))),
  claim: lock("the record", grants("B"), asks("A"), releases("B"), later(), asks("A")),
  "join of a reader": lock("the record", grants("B", READER), later(), grants("E", READER)),
  "join of a longer reader": lock("the record", grants("B", READER), later(), grants("E", { ...READER, leaseMs: 9 * LIMITS.nextTokenMs })),
  "join of permits": lock("the record", grants("B", permits(1)), later(), grants("E", permits(1))),
  "join of one of many permits": lock("the record", grants("B", MANY), later(), grants("E", MANY)),
  "join of permits after a while": lock(
    "the record",
    grants("B", { ...permits(1), ...LONG }),
    later(LIMITS.nextTokenMs + 1),
    grants("E", permits(1)),
  ),
  "join of one of many permits after a while": lock(
    "the record",
    grants("B", { ...MANY, ...LONG }),
    later(LIMITS.nextTokenMs + 1),
    grants("E", MANY),
  ),
  "join after a while": lock("the record", grants("B", { ...READER, ...LONG }), later(LIMITS.nextTokenMs + 1), grants("E", READER)),
  renewal: lock("nothing", grants("A"), later(), renews("A")),
  "renewal of a longer record": lock("the record", grants("B", { ...READER, ...LONG }), grants("A", READER), later(), renews("A")),
  "renewal for longer": lock("nothing", grants("A"), later(), renews("A", 4 * LEASE_MS)),
  "renewal for longer of a longer record": lock(
    "the record",
    grants("B", { ...READER, ...LONG }),
    grants("A", READER),
    later(),
    renews("A", 4 * LEASE_MS),
  ),
  "renewal of permits": lock("the record", grants("B", permits(1)), grants("A", permits(1)), later(), renews("A")),
  release: lock("nothing", grants("A"), later(), releases("A")),
  "release to a waiter": lock("nothing", grants("A"), asks("B"), asks("C"), later(), releases("A")),
  "release of the only permits": lock("nothing", grants("A", permits(1)), later(), releases("A")),
  "release of permits": lock("the record", grants("A", permits(1)), grants("B", permits(1)), later(), releases("A")),
  "release of permits, as lower ids ended": lock(
    "the record",
    ends("VGHIJKLMW"),
    grants("Y", permits(1)),
    grants("X", permits(1)),
    later(),
    releases("Y"),
  ),
  "release of permits, as a higher id ended first": lock(
    "the record",
    ends("VWGHIJKLM"),
    grants("Y", permits(1)),
    grants("X", permits(1)),
    later(),
    releases("Y"),
  ),
  "release of permits in a scope": lock(
    "the record",
    grants("A", { ...permits(1), ...IN_S }),
    grants("B", permits(1)),
    later(),
    releases("A"),
  ),
  "release in a scope": lock("the record", grants("A", IN_S), grants("B", IN_S), later(), releases("A")),
  "start of a run": runs(start(), undefined),
  "renewal of a run": runs({ ...RENEW, leaseMs: 4 * RUN_LEASE_MS }, {}),
  "renewal of a run for the default": runs(RENEW, {}),
  "renewal with a checkpoint": runs({ ...RENEW, checkpoint: CHECKPOINT }, {}),
  "renewal with a numbered checkpoint": runs(
    { ...RENEW, leaseMs: 4 * RUN_LEASE_MS, checkpoint: { ...CHECKPOINT, sequence: 6 } },
    { checkpoint: { ...CHECKPOINT, sequence: 5 } },
  ),
  success: runs(complete("succeeded"), AGAIN),
  "success with a result": runs(complete("succeeded", { payload: CHECKPOINT }), AGAIN),
  "success with a result left out": runs(complete("succeeded", { omitted: true }), AGAIN),
  failure: runs(complete("failed", { payload: CHECKPOINT }), AGAIN),
  "failure for now": runs(complete("retry"), AGAIN),
  "release of one of many readers": lock("the record", ...crowd("A"), later(), releases("A")),
  "release of one of many in a scope": lock("the record", ...crowd("A", IN_S), later(), releases("A")),
  "claim of a reader": lock(
    "the record",
    grants("B"),
    asks("A", READER),
    asks("C", READER),
    releases("B"),
    asks("C", READER),
    later(),
    asks("A", READER),
  ),
  "claim of permits after a while": lock(
    "the record",
    grants("B", { ...permits(2), ...LONG }),
    grants("D", { ...permits(1), ...LONG }),
    later(LIMITS.nextTokenMs + 1),
    asks("A", permits(1)),
    asks("C", permits(1)),
    releases("D"),
    later(LIMITS.nextTokenMs + 1 + LIMITS.keepAliveAfterMs),
    asks("C", permits(1)),
    asks("A", permits(1)),
  ),
  "claim of permits": lock(
    "the record",
    grants("B", permits(2)),
    grants("D", permits(1)),
    asks("A", permits(1)),
    asks("C", permits(1)),
    releases("D"),
    later(LIMITS.keepAliveAfterMs),
    asks("C", permits(1)),
    later(),
    asks("A", permits(1)),
  ),
  cancel: lock("the record", grants("B"), asks("A"), asks("C"), later(), releases("A")),
  "cancel behind permits": lock(
    "the record",
    grants("B", permits(3)),
    asks("C", permits(1)),
    asks("A", permits(1)),
    later(),
    releases("A"),
  ),
  "join behind those who wait": lock("the record", ...freed("C"), later(), grants("E", SOME)),
  "claim from the only place": lock("the record", ...freed("A"), later(), asks("A", SOME)),
  "claim from the first place": lock("the record", ...freed("AC"), later(), asks("A", SOME)),
  "claim from a place behind": lock("the record", ...freed("CA"), later(), asks("A", SOME)),
  "claim of a reader from its place": lock(
    "the record",
    ...[grants("B", READER), asks("D"), asks("A", READER), releases("D"), later(), asks("A", READER)],
  ),
  "join of one of many permits behind those who wait": lock("the record", ...freed("C", MANY_LIMIT), later(), grants("E", MANY)),
  "claim of one of many permits from the first place": lock("the record", ...freed("AC", MANY_LIMIT), later(), asks("A", MANY)),
  "claim of one of many permits from a place behind": lock("the record", ...freed("CA", MANY_LIMIT), later(), asks("A", MANY)),
  "append behind a sleeper": lock(
    "the record",
    grants("B"),
    asks("A", { sleepMs: 60_000 }),
    later(),
    asks("E", { owner: "o".repeat(SHORT_OWNER_BYTES) }),
  ),
};

/** B holds one of so many permits, and there is room again for these, who wait. */
function freed(letters: string, limit = 9): readonly Step[] {
  const one = permits(1, limit);
  return [grants("B", one), grants("D", permits(limit - 1, limit)), ...Array.from(letters, (each) => asks(each, one)), releases("D")];
}

/** As many readers as may leave without a list of those that ended, and one more. */
function crowd(letter: string, options: QueueOptions = {}): readonly Step[] {
  return Array.from(`${letter}BCDEFGHI`, (each) => grants(each, { ...READER, ...options }));
}

type Change = (before: LockRecord, asked: Asked, fast: FormWrite) => Partial<LockRecord>;

const mine = ({ command }: Asked): string => (command as { readonly leaseId: string }).leaseId;
/** A run's key has no queue, no modes and no permits. */
const ofLock =
  (change: Change): Change =>
  (before, asked, fast) =>
    asked.kind === "runs" ? {} : change(before, asked, fast);
/** The caller's hold has these parts, if it has a hold. */
const held =
  (change: (hold: Hold, asked: Asked, fast: FormWrite) => Partial<Hold>): Change =>
  (before, asked, fast) => {
    const own = before.holds[mine(asked)];
    return own ? { holds: { ...before.holds, [mine(asked)]: { ...own, ...change(own, asked, fast) } } } : {};
  };
/** The caller's place has these parts, if it has a place. */
const waiting =
  (change: () => Partial<Waiter>): Change =>
  ({ waiters }, asked) => ({ waiters: waiters.map((each) => (each.leaseId === mine(asked) ? { ...each, ...change() } : each)) });
const waiter = (id: string, { reading }: Asked, parts: Partial<Waiter> = {}): Waiter => ({
  ...waiterFor(
    {
      ...{ type: "acquire", key: "k", leaseId: id, principal: "P", owner: "", leaseMs: LEASE_MS },
      ...{ mode: "exclusive", limit: 1, permits: 1, priority: 0, requestHash: "same" },
    },
    reading,
  ),
  ...parts,
});
const member = (id: string, asked: Asked): Member => ({ ...waiter(id, asked), condition: "c" });
const aHold = ({ reading: { earliestMs } }: Asked, { limit, holds }: LockRecord, parts: Partial<Hold> = {}): Hold => ({
  ...{ principal: "P", owner: "", permits: 1, fencingToken: 1, leaseMs: LEASE_MS, marginMs: 500, requestHash: "same" },
  ...{
    mode: limit > 1 ? "exclusive" : (Object.values(holds)[0]?.mode ?? "exclusive"),
    grantedAtMs: earliestMs - 1,
    expiresAtMs: earliestMs + LEASE_MS,
  },
  ...parts,
});
const ended = (id: string) => ({ leaseId: id, ending: "released" }) as const;
const ring = (last: string) => [...Array.from({ length: LIMITS.tombstonesMax - 1 }, (_, order) => ended(leaseId(60 + order))), ended(last)];
const others = (count: number): readonly string[] => Array.from({ length: count }, (_, order) => leaseId(300 + order));
/** As many wait as may, but so many fewer: those that sleep, and callers of this name. */
const fullQueue = ({ waiters }: LockRecord, asked: Asked, fewer: number, owner = ""): Partial<LockRecord> => {
  const sleepers = waiters.filter(({ asleep }) => asleep);
  const polling = others(LIMITS.waitersMax - fewer - sleepers.length).map((id) => waiter(id, asked, { owner }));
  return { waiters: [...sleepers, ...polling] };
};
const number = (fast: FormWrite, name: string): number | undefined => fast.values[name] as number | undefined;
/** The record is as large as `bytes`, by the meta of another's lease. */
const sized = (before: LockRecord, asked: Asked, bytes: number, parts: Partial<Hold> = {}): Partial<LockRecord> => {
  const withNote = (length: number) => ({
    holds: { ...before.holds, [HIGHER]: aHold(asked, before, { ...parts, meta: { note: "x".repeat(length) } }) },
  });
  return withNote(bytes - recordBytes({ ...before, ...withNote(0) }));
};

/** A reader holds the key, whose bytes leave this much less room than a full queue takes. */
const crowded =
  (lackingBytes: number): Change =>
  (before, asked, fast) => {
    const most = number(fast, ":crowded");
    return most === undefined ? {} : sized({ ...before, holds: {} }, asked, most + lackingBytes, { mode: "shared" });
  };

/** Differences that a key may have by the time a write arrives. One that concerns no part of the key is none. */
const DIFFERENCES: Readonly<Record<string, Change>> = {
  "as it was seen": () => ({}),
  "this id holds": (before, asked) => ({
    offers: before.offers.filter((offer) => offer.leaseId !== mine(asked)),
    waiters: before.waiters.filter(({ leaseId: id }) => id !== mine(asked)),
    holds: { ...before.holds, [mine(asked)]: before.holds[mine(asked)] ?? aHold(asked, before) },
  }),
  "this id has an offer": (_, asked) => ({
    offers: [{ ...waiter(mine(asked), asked), offeredAtMs: asked.reading.earliestMs }],
    waiters: [],
    holds: {},
  }),
  "this id waits": ({ waiters }, asked) => ({
    waiters: waiters.some((each) => each.leaseId === mine(asked)) ? waiters : [...waiters, waiter(mine(asked), asked)],
  }),
  "this id waits for a condition": (_, asked) => ({ waitSet: [member(mine(asked), asked)], limit: 1, offers: [] }),
  "the others have left": (before, asked) => {
    const own = before.holds[mine(asked)];
    return { holds: own ? { [mine(asked)]: own } : {} };
  },
  "the others have left, and another waits": (before, asked) => {
    const own = before.holds[mine(asked)];
    return { holds: own ? { [mine(asked)]: own } : {}, waiters: [waiter(HIGHER, asked)] };
  },
  "nobody holds": () => ({ holds: {}, offers: [] }),
  "nobody holds, and one waits": (_, asked) => ({ holds: {}, offers: [], waiters: [waiter(HIGHER, asked)] }),
  "another holds": (before, asked) => ({ holds: { [HIGHER]: aHold(asked, before) }, offers: [] }),
  "another holds too": (before, asked) => ({ holds: { ...before.holds, [HIGHER]: aHold(asked, before) } }),
  "another alone has an offer": (_, asked) => ({
    holds: {},
    offers: [{ ...waiter(HIGHER, asked), offeredAtMs: asked.reading.earliestMs }],
  }),
  "another waits": (before, asked) => ({ waiters: [...before.waiters, waiter(HIGHER, asked)] }),
  "another waits to read": (_, asked) => ({ waiters: [waiter(HIGHER, asked, { mode: "shared" })] }),
  "another waits for a condition": (_, asked) => ({ waitSet: [member(HIGHER, asked)], limit: 1 }),
  "the first who waits was not seen in time": ofLock((_, asked) => ({
    waiters: [waiter(HIGHER, asked, { aliveUntilMs: asked.reading.earliestMs })],
  })),
  "the first who waits was just seen in time": (_, asked) => ({
    waiters: [waiter(HIGHER, asked, { aliveUntilMs: asked.reading.earliestMs + 1 })],
  }),
  "another waits asleep": (_, asked) => ({ waiters: [waiter(HIGHER, asked, { asleep: true, ttlMs: 0 })] }),
  "another waits, and was seen after the clocks were read": (_, asked) => {
    const next = waiter(HIGHER, asked);
    return { waiters: [{ ...next, aliveUntilMs: next.aliveUntilMs + 1 }] };
  },
  "as many wait as may, but one": (before, asked) => fullQueue(before, asked, 1),
  "as many wait as may": (before, asked) => fullQueue(before, asked, 0),
  "those who wait take all bytes of a queue": (before, asked) => fullQueue(before, asked, 0, "o".repeat(SHORT_OWNER_BYTES)),
  "one who waits has a long name": (_, asked) => ({ waiters: [waiter(HIGHER, asked, { owner: "€".repeat(200) })] }),
  "as many hold as may, but one": (before, asked) => ({
    holds: {
      ...before.holds,
      ...Object.fromEntries(others(LIMITS.leasesMax - 1 - Object.keys(before.holds).length).map((id) => [id, aHold(asked, before)])),
    },
  }),
  "as many hold as may": (before, asked) => ({
    holds: {
      ...before.holds,
      ...Object.fromEntries(others(LIMITS.leasesMax - Object.keys(before.holds).length).map((id) => [id, aHold(asked, before)])),
    },
  }),
  "another has 2 permits": (before, asked) => (before.limit > 1 ? { holds: { [HIGHER]: aHold(asked, before, { permits: 2 }) } } : {}),
  "another has 3 permits": (before, asked) => (before.limit > 1 ? { holds: { [HIGHER]: aHold(asked, before, { permits: 3 }) } } : {}),
  ...Object.fromEntries(
    [0, 1].map((more): [string, Change] => [
      `the others have as many permits as leave room for this one, and ${more}`,
      (before, asked, fast) => {
        const room = number(fast, ":room");
        return room === undefined || before.limit === 1 ? {} : { holds: { [HIGHER]: aHold(asked, before, { permits: room + more }) } };
      },
    ]),
  ),
  "two holds were measured": () => ({ heldMs: 40, heldBeforeMs: 50 }),
  "another limit": ofLock(({ limit, offers }) => (offers.length > 0 ? {} : { limit: limit + 1 })),
  "readers hold it": (before, asked) => ({ limit: 1, holds: { [HIGHER]: aHold(asked, before, { mode: "shared" }) } }),
  "a reader waits to write": ofLock((_, { reading }) => ({ upgrading: { leaseId: HIGHER, untilMs: reading.earliestMs + 1 } })),
  "a reader waited to write": ofLock((_, { reading }) => ({ upgrading: { leaseId: HIGHER, untilMs: reading.earliestMs } })),
  "the record is as large as it may be with this one": (before, asked, fast) =>
    number(fast, ":small") === undefined ? {} : sized(before, asked, number(fast, ":small")!),
  "the record is too large for this one": (before, asked, fast) =>
    number(fast, ":small") === undefined ? {} : sized(before, asked, number(fast, ":small")! + 1),
  "readers hold it, and a full queue just fits": crowded(0),
  "readers hold it, and a full queue doesn't fit": crowded(1),

  ...Object.fromEntries(
    others(LIMITS.tombstonesMax).map((_, slot): [string, Change] => [
      `this id ended, and ${slot} others since`,
      ({ tombstones }, asked) => ({
        tombstones: [
          ...Array.from({ length: slot }, (_none, order) => tombstones[order] ?? ended(leaseId(60 + order))),
          ended(mine(asked)),
        ],
      }),
    ]),
  ),
  "the low watermark is below this id": () => ({ lowWatermark: LOWER }),
  "the low watermark is this id": (_, asked) => ({ lowWatermark: mine(asked) }),
  "the low watermark is above this id": () => ({ lowWatermark: HIGHER }),
  "a lower id than the low watermark drops out": () => ({ tombstones: ring(leaseId(50)), lowWatermark: leaseId(51) }),
  "the low watermark itself drops out": () => ({ tombstones: ring(leaseId(50)), lowWatermark: leaseId(50) }),
  "a higher id than the low watermark drops out": () => ({ tombstones: ring(leaseId(50)), lowWatermark: leaseId(49) }),
  "the highest id that may drops out": (_, { reading }) => ({ tombstones: ring(highestLowWatermark(reading)), lowWatermark: LOWER }),
  "the highest id that may drops out, below the low watermark": (_, { reading }) => ({
    tombstones: ring(highestLowWatermark(reading)),
    lowWatermark: leaseId(2, 3_600_000),
  }),
  "an id that is ahead drops out": () => ({ tombstones: ring(leaseId(1, 3_600_000)), lowWatermark: LOWER }),
  "an id that is ahead drops out, below a low watermark ahead": () => ({
    tombstones: ring(leaseId(1, 3_600_000)),
    lowWatermark: leaseId(2, 3_600_000),
  }),

  "another's lease": held(() => ({ principal: "Q" })),
  "the lease ran out": held((_, { reading }) => ({ expiresAtMs: reading.earliestMs })),
  "the lease just lasts": held((_, { reading }) => ({ expiresAtMs: reading.earliestMs + 1 })),
  "the lease is being broken": held(() => ({ broken: "drain" })),
  "the lease ends with its renewal": held(({ expiresAtMs }, _, fast) => ({ expiresAtMs: number(fast, ":expires") ?? expiresAtMs })),
  "the lease ends later than its renewal": held(({ expiresAtMs }, _, fast) => ({
    expiresAtMs: (number(fast, ":expires") ?? expiresAtMs) + 1,
  })),
  "the lease has the margin of its renewal": held(({ marginMs }, _, fast) => ({ marginMs: number(fast, ":margin") ?? marginMs })),
  "the lease has a greater margin": held(({ marginMs }, _, fast) => ({ marginMs: (number(fast, ":margin") ?? marginMs) + 1 })),
  "the lease has another length": held(({ leaseMs }) => ({ leaseMs: leaseMs + 1 })),
  "the lease has meta": held(() => ({ meta: { step: 1 } })),
  "the lease began as long ago as an outcome is kept": held((_, { reading }) => ({ grantedAtMs: reading.latestMs - POLICY.retentionMs })),
  "the lease began longer ago": held((_, { reading }) => ({ grantedAtMs: reading.latestMs - POLICY.retentionMs - 1 })),

  ...Object.fromEntries(
    [-1, 0, 1].flatMap((more): [string, Change][] => [
      [`the token is the clock's, and ${more}`, (_, { reading }) => ({ fencingToken: reading.latestMs + more })],
      [`the token is a minute old, and ${more}`, (_, { reading }) => ({ fencingToken: reading.latestMs - LIMITS.nextTokenMs + more })],
      [
        `garbage collection is as late as it must be, and ${more} s`,
        ({ ttlAtSec }, _, fast) => ({ ttlAtSec: (number(fast, ":ttl") ?? number(fast, ":touched") ?? ttlAtSec) + more }),
      ],
      [
        `the checkpoint has this number, and ${more}`,
        ({ run: its }) => (its?.checkpoint ? { run: { ...its, checkpoint: { ...its.checkpoint, sequence: 6 + more } } } : {}),
      ],
    ]),
  ),
  "the checkpoint has no number": ({ run: its }) => (its ? { run: { ...its, checkpoint: CHECKPOINT } } : {}),
  "a run is stored": (_, { kind }) => (kind === "runs" ? { run: run({ state: "retry" }) } : {}),
  "an offer asks for something else": ({ offers }) => ({ offers: offers.map((offer) => ({ ...offer, requestHash: "other" })) }),
  "the offer was claimed by one who is called as the digest of its principal": ({ offers }, asked) =>
    offers.length > 0 ? { offers: [], holds: { [mine(asked)]: aHold(asked, EMPTY_RECORD, { principal: offers[0]!.principal }) } } : {},
  "the place is another's": waiting(() => ({ principal: "Q" })),
  "the place asks for something else": waiting(() => ({ requestHash: "other" })),
  "the place came by a notify": waiting(() => ({ condition: "c" })),
  "another stands in the first place": ({ waiters }, asked) => ({
    waiters: waiters.length > 0 ? waiters.with(0, waiter(HIGHER, asked)) : waiters,
  }),
  "another's offer": ({ offers }) => ({ offers: offers.map((offer) => ({ ...offer, principal: "Q" })) }),
};

/** So many leases ended, and are listed. Their ids are below those of the commands: the core, which has no list, knows them by the watermark. */
export const listed = (count: number): Item => ({
  rl: Array.from({ length: count }, (_, order) => storedId(leaseId(order, -90_000))),
  rz: NOW_MS,
});

/** The item with a left place here, in place of so many others. */
export const leftAt = (item: Item, place: number, instead = 0): Item => {
  const left = {
    ...item,
    q: (item["q"] as readonly Item[]).toSpliced(place, instead, NO_ENTRY),
    qi: (item["qi"] as readonly string[]).toSpliced(place, instead, LEFT),
  };
  return "cb" in item ? { ...left, cb: toItem(fromItem(left))["cb"] } : left;
};

/** Items that this version would not write, or not on a key of so few leases. */
const ITEMS: Readonly<Record<string, (item: Item, id: string) => Item>> = {
  "this id ended, and is listed": (item, id) =>
    JSON.stringify([item["h"], item["q"]]).includes(storedId(id)) ? item : { ...item, rl: [storedId(LOWER), storedId(id)], rz: NOW_MS },
  "one ended and is listed": (item) => ({ ...item, ...listed(1) }),
  "a place was left before all others": (item) => leftAt(item, 0),
  "a place was left behind all others": (item) => leftAt(item, (item["qi"] as readonly string[]).length),
  // Whoever sleeps leaves no place behind.
  "the first who waits has left its place": (item) =>
    (item["qi"] as readonly string[]).length > 0 && item["qs"] === undefined ? leftAt(item, 0, 1) : item,
  "many ended and are listed": (item) => ({ ...item, ...listed(LISTED_MAX + 1) }),
  "those who were listed are tombstones": (item) => ({ ...item, rl: [] }),
  "an older version wrote it": (item) => ({ ...item, fv: FORMAT_VERSION - 1 }),
  "it has no format number": ({ fv: _none, ...item }) => item,
  "a newer version wrote it": (item) => ({ ...item, fv: FORMAT_VERSION + 1 }),
  "all who held left beside the offers": (item) =>
    "co" in item
      ? { ...item, h: Object.fromEntries(Object.entries(item["h"] as Item).filter(([, one]) => !("t" in (one as Item)))) }
      : item,
  "a former version wrote it, and counts no sums": ({ cv, cp: _permits, cb: _bytes, jt: _tokens, ...item }) => item,
  "a former version changed it, and left the sums": (item) => ("cv" in item ? { ...item, v: Number(item["v"]) + 1 } : item),
  "a crowd left its sums": (item) =>
    Object.keys(item["h"] as Item).length === 0 ? { ...item, cv: 1, cp: 1, cb: 1, co: 1, jt: { a: 1 } } : item,
  "it never had eight tombstones": ({ r7, ...item }) => (item["fl"] === "" ? item : { ...item, r7 }),
  "it never had a queue": ({ q, qi, ...item }) => ((q as readonly Item[]).length > 0 ? { ...item, q, qi } : item),
  ...Object.fromEntries(
    ["f", "fl", "ff"].map((name) => [
      `it has no ${name}`,
      (item: Item) => Object.fromEntries(Object.entries(item).filter(([each]) => each !== name)),
    ]),
  ),
};

/** A common write on a key with a difference: the stored item, and what became of the write. */
export interface Difference {
  readonly name: string;
  readonly item: Item | null;
}

/** The items on which a common write is tried. */
export function differencesFor(asked: Asked): readonly Difference[] {
  const fast = pathOf(asked)!;
  const unused: LockRecord = { ...EMPTY_RECORD, version: 3, ttlAtSec: 1 };
  const { before = unused } = asked;
  return [
    { name: "nothing is stored", item: null },
    ...Object.entries(DIFFERENCES).map(([name, change]) => ({ name, item: toItem({ ...before, ...change(before, asked, fast) }) })),
    ...Object.entries(ITEMS).map(([name, change]) => ({ name, item: change(toItem(before), mine(asked)) })),
  ];
}
