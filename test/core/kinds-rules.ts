/**
 * The rules that every history of a key must satisfy, whatever kinds of lock it uses. Each rule watches the steps of
 * one history and names the step that broke it. No rule calls the core: each keeps its own count.
 */
import type { Command, Decision, Held } from "../../lib/core/commands.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import type { Hold, LockRecord, Mode } from "../../lib/core/record.js";
import type { Asked } from "./kinds-history.js";

/** One step of a history: the command, the answer, and the holds before and after. */
export interface Taken extends Asked {
  readonly answer: Decision["answer"];
  readonly before: LockRecord | undefined;
  readonly after: LockRecord | undefined;
}

/** Watches one history, and returns a description of a violation of its rule. */
export type Watch = (taken: Taken) => string | undefined;

type Holds = readonly (readonly [LeaseId, Hold])[];

const holdsOf = (record: LockRecord | undefined): Holds => Object.entries(record?.holds ?? {});
const idOf = (command: Command): LeaseId | undefined => ("leaseId" in command ? command.leaseId : undefined);
const lives = (hold: Hold, { reading }: Taken): boolean => hold.expiresAtMs > reading.earliestMs;
const stands = (hold: Hold, { reading }: Taken): boolean => hold.expiresAtMs + hold.marginMs > reading.earliestMs;

/** The answer, if it reports a held lease. */
function heldIn({ answer, command }: Taken): Held | undefined {
  return command.type !== "start" && answer.ok && "lease" in answer && "how" in answer ? answer : undefined;
}

/** The other live leases of the new lease's scope, before the grant. */
function outerOf(taken: Taken): Holds {
  const { command, before } = taken;
  if (command.type !== "acquire" || command.scope === undefined) return [];
  return holdsOf(before).filter(([id, hold]) => id !== command.leaseId && hold.scope === command.scope && lives(hold, taken));
}

const isGrant = (how: Held["how"]): boolean => how === "granted" || how === "transferred" || how === "changed";
const isWriter = (mode: Mode, limit: number): boolean => mode === "exclusive" && limit === 1;

/** S3: a reentrant hold has the token of the scope's outer hold, and every other grant has a token above all earlier ones. */
function tokensIncrease(): Watch {
  let highest = 0;
  return (taken) => {
    const held = heldIn(taken);
    if (!held || !isGrant(held.how)) return undefined;
    const { fencingToken } = held.lease;
    const outer = outerOf(taken);
    if (outer.length > 0)
      return outer.some(([, hold]) => hold.fencingToken === fencingToken) ? undefined : "a level with a token of its own";
    if (fencingToken <= highest) return `a grant with token ${fencingToken} after ${highest}`;
    highest = fencingToken;
    return undefined;
  };
}

/** S5: a command on one lease leaves every other lease unchanged. Holds that disappear had expired, margin included. */
const othersAreLeftAlone = (): Watch => (taken) => {
  const { command, before, after } = taken;
  for (const [id, hold] of holdsOf(before)) {
    const isMeant = id === idOf(command) || (command.type === "break" && command.fencingToken === hold.fencingToken);
    const now = after?.holds[id];
    if (isMeant || now === hold) continue;
    if (now) return `${command.type} changed the lease of another`;
    if (stands(hold, taken)) return `${command.type} ended the lease of another before its margin was over`;
  }
  return undefined;
};

/** S10: the count is the number of live leases in the scope, by their ids. */
const levelsAreCounted = (): Watch => (taken) => {
  const held = heldIn(taken);
  const mine = held && taken.after?.holds[held.lease.leaseId];
  if (!held || !mine) return undefined;
  const levels = holdsOf(taken.after).filter(([, hold]) => mine.scope !== undefined && hold.scope === mine.scope && lives(hold, taken));
  const count = Math.max(1, levels.length);
  return held.lease.holdCount === count ? undefined : `a count of ${held.lease.holdCount} where ${count} live`;
};

