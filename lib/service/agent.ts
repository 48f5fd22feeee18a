/**
 * The agent that wakes sleepers. It has no lock rule of its own: it claims the key as a polling client would, by the sleeper's own acquire,
 * and then tells the sleeper's target. It sweeps over all sleepers once a minute, so nothing that gets lost can lose a waiter
 * (decision 046). Between sweeps, it wakes those of a key that a release has just offered. For each:
 *
 *  1. its id is not in the record, or its time is over   → cancelled; its targets are told that it lost its place
 *  2. it was granted the key lately                      → left to the agent that claimed it
 *  3. its turn hasn't come, by the record that was read  → it sleeps on. Else its acquire, without a wait
 *  4. granted                                            → its targets are told; if that fails, the next sweep tells them
 *  5. nobody waits at any target                         → dead: its lease is released. Unclear: its lease runs out
 *
 * Each request of a sleeper brings its target, and all are told (decision 058): at most one of them still waits.
 *
 * Agents may run at the same time. A target that was told says the same as one where nobody waits. So only the agent that claimed the key a
 * moment ago may take that answer for a death, and others keep away until that agent must be gone.
 *
 * A table of several Regions has an agent in each, and every one of them looks after all sleepers. A target waits in one Region, and elsewhere it is
 * as one where nobody waits. So it is told in all Regions of the table (decision 117).
 *
 * It also renews tied leases, by the lease's own length or three minutes, and releases those whose execution is over:
 *
 *  1. the lease is not in the record, or has run out  → it never began, or has ended: no longer looked after
 *  2. it waits, or was granted lately                 → left alone. AWS may not know an execution yet that has just begun
 *  3. its execution runs                              → renewed. If the lease is lost, it is no longer looked after
 *  4. its execution is over                           → released, and no longer looked after
 *  5. AWS doesn't say                                 → a failure, and left to the next sweep: at worst the lease runs out by itself
 *
 * AWS answers so many questions a second for a whole account. So a sweep first reads all records, then asks about several leases at a time:
 * each namespace in its turn, and in each the lease that ends first. What one sweep doesn't reach, the next one asks about first.
 *
 * No order of several agents' requests, and no pause or death between two of them, does harm:
 *
 *  - one that read "runs" and renews late lengthens the lease of a stopped execution once. If the lease has ended, the renewal is refused
 *  - one that read "over" and releases late ends that lease and no other: no lease comes back under its id
 *  - one that died before its release, or before its delete, has changed nothing that the next sweep doesn't find
 *  - one that deletes late deletes nothing that was stored since. It read the record later than the list, so a lease that isn't there had
 *    ended, or its acquire is more than 30 s late: such a lease is as one without a tie, and runs out by itself
 *  - the holder's own renewals, and those of two agents, only ever lengthen
 */
import type { WakeTarget } from "../core/api/locks.js";
import { type Acquire, type AnswerTo, type Command, type LeaseView, type Release, type Renew, ASK_NOW_MS } from "../core/commands.js";
import { LIMITS } from "../core/limits.js";
import { check } from "../core/lock/check.js";
import { isLive, isWaiting } from "../core/lock/expiry.js";
import { isInRecord, placeOf } from "../core/lock/places.js";
import type { Hold, LockRecord } from "../core/record.js";
import { type Clock, elapsedMs, instantOf } from "../core/time.js";
import type { Address, LockStore, Sleeper, SleeperStore, TiedLease } from "../store/port.js";
import { type RequestClocks, guarded, known } from "./clocks.js";
import { type Log, eventLine } from "./log.js";

/** The failure that a target is told of: the lease will never have the key. */
export const LOST_PLACE = "Holdfast.LostPlace";

/** The news for a target: the lease has the key, or never will. */
export type WakeMessage = Pick<LeaseView, "key" | "leaseId" | "fencingToken" | "leaseMs"> | typeof LOST_PLACE;

/**
 * Tells a target, by one request to a Region, by default the agent's own. `gone`: nobody waits there, or somebody told it before.
 * @throws Error, without the target in it, if it is not known whether the target was told
 */
export type Tell = (target: WakeTarget, outcome: WakeMessage, region?: string) => Promise<"told" | "gone">;

/** Asks AWS whether an execution still runs. Undefined: AWS was asked too fast, more than once. @throws Error if that is not known */
export type IsRunning = (executionArn: string) => Promise<boolean | undefined>;

