/**
 * The agent that wakes sleepers. It has no lock rule of its own: it claims the key as a polling client would, by the sleeper's own acquire,
 * and then tells the sleeper's target. It sweeps over all sleepers once a minute, so nothing that gets lost can lose a waiter. Between sweeps,
 * it wakes those of a key that a release has just offered. For each:
 *
 *  1. its id is not in the record, or its time is over   → cancelled; the target is told that it lost its place
 *  2. it was granted the key lately                      → left to the agent that claimed it
 *  3. its turn hasn't come, by the record that was read  → it sleeps on. Else its acquire, without a wait
 *  4. granted                                            → the target is told; if that fails, the next sweep tells it
 *  5. nobody waits at the target                         → dead: its lease is released. Unclear: its lease runs out
 *
 * Agents may run at the same time. A target that was told says the same as one where nobody waits. So only the agent that claimed the key a
 * moment ago may take that answer for a death, and others keep away until that agent must be gone.
 *
 * It also renews tied leases, by the lease's own length or three minutes, and releases those whose execution is over:
 *
 *  1. the lease is not in the record   → it never began, or has ended: no longer looked after
 *  2. it waits, or was granted lately  → left alone. AWS may not know an execution yet that has just begun
 *  3. its execution runs               → renewed. If the lease is lost, it is no longer looked after
 *  4. its execution is over            → released, and no longer looked after
 *  5. AWS doesn't say                  → a failure, and left to the next sweep: at worst the lease runs out by itself
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
import type { Acquire, AnswerTo, Command, LeaseView, Release, Renew } from "../core/commands.js";
import { LIMITS } from "../core/limits.js";
import { check } from "../core/lock/check.js";
import { isWaiting } from "../core/lock/expiry.js";
import { isInRecord, placeOf } from "../core/lock/queue.js";
import type { LockRecord } from "../core/record.js";
import { type Clock, elapsedMs, instantOf } from "../core/time.js";
import type { Address, LockStore, Sleeper, SleeperStore, TiedLease } from "../store/port.js";
import { type RequestClocks, guarded } from "./clocks.js";
import { type Log, eventLine } from "./log.js";

/** The failure that a target is told of: the lease will never have the key. */
export const LOST_PLACE = "Holdfast.LostPlace";

/** The news for a target: the lease has the key, or never will. */
export type Outcome = Pick<LeaseView, "key" | "leaseId" | "fencingToken" | "leaseMs"> | typeof LOST_PLACE;

/**
 * Tells a target, by one request. `gone`: nobody waits there, or somebody told it before.
 * @throws Error, without the target in it, if it is not known whether the target was told
 */
export type Tell = (target: WakeTarget, outcome: Outcome) => Promise<"told" | "gone">;

/** Asks AWS whether an execution still runs. @throws Error if that is not known */
export type IsRunning = (executionArn: string) => Promise<boolean>;

/** The parts of an agent. */
export interface AgentDeps {
  readonly store: Pick<LockStore, "read" | "apply">;
  readonly sleepers: SleeperStore;
  readonly tell: Tell;
  readonly isRunning: IsRunning;
  readonly clocks: RequestClocks;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each sleeper or tied lease that was left to the next sweep by a failure. */
  readonly onFailure: (error: unknown) => void;
}

/** The result for a sleeper. All but `asleep` and `failed` are the end of it. */
export type Woken = "asleep" | "woken" | "dead" | "unclear" | "lost" | "failed";
/** The result for a tied lease. The agent looks no longer after one that is `untied`: it ended, or was released just now. */
export type Tended = "left" | "renewed" | "untied" | "failed";

/** The time within which the agent that claimed takes `gone` for a death. */
const VERDICT_MS = 10_000;
/** The time for which others leave a granted sleeper to that agent, and one that is not queued yet to its request. */
const OTHERS_MS = 30_000;
/** A sweep looks at no further ones after this time: the next sweep begins a minute after it. */
const SWEEP_MS = 45_000;

/** A sweep ended before it had looked at all. */
class NoTime extends Error {
  override readonly name = "NoTime";

  constructor() {
    super(`there was no time left, ${SWEEP_MS} ms after the sweep began`);
  }
}

/** The place in the list after which the next sweep goes on. Without one, it begins anew. */
export interface SweepPlace {
  after?: string | undefined;
}

/** Looks at every sleeper and tied lease. Returns how many of them were woken, found dead, renewed, and so on. */
export async function sweep(deps: AgentDeps, place: SweepPlace = {}): Promise<Readonly<Partial<Record<Woken | Tended, number>>>> {
  const counts: Partial<Record<Woken | Tended, number>> = {};
  const untilMs = deps.clock.monotonicMs() + SWEEP_MS;
  do {
    const { sleepers, ties, next } = await deps.sleepers.list(place.after);
    const byKey = new Map<string, (Sleeper | TiedLease)[]>();
    for (const kept of [...sleepers, ...ties]) {
      const { namespace, key } = kept.address;
      const name = `${namespace}/${key}`;
      byKey.set(name, [...(byKey.get(name) ?? []), kept]);
    }
    const all = await Promise.all(Array.from(byKey.values(), (ofKey) => sweepKey(ofKey, deps, untilMs)));
    for (const result of all.flat()) counts[result] = (counts[result] ?? 0) + 1;
    place.after = next;
  } while (place.after !== undefined && deps.clock.monotonicMs() < untilMs);
  if (place.after !== undefined) {
    counts.failed = (counts.failed ?? 0) + 1;
    deps.onFailure(new NoTime());
  }
  return counts;
}