/** S10: only a lease that is present excludes others. The key is free when the last reentrant hold is gone. */
const onlyHoldersKeepOut = (): Watch => (taken) => {
  const { command, answer, before } = taken;
  if (command.type !== "acquire" || answer.ok || !["locked", "limit-mismatch"].includes(answer.code)) return undefined;
  return holdsOf(before).some(([, hold]) => stands(hold, taken)) ? undefined : `${answer.code} by nobody`;
};

interface Out extends Pick<Hold, "mode" | "permits" | "fencingToken" | "scope"> {
  readonly id: LeaseId;
  readonly limit: number;
}

/** S11: a writer never holds together with a lease of another scope. */
function writersAreAlone(out: readonly Out[]): string | undefined {
  const writer = out.find(({ mode, limit }) => isWriter(mode, limit));
  const other = writer && out.find(({ id, scope }) => id !== writer.id && (scope === undefined || scope !== writer.scope));
  return other && `a writer beside another ${other.mode} lease`;
}

/** S12: never more permits out than exist. The leases of one scope count as one hold, with the largest number of permits among them. */
function permitsAreKept(out: readonly Out[]): string | undefined {
  const byHold = new Map<string, number>();
  for (const { id, scope = id, permits } of out) byHold.set(scope, Math.max(byHold.get(scope) ?? 0, permits));
  const permits = Array.from(byHold.values()).reduce((sum, each) => sum + each, 0);
  const isSemaphore = out.some(({ limit }) => limit > 1);
  const limit = Math.min(...out.map((each) => each.limit));
  return isSemaphore && permits > limit ? `${permits} permits of ${limit} out` : undefined;
}

/** Checks a rule on the content of the record. That content doesn't depend on the clock: a grant has counted everyone on the record. */
const inTheRecord =
  (rule: (out: readonly Out[]) => string | undefined): (() => Watch) =>
  () =>
  ({ after }) =>
    after && rule(holdsOf(after).map(([id, hold]) => ({ id, limit: after.limit, ...hold })));

/** Checks a rule on the leases that clients treat as held, each by the slowest clock allowed and after a reply without latency. */
const inBelief =
  (rule: (out: readonly Out[]) => string | undefined): (() => Watch) =>
  () => {
    const believed = new Map<LeaseId, Out & { readonly untilMs: number }>();
    return (taken) => {
      const { command, after, nowMs } = taken;
      // The client stops treating the lease as held before it sends the request. After a forced break, only the token protects.
      if (command.type === "release" || command.type === "transfer") believed.delete(command.leaseId);
      const held = heldIn(taken);
      const hold = held && after?.holds[held.lease.leaseId];
      if (held && hold) {
        const { leaseId: id, mode, permits, fencingToken, remainingMs } = held.lease;
        const untilMs = Math.max(believed.get(id)?.untilMs ?? 0, nowMs + remainingMs / (1 - DEFAULTS.clockRateError));
        const { scope } = hold;
        believed.set(id, { id, mode, permits, fencingToken, limit: after.limit, untilMs, ...(scope !== undefined && { scope }) });
      }
      for (const [id, { fencingToken, untilMs }] of believed) {
        const isForced =
          after?.holds[id]?.broken === "forced" || (command.type === "break" && command.fencingToken === fencingToken && !after?.holds[id]);
        if (isForced || untilMs <= nowMs) believed.delete(id);
      }
      return rule(Array.from(believed.values()));
    };
  };

/** S11: a change of mode must name the token before it, so a late duplicate never undoes a change. */
const duplicatesChangeNothing =
  (): Watch =>
  ({ command, before, after }) => {
    if (command.type !== "mode") return undefined;
    const hold = before?.holds[command.leaseId];
    const isChanged = after?.holds[command.leaseId]?.mode !== hold?.mode;
    return isChanged && hold?.fencingToken !== command.fencingToken ? "a change of mode that named another token" : undefined;
  };