export interface AgentDeps {
  readonly store: Pick<LockStore, "read" | "apply">;
  readonly sleepers: SleeperStore;
  readonly tell: Tell;
  /** The Regions in which a target may wait: those with a replica of the table. @default the agent's own alone */
  readonly regions?: readonly string[] | undefined;
  readonly isRunning: IsRunning;
  readonly clocks: RequestClocks;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each sleeper or tied lease that was left to the next sweep by a failure. */
  readonly onFailure: (error: unknown) => void;
}

/** The result for a sleeper. All but `asleep` and `failed` are the end of it. */
export type WakeResult = "asleep" | "woken" | "dead" | "unclear" | "lost" | "failed";
/** The result for a tied lease. The agent looks no longer after one that is `untied`: it ended, or was released just now. */
export type TieResult = "left" | "renewed" | "untied" | "failed";

/** The time within which the agent that claimed takes `gone` for a death. */
const VERDICT_MS = 10_000;
/** The time for which others leave a granted sleeper to that agent, and one that is not queued yet to its request. */
const OTHERS_MS = 30_000;
/** A sweep lists, and looks at sleepers, for so long. After that it asks about executions. The next sweep begins a minute after it. */
const LIST_MS = 30_000;
/** Those of a key that was offered are looked at for so long. The next sweep looks at the rest. */
const OFFERED_MS = 30_000;
/** A sweep asks about no further execution after this time. */
const SWEEP_MS = 45_000;
/** The time between the beginnings of two sweeps. */
const SWEEP_EACH_MS = 60_000;
/** Executions that are asked about at the same time: more would only be refused more often, as too fast. */
const ASKS_AT_ONCE = 8;

/** A sweep ended before it had looked at all. */
class NoTime extends Error {
  override readonly name = "NoTime";

  constructor(what: string) {
    super(`there was no time left for ${what}`);
  }
}

/** The place in the list after which the next sweep goes on. Without one, it begins anew. */
export interface SweepPlace {
  after?: string | undefined;
}

/** A tied lease whose execution is to be asked about, and its hold as the record had it. */
interface DueTie {
  readonly tied: TiedLease;
  readonly hold: Hold;
}

/** Looks at every sleeper and tied lease. Returns how many of them were woken, found dead, renewed, and so on. */
export async function sweep(deps: AgentDeps, place: SweepPlace = {}): Promise<Readonly<Partial<Record<WakeResult | TieResult, number>>>> {
  const counts: Partial<Record<WakeResult | TieResult, number>> = {};
  const count = (result: WakeResult | TieResult): void => void (counts[result] = (counts[result] ?? 0) + 1);
  const fail = (error: unknown): void => {
    count("failed");
    deps.onFailure(error);
  };
  const beganMs = deps.clock.monotonicMs();
  const due: DueTie[] = [];
  do {
    const { sleepers, ties, unreadable, next } = await deps.sleepers.list(place.after);
    for (const error of unreadable) fail(error);
    const byKey = new Map<string, (Sleeper | TiedLease)[]>();
    for (const entry of [...sleepers, ...ties]) {
      const name = `${entry.address.namespace}/${entry.address.key}`;
      byKey.set(name, [...(byKey.get(name) ?? []), entry]);
    }
    const all = await Promise.all(Array.from(byKey.values(), (entries) => sweepKey(entries, deps, beganMs + LIST_MS)));
    for (const result of all.flat())
      if (typeof result === "object") due.push(result);
      else count(result);
    place.after = next;
  } while (place.after !== undefined && deps.clock.monotonicMs() < beganMs + LIST_MS);
  if (place.after !== undefined) fail(new NoTime("the rest of the list"));

  const left = await askAll(inTurn(due), deps, beganMs + SWEEP_MS, count);
  for (const { hold } of left)
    if (hold.expiresAtMs > known(deps.clocks)().earliestMs + SWEEP_EACH_MS) count("left");
    else fail(new NoTime("a tied lease, which ends before the next sweep does"));
  return counts;
}

/** Asks about these leases until that time, several at once. Returns those that are left. */
async function askAll(
  due: readonly DueTie[],
  deps: AgentDeps,
  untilMs: number,
  count: (result: TieResult) => void,
): Promise<readonly DueTie[]> {
  const failed = (error: unknown): "failed" => (deps.onFailure(error), "failed");
  const queue = due.values();
  const left: DueTie[] = [];
  const oneByOne = async (): Promise<void> => {
    for (const tie of queue) {
      let result: TieResult | "unasked" = "unasked";
      while (result === "unasked" && deps.clock.monotonicMs() < untilMs) result = await ask(tie, deps).catch(failed);
      if (result === "unasked") left.push(tie);
      else count(result);
    }
  };
  await Promise.all(Array.from({ length: ASKS_AT_ONCE }, oneByOne));
  return left;
}