/** Wakes the sleepers to whom a key is offered. Returns the result of each. @throws StoreUnavailable before anything was told */
export async function wakeOffered(address: Address, deps: AgentDeps): Promise<readonly (Woken | Tended)[]> {
  const { offers = [] } = (await deps.store.read(address)) ?? {};
  const asleep = offers.filter((offer) => offer.asleep === true);
  const found = await Promise.all(asleep.map(({ leaseId }) => deps.sleepers.read(address, leaseId)));
  return sweepKey(
    found.filter((sleeper) => sleeper !== undefined),
    deps,
  );
}

/** Looks at those of one key, one after the other: one that is dead may pass the key on to the next. Reads the record again after a change. */
async function sweepKey(
  ofKey: readonly (Sleeper | TiedLease)[],
  deps: AgentDeps,
  untilMs = Number.POSITIVE_INFINITY,
): Promise<readonly (Woken | Tended)[]> {
  const results: (Woken | Tended)[] = [];
  let record: LockRecord | undefined;
  let isFresh = false;
  for (const kept of ofKey) {
    try {
      if (deps.clock.monotonicMs() >= untilMs) throw new NoTime();
      if (!isFresh) record = await deps.store.read(kept.address);
      const result = await ("acquire" in kept ? wake(kept, record, deps) : tend(kept, record, deps));
      isFresh = result === "asleep" || result === "left";
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
export async function wake(sleeper: Sleeper, record: LockRecord | undefined, deps: AgentDeps): Promise<Woken> {
  const { tell, clock, clocks } = deps;
  const { address, acquire, target, putAtMs } = sleeper;
  const { leaseId, principal } = acquire;
  const over = async (woken: Woken): Promise<Woken> => (await deps.sleepers.delete(sleeper), woken);
  const lost = async (): Promise<Woken> => (await tell(target, LOST_PLACE), over("lost"));
  const release: Release = { type: "release", key: address.key, leaseId, principal };

  const reading = guarded(clocks)();
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
  const seen = check(record, { key: address.key, leaseId, principal }, reading);
  if (seen.ok && "state" in seen && seen.retryAfterMs > 0) return "asleep";
  const began = instantOf(clock);
  // Without a wait: an id that left the queue meanwhile is not queued anew.
  const answer = await apply<Acquire>(address, acquire, deps);
  if (!answer.ok) return answer.code === "lease-over" ? lost() : "asleep";
  if ("state" in answer) return "asleep";
  const isClaimed = answer.how === "granted";
  if (!isClaimed && !held) return "asleep"; // Another agent claimed the key since the record was read.
  const { key, fencingToken, leaseMs } = answer.lease;
  if ((await tell(target, { key, leaseId, fencingToken, leaseMs })) === "told") return over("woken");
  if (!isClaimed || elapsedMs(began, instantOf(clock)) > VERDICT_MS) return over("unclear");
  await apply(address, release, deps);
  return over("dead");
}

/** Renews a tied lease while its execution runs, and releases it once that is over. Safe to repeat, and at the same time elsewhere. */
export async function tend(tied: TiedLease, record: LockRecord | undefined, deps: AgentDeps): Promise<Tended> {
  const { address, leaseId, principal, executionArn, putAtMs } = tied;
  const untied = async (): Promise<Tended> => (await deps.sleepers.delete(tied), "untied");
  const { earliestMs } = guarded(deps.clocks)();
  if (!record || !isInRecord(record, leaseId)) return putAtMs + OTHERS_MS > earliestMs ? "left" : untied();
  const held = record.holds[leaseId];
  if (!held || held.grantedAtMs + OTHERS_MS > earliestMs) return "left";
  const ref = { key: address.key, leaseId, principal };
  if (await deps.isRunning(executionArn)) {
    // With a length, the store needs one write and no read. A holder may have renewed for less than two sweeps.
    const leaseMs = Math.max(held.leaseMs, LIMITS.agentLeaseMinMs);
    const answer = await apply<Renew>(address, { type: "renew", ...ref, leaseMs }, deps);
    if (answer.ok) return "renewed";
    return answer.code === "lease-lost" ? untied() : "left";
  }
  await apply<Release>(address, { type: "release", ...ref }, deps);
  return untied();
}

/** Applies a command of the holder or the sleeper, and logs it under that one's principal, by the agent. */
async function apply<C extends Command>(address: Address, command: C, { store, clocks, log }: AgentDeps): Promise<AnswerTo<C>> {
  const caller = { namespace: address.namespace, principal: "agent", requestId: "agent" };
  const { answer, events } = await store.apply(address, command, guarded(clocks));
  for (const event of events) log(eventLine(address, event, caller, clocks().latestMs));
  return answer;
}
