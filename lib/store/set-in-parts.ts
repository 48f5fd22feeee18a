/**
 * An acquire of a set where no transaction can write it, such as on a global table with strong consistency. Each key is a part, and the parts
 * are written side by side:
 *
 *  1. take: each key is acquired as *pending*, for {@link PENDING_MS} at most;
 *  2. confirm: all are held, so each is renewed to its length. The set is granted when all of that is written;
 *  3. or roll back: a key refused, so those that were taken are released, on condition that they are still pending.
 *
 * The condition makes it safe to repeat the request. A repeat may have confirmed the parts meanwhile, and has told its caller so: then the
 * roll-back of the first request ends nothing. If the roll-back came first, a part is missing and the repeat can't confirm it. A part that can't
 * be confirmed is rolled back first, and the others end only if that ended it: it may be over by the clocks of one request alone. What a process
 * leaves pending when it dies ends by itself.
 *
 * A set takes two writes for each key, which are the units of a transaction. Unlike there, others meet the parts of a set that is then refused
 * (S13). The keys are not taken one after the other, each kept while the next is waited for: that would keep the first from others for as long.
 */
import { isA } from "../core/brand.js";
import type { Acquire, Command, Held, Release } from "../core/commands.js";
import { refuse } from "../core/errors.js";
import {
  type Applied,
  type LockStore,
  type Part,
  type ReadClocks,
  KeyContended,
  StoreNotConfigured,
  StoreUnavailable,
  UnreadableRecord,
} from "./port.js";

/** The longest lease of a part until its set is confirmed, in ms: enough for two writes and their repeats. */
const PENDING_MS = 5000;

type SetPart = Part<Acquire>;
/** A part that is held. */
type Taken = Applied<Acquire> & { readonly answer: Held };

/**
 * Acquires all parts or none, by writes of single keys. The events of a set that is refused are those of the parts that were held for a moment.
 * @throws StoreUnavailable, and it is `definite` only if no part is held
 */
export async function acquireInParts(
  parts: readonly SetPart[],
  clocks: ReadClocks,
  store: Pick<LockStore, "apply">,
): Promise<readonly Applied<Acquire>[]> {
  const send = <C extends Command>({ address }: SetPart, command: C): Promise<Applied<C>> => store.apply(address, command, clocks);
  const end = (part: SetPart, which: Pick<Release, "pendingMs"> = {}): Promise<Applied<Release>> => {
    const { key, leaseId, principal } = part.command;
    return send(part, { type: "release", key, leaseId, principal, ...which });
  };
  /** Ends a part, unless it is confirmed. */
  const rollBack = (part: SetPart): Promise<Applied<Release>> => end(part, { pendingMs: pendingMsOf(part) });

  const [only] = parts;
  if (only && parts.length === 1) return [await send(only, only.command)];

  const takes = await settled(parts, (part) => send(part, { ...part.command, leaseMs: pendingMsOf(part) }));
  const held = takes.done.filter(isTaken);
  if (held.length < parts.length) {
    // A take that was not answered may have been written, so it is released too. One that was refused was not.
    const ends = await settled(parts, async (part, index) => (takes.done[index]?.answer.ok === false ? undefined : rollBack(part)));
    if (takes.failure !== undefined) throw ends.failure === undefined ? takes.failure : indefinite(takes.failure);
    // A part whose release was not answered ends by itself. The set is refused all the same.
    return takes.done.flatMap((take, index) => (take ? [withEvents(take, ends.done[index])] : []));
  }

  const renewals = await settled(parts, async (part, index) => {
    const { key, leaseId, principal, leaseMs } = part.command;
    // A repeat of the request may have confirmed it already.
    const lease = held[index]?.answer.lease;
    if (lease?.leaseMs === leaseMs) return lease;
    const { answer } = await send(part, { type: "renew", key, leaseId, principal, leaseMs });
    return answer.ok && answer.lease.leaseMs === leaseMs ? answer.lease : undefined;
  });
  if (renewals.failure !== undefined) throw indefinite(renewals.failure);
  const granted = held.flatMap(({ answer, events }, index) => {
    const lease = renewals.done[index];
    return lease ? [{ answer: { ...answer, lease }, events }] : [];
  });
  if (granted.length === parts.length) return granted;

  // A part that could not be confirmed is over by this request's clocks. By another's it may not be, and a repeat has confirmed it and told so.
  const over = await settled(parts, async (part, index) => (renewals.done[index] ? undefined : rollBack(part)));
  const isOver = parts.every((_, index) => renewals.done[index] !== undefined || isEnded(over.done[index]));
  if (over.failure !== undefined || !isOver) throw indefinite(over.failure ?? new KeyContended("another request may hold this set"));
  // It is over for all, so no request of this id can hold the whole set again.
  const ends = await settled(parts, async (part, index) => over.done[index] ?? end(part));
  return held.map((take, index) => withEvents({ ...take, answer: refuse("lease-over") }, ends.done[index]));
}

/** True if a part that was pending is over now. One that is confirmed, or long forgotten, is unknown. */
function isEnded(ended: Applied<Release> | undefined): boolean {
  return ended?.answer.ok === true && ended.answer.state !== "unknown";
}

/** The length of a pending lease: shorter than the whole one, so that the confirmation prolongs it. */
function pendingMsOf({ command: { leaseMs } }: SetPart): number {
  return Math.min(PENDING_MS, leaseMs - 1);
}

function isTaken(take: Applied<Acquire> | undefined): take is Taken {
  return take?.answer.ok === true && "lease" in take.answer;
}

/** Waits for the requests of all parts: what arrives after the others are released would be held by nobody. */
async function settled<T>(
  parts: readonly SetPart[],
  ask: (part: SetPart, index: number) => Promise<T>,
): Promise<{ readonly done: readonly (T | undefined)[]; readonly failure: unknown }> {
  const all = await Promise.allSettled(parts.map(ask));
  const done = all.map((one) => (one.status === "fulfilled" ? one.value : undefined));
  return { done, failure: all.find((one) => one.status === "rejected")?.reason };
}

/** Some parts may be held, so it is not certain that nothing was written. */
function indefinite(error: unknown): unknown {
  const options = { definite: false, cause: error };
  if (isA(error, StoreNotConfigured)) return new StoreNotConfigured(error.message, false, options);
  if (isA(error, UnreadableRecord)) return new UnreadableRecord(error.code, error.message, options);
  return isA(error, StoreUnavailable) ? new StoreUnavailable(error.message, false, error.throttled, options) : error;
}

function withEvents(take: Applied<Acquire>, ended: Applied<Release> | undefined): Applied<Acquire> {
  return { ...take, events: [...take.events, ...(ended?.events ?? [])] };
}