/** Orders leases by the turns of their namespaces, and those of a namespace by their ends: the earliest deadline first. */
function inTurn(due: readonly DueTie[]): readonly DueTie[] {
  const turns = new Map<string, number>();
  return due
    .toSorted((a, b) => a.hold.expiresAtMs - b.hold.expiresAtMs)
    .map((tie) => {
      const { namespace } = tie.tied.address;
      const turn = turns.get(namespace) ?? 0;
      turns.set(namespace, turn + 1);
      return { tie, turn };
    })
    .toSorted((a, b) => a.turn - b.turn)
    .map(({ tie }) => tie);
}

/**
 * Wakes the sleepers to whom a key is offered, for half a minute at most. Returns the result of each.
 * @throws StoreUnavailable before anything was told
 */
export async function wakeOffered(address: Address, deps: AgentDeps): Promise<readonly unknown[]> {
  const { offers = [] } = (await deps.store.read(address)) ?? {};
  const asleep = offers.filter((offer) => offer.asleep === true);
  const found = await Promise.all(asleep.map(({ leaseId }) => deps.sleepers.read(address, leaseId)));
  const sleepers = found.filter((sleeper) => sleeper !== undefined);
  return sweepKey(sleepers, deps, deps.clock.monotonicMs() + OFFERED_MS);
}

/**
 * Looks at those of one key, one after the other: one that is dead may pass the key on to the next. Reads the record again after a change.
 * Returns the result of each, or a tied lease that is to be asked about.
 */
async function sweepKey(
  entries: readonly (Sleeper | TiedLease)[],
  deps: AgentDeps,
  untilMs: number,
): Promise<readonly (WakeResult | TieResult | DueTie)[]> {
  const results: (WakeResult | TieResult | DueTie)[] = [];
  let record: LockRecord | undefined;
  let isFresh = false;
  for (const entry of entries) {
    try {
      if (deps.clock.monotonicMs() >= untilMs) throw new NoTime("the rest of a key");
      if (!isFresh) record = await deps.store.read(entry.address);
      const result = await ("acquire" in entry ? wake(entry, record, deps) : tendTie(entry, record, deps));
      isFresh = result === "asleep" || "executionArn" in entry;
      results.push(result);
    } catch (error) {
      isFresh = false;
      results.push("failed");
      deps.onFailure(error);
    }
  }
  return results;
}

/** Claims the key for a sleeper if its turn has come, and tells its target. Safe to repeat, and at the same time elsewhere. */
export async function wake(sleeper: Sleeper, record: LockRecord | undefined, deps: AgentDeps): Promise<WakeResult> {
  const { clock, clocks } = deps;
  const { address, acquire, targets, putAtMs, untilMs } = sleeper;
  const { leaseId, principal } = acquire;
  const over = async (woken: WakeResult): Promise<WakeResult> => (await deps.sleepers.delete(sleeper), woken);
  const release: Release = { type: "release", key: address.key, leaseId, principal };

  const reading = guarded(clocks)();
  const lost = async (): Promise<WakeResult> => {
    await sendToAll(targets, LOST_PLACE, deps).catch((error: unknown) => {
      // After its time, nobody waits for the news.
      if (untilMs > reading.earliestMs) throw error;
    });
    return over("lost");
  };
  if (!record || !isInRecord(record, leaseId)) return putAtMs + OTHERS_MS > reading.earliestMs ? "asleep" : lost();
  const waiter = record.waiters[placeOf(record, leaseId)];
  if (waiter && !isWaiting(waiter, reading)) {
    // It may have been granted the key since its record was read: then its lease goes on.
    const ended = await apply<Release>(address, { ...release, onlyWaiting: true }, deps);
    return ended.ok && ended.state === "never" ? lost() : "asleep";
  }
  const held = record.holds[leaseId];
  if (held && held.grantedAtMs + OTHERS_MS > reading.earliestMs) return "asleep";

  // It asks once its turn has come, as a polling client does. The record that was read says when.
  const turn = check(record, { key: address.key, leaseId, principal }, reading);
  if (turn.ok && "state" in turn && turn.retryAfterMs !== ASK_NOW_MS) return "asleep";
  const began = instantOf(clock);
  // Without a wait: an id that left the queue meanwhile is not queued anew.
  const answer = await apply<Acquire>(address, acquire, deps);
  if (!answer.ok) return answer.code === "lease-over" ? lost() : "asleep";
  if ("state" in answer) return "asleep";
  const isClaimed = answer.how === "granted";
  if (!isClaimed && !held) return "asleep"; // Another agent claimed the key since the record was read.
  const { key, fencingToken, leaseMs } = answer.lease;
  if ((await sendToAll(targets, { key, leaseId, fencingToken, leaseMs }, deps)) === "told") return over("woken");
  if (!isClaimed || elapsedMs(began, instantOf(clock)) > VERDICT_MS) return over("unclear");
  // A retry of the sleeper may have stored its target meanwhile, which the next sweep tells.
  const current = await deps.sleepers.read(address, leaseId);
  if (current && current.targets.length > targets.length) return "asleep";
  await apply(address, release, deps);
  return over("dead");
}