/** Among readers that ask to upgrade, the first waits. Meanwhile no other reader waits to upgrade, and no new reader is granted. */
function firstUpgradeWaits(): Watch {
  let first: { readonly id: LeaseId; readonly untilMs: number } | undefined;
  return (taken) => {
    const { command, answer, before, reading } = taken;
    const its = first && before?.holds[first.id];
    const isWaiting = its && stands(its, taken) && first && first.untilMs > reading.earliestMs ? first : undefined;
    const asks = command.type === "mode" && command.mode === "exclusive" && !answer.ok && answer.code === "locked";
    const conflicts = command.type === "mode" && !answer.ok && answer.code === "upgrade-conflict";
    if (asks) {
      if (isWaiting && isWaiting.id !== command.leaseId) return "two readers wait for each other";
      first = { id: command.leaseId, untilMs: reading.latestMs + DEFAULTS.waiterTtlMs };
    } else if (conflicts && !isWaiting) return "in conflict with nobody";
    else if (isWaiting && command.type === "acquire" && answer.ok && heldIn(taken)?.how === "granted" && outerOf(taken).length === 0)
      return "a reader came while one waited to become the writer";
    else if (command.type === "mode" && command.mode === "exclusive" && answer.ok) first = undefined;
    return undefined;
  };
}

/** A break ends the whole hold: any lease with its token from then on is broken too, and lasts no longer than the break's answer said. */
function breaksEnd(): Watch {
  const untilMs = new Map<number, number>();
  return ({ command, answer, after }) => {
    for (const [, { fencingToken, broken, expiresAtMs }] of holdsOf(after)) {
      const toldMs = untilMs.get(fencingToken) ?? Infinity;
      if (toldMs < Infinity && !broken) return "a lease that is not broken in a hold that is";
      if (expiresAtMs > toldMs) return "a broken hold that lasts longer than was told";
    }
    if (command.type !== "break" || !answer.ok) return undefined;
    const levels = holdsOf(after).filter(([, hold]) => hold.fencingToken === command.fencingToken);
    untilMs.set(command.fencingToken, Math.max(0, ...levels.map(([, hold]) => hold.expiresAtMs)));
    return undefined;
  };
}

/** S4: fenceFloor is the token of the latest grant that found no other holder. Readers and permits receive it. */
function floorIsKept(): Watch {
  let floor = 0;
  return (taken) => {
    const held = heldIn(taken);
    const { after } = taken;
    if (!held || !after) return undefined;
    const { lease, how } = held;
    const isFirst = how === "granted" && holdsOf(after).length === 1;
    if (isGrant(how) && (isWriter(lease.mode, after.limit) || isFirst) && outerOf(taken).length === 0) floor = lease.fencingToken;
    const told = isWriter(lease.mode, after.limit) ? undefined : floor;
    return after.fenceFloor === floor && lease.fenceFloor === told
      ? undefined
      : `a floor of ${lease.fenceFloor ?? after.fenceFloor}, not ${floor}`;
  };
}

/** The rules by name. */
export const RULES_OF_KINDS = {
  "S3: tokens strictly increase over grants that are not nested": tokensIncrease,
  "S5: a command about one lease leaves every other alone until its margin is over": othersAreLeftAlone,
  "S10: the count is of living levels": levelsAreCounted,
  "S10: nobody is kept out by nobody": onlyHoldersKeepOut,
  "S11: never a writer with anybody, on the record": inTheRecord(writersAreAlone),
  "S11: never a writer with anybody, as they believe": inBelief(writersAreAlone),
  "S12: never more permits out than the limit, on the record": inTheRecord(permitsAreKept),
  "S12: never more permits out than the limit, as they believe": inBelief(permitsAreKept),
  "S11: a late duplicate never undoes a change of mode": duplicatesChangeNothing,
  "of two readers that ask to upgrade the first waits": firstUpgradeWaits,
  "a break ends the whole hold": breaksEnd,
  "S4: the floor is the token of the latest grant that met nobody else": floorIsKept,
} as const satisfies Readonly<Record<string, () => Watch>>;

export type RuleName = keyof typeof RULES_OF_KINDS;