type TellDeps = Pick<AgentDeps, "tell" | "regions">;
type Told = PromiseSettledResult<"told" | "gone">;

/**
 * Tells all targets at the same time. `told`: one of them, or more.
 * @throws the error of one of which it is not known, even if another was told: the next sweep tells it again
 */
async function sendToAll(targets: readonly WakeTarget[], outcome: WakeMessage, deps: TellDeps): Promise<"told" | "gone"> {
  const answers = await Promise.allSettled(targets.map((target) => sendTo(target, outcome, deps)));
  failIfUnknown(answers);
  return answers.some(isTold) ? "told" : "gone";
}

/**
 * Tells a target in all Regions at the same time. `told`: in one of them, and then no other is waited for.
 * @throws the error of one of which it is not known, if none was told
 */
async function sendTo(target: WakeTarget, outcome: WakeMessage, { tell, regions = [] }: TellDeps): Promise<"told" | "gone"> {
  if (regions.length === 0) return tell(target, outcome);
  const answers = regions.map((region) => tell(target, outcome, region));
  const told = answers.map(async (answer): Promise<"told"> => {
    if ((await answer) !== "told") throw new Error("Nobody waits there");
    return "told";
  });
  try {
    return await Promise.any(told);
  } catch {
    failIfUnknown(await Promise.allSettled(answers));
    return "gone";
  }
}

function isTold(answer: Told): boolean {
  return answer.status === "fulfilled" && answer.value === "told";
}

function failIfUnknown(answers: readonly Told[]): void {
  const failed = answers.find((answer) => answer.status === "rejected");
  if (failed) throw failed.reason;
}

/** Looks at a tied lease: AWS is asked about its execution only if the lease is held. */
export async function tendTie(tied: TiedLease, record: LockRecord | undefined, deps: AgentDeps): Promise<TieResult | DueTie> {
  const { leaseId, putAtMs } = tied;
  const reading = guarded(deps.clocks)();
  const isThere = record !== undefined && isInRecord(record, leaseId);
  if (!isThere) return putAtMs + OTHERS_MS > reading.earliestMs ? "left" : untie(tied, deps);
  const hold = record.holds[leaseId];
  if (hold && !isLive(hold, reading)) return untie(tied, deps);
  return !hold || hold.grantedAtMs + OTHERS_MS > reading.earliestMs ? "left" : { tied, hold };
}

/** Renews a tied lease if its execution runs, and releases it if that is over. Safe to repeat, and at the same time elsewhere. */
async function ask({ tied, hold }: DueTie, deps: AgentDeps): Promise<TieResult | "unasked"> {
  const { address, leaseId, principal, executionArn } = tied;
  const ref = { key: address.key, leaseId, principal };
  const isRunning = await deps.isRunning(executionArn);
  if (isRunning === undefined) return "unasked";
  if (isRunning) {
    // With a length, the store needs one write and no read. A holder may have renewed for less than two sweeps.
    const leaseMs = Math.max(hold.leaseMs, LIMITS.agentLeaseMinMs);
    const answer = await apply<Renew>(address, { type: "renew", ...ref, leaseMs }, deps);
    if (answer.ok) return "renewed";
    return answer.code === "lease-lost" ? untie(tied, deps) : "left";
  }
  await apply<Release>(address, { type: "release", ...ref }, deps);
  return untie(tied, deps);
}

async function untie(tied: TiedLease, deps: AgentDeps): Promise<"untied"> {
  await deps.sleepers.delete(tied);
  return "untied";
}

/** Applies a command of the holder or the sleeper, and logs it under that one's principal, by the agent. */
async function apply<C extends Command>(address: Address, command: C, { store, clocks, log }: AgentDeps): Promise<AnswerTo<C>> {
  const caller = { namespace: address.namespace, principal: "agent", requestId: "agent" };
  const { answer, events } = await store.apply(address, command, guarded(clocks));
  for (const event of events) log(eventLine(address, event, caller, known(clocks)().latestMs));
  return answer;
}
