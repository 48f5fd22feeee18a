/**
 * Acquire: a free key is granted; an expired lease is taken over once its margin has passed; a compatible request joins
 * the present holders; a waiting request is queued. The first rule that matches decides. A new rule also needs a
 * look at the rows of lib/store/dynamo/forms.ts and a predicate of their writes: a grant is written before the key is read. The rules, in order (test/core/precedence.test.ts):
 *
 *  1. the id holds already              → the same lease, replayed (S8), or 403, 422 lease-reused, 410 lease-over; in the queue: 403, 422
 *  2. the id ended                      → 410 lease-over (S7)
 *  3. its time is out of bounds         → 422 lease-id-time, unless it is in the queue
 *  4. it waits for a condition          → waits on, until a notify, also if a lease of its scope holds
 *  5. it sleeps, and is in the queue     → sleeps on: only a poll claims. 422 lease-reused if it was queued awake
 *  6. a live lease of its scope holds   → nested in it, with its token (S10); 409 for another limit, 423 for exclusive inside shared
 *  7. it is offered the key             → claimed
 *  8. it is first, and compatible       → granted, with a token above every earlier one (S2, S3)
 *  9. the key is in use by another limit → 409 limit-mismatch
 * 10. it may wait                       → queued, in the order of arrival within its priority (L2); 429 queue-full
 * 11. otherwise                         → 423 locked; 429 key-full if only the number of leases keeps it out
 */
import { change, keptTtlAtSec, touchedTtlAtSec, ttlAtSec } from "../change.js";
import type { Acquire, Decision, LeaseEvent } from "../commands.js";
import { EMPTY_RECORD, holdOf } from "./tombstones.js";
import { newHold, refuseReplay, refuseLocked, refuseNewLease } from "./grant.js";
import { type Refusal, refuse } from "../errors.js";
import { type HoldEntry, isAlone, isCompatible, occupantsOf, reentrantHoldsOf } from "./compatibility.js";
import { isCrowd, tokenBeside } from "./crowd.js";
import { isSameLeaseId } from "../lease-id.js";
import { LIMITS } from "../limits.js";
import type { AdvancedQueue } from "./queue.js";
import { touched, isHalfOver, needsKeepAlive, placeAfterMs, waitingView, memberView } from "./pace.js";
import { isOverfull, offerOf, placeOf, placesFor, waiterFor, withWaiter } from "./places.js";
import { advanceIfQueued, advanceQueue } from "./queue.js";
import { liveMembers, memberOf, waitSetOf, withWaitSet } from "./wait-set.js";
import type { Hold, LockRecord, LockPolicy, Member, Offer, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";
import { leaseView } from "./views.js";

/** Decides an acquire: granted, replayed, queued or refused. */
export function acquire(record: LockRecord | undefined, command: Acquire, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const { leaseId } = command;
  const before = record ?? EMPTY_RECORD;

  const mine = holdOf(before, leaseId);
  if (mine) return replay(before, mine, command, reading);
  const offer = offerOf(before, leaseId);
  const waiter = before.waiters[placeOf(before, leaseId)];
  const member = memberOf(before, leaseId);
  const asking = offer ?? waiter ?? member;
  const refusal = asking ? refuseAsking(asking, command) : refuseNewLease(before, leaseId, reading);
  if (refusal) return { answer: refusal, events: [] };

  if (member) return pollAsMember(before, member, reading, policy);
  const sleeps = command.sleepMs !== undefined;
  if (asking && sleeps) return { answer: { ...waitingView(before, leaseId, reading), asleep: true }, events: [] };
  const [outer] = reentrantHoldsOf(before, command.scope, reading);
  if (outer && !sleeps) return nested(before, outer, command, reading, policy);
  if (offer) return claim(before, offer, command, reading, policy);
  return waiter ? poll(before, waiter, command, reading, policy) : enqueue(before, command, reading, policy);
}

/**
 * Decides the first request of an id as if it were queued: granted if it comes to the front at once, else queued or refused. A request to
 * sleep is offered the key there, like the others in the queue.
 */
function enqueue(before: LockRecord, command: Acquire, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const { leaseId, wait } = command;
  const arrived = waiterFor(command, reading);
  const waiters = withWaiter(before.waiters, arrived);
  const now = advanceQueue({ ...before, waiters }, reading, { leaseId: arrived.asleep ? undefined : leaseId, isNew: true });
  const isInUse = isUsed(now.record, leaseId) || liveMembers(now.record, reading).length > 0;
  const isRefused = before.limit !== command.limit && isInUse;
  if (now.isCallersTurn && !isRefused) {
    const joins = joinsCrowd(before, now, command) && waiters.at(-1) === arrived;
    return { ...granted(now, command, reading, policy), ...(joins && { commutes: true }) };
  }
  if (isRefused) return refusedAfter(before, () => refuseLimit(before, command), reading, policy);
  if (!wait) return refusedAfter(before, (others) => refuseAtOnce(others, command, reading), reading, policy);
  const others = now.record.waiters.filter((waiter) => waiter !== arrived);
  const members = arrived.asleep ? liveMembers(now.record, reading) : [];
  if (isOverfull([...now.record.waiters, ...members], arrived, placesFor(others, command)))
    return refusedAfter(before, (left) => refuseFull(left, command), reading, policy);
  const isBehind = !arrived.asleep && now.events.length === 0 && now.record.waiters.at(-1) === arrived;
  const commutes = isBehind && isCrowd(before) && command.scope === undefined && command.priority === 0;
  return { ...queued(now, command, reading, policy), ...(isBehind && { behind: arrived }), ...(commutes && { commutes }) };
}

/** True if a lease that is granted beside a crowd changes no other's part. */
function joinsCrowd(before: LockRecord, { events }: AdvancedQueue, { limit, scope }: Acquire): boolean {
  return isCrowd(before) && events.length === 0 && limit === before.limit && scope === undefined;
}

/** Refuses a caller that doesn't wait. Beside so many leases that the key takes no further one, it is told so: nobody excludes it. */
function refuseAtOnce(record: LockRecord, command: Acquire, reading: ClockReading): Refusal {
  const occupants = occupantsOf(record, reading);
  const isFull = occupants.length >= LIMITS.leasesMax && isCompatible(record, occupants, command, reading);
  return isFull ? refuseNumber(command) : refuseLocked(record, reading);
}

/** Refuses a lease beside as many as a key takes. */
function refuseNumber({ key }: Acquire): Refusal {
  return refuse("key-full", { retryAfterMs: LIMITS.pollMaxMs, detail: `${key} has ${LIMITS.leasesMax} leases, and takes no more` });
}

/** Refuses the caller, and writes the advanced queue if it changed. So callers that don't wait remove dead waiters too (L1). */
function refusedAfter(
  before: LockRecord,
  refusalOf: (others: LockRecord) => Refusal,
  reading: ClockReading,
  policy: LockPolicy,
): Decision<Acquire> {
  const { record, events } = advanceQueue(before, reading, { isNew: true });
  const answer = refusalOf(record);
  // Every server sees by itself that a lease ran out. That needs no write before the next grant.
  const hasMoved = record.offers.length !== before.offers.length || record.waiters.length !== before.waiters.length;
  if (!hasMoved) return { answer, events: [] };
  return { answer, next: change(record, reading, { ttlAtSec: touchedTtlAtSec(record, reading, policy) }), events };
}

/** Appends a new waiter without advancing the queue: the result of a form that did only that. */
export function queueBehind(before: LockRecord, command: Acquire, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const record = { ...before, waiters: [...before.waiters, waiterFor(command, reading)] };
  return queued({ record, events: [] }, command, reading, policy);
}

function queued(
  { record, events }: Pick<AdvancedQueue, "record" | "events">,
  { leaseId, owner, principal, sleepMs }: Acquire,
  reading: ClockReading,
  policy: LockPolicy,
): Decision<Acquire> {
  const until = { ...reading, latestMs: reading.latestMs + (sleepMs ?? 0) };
  const next = change(record, reading, { ttlAtSec: touchedTtlAtSec(record, until, policy) });
  const answer = { ...waitingView(next, leaseId, reading), ...(sleepMs !== undefined && { asleep: true as const }) };
  return { answer, next, events: [...events, { event: "queued", leaseId, owner, principal, position: answer.position }] };
}

/** Decides a later request of a waiter: granted if it is at the front, else a keep-alive if one is due. */
function poll(before: LockRecord, waiter: Waiter, command: Acquire, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const { leaseId } = command;
  const index = before.waiters.indexOf(waiter);
  const touch = touched(waiter, index, reading);
  const now = advanceQueue({ ...before, waiters: before.waiters.with(index, touch) }, reading, { leaseId });
  if (now.isCallersTurn) {
    const joins = joinsCrowd(before, now, command) && !waiter.asleep && waiter.condition === undefined;
    return { ...granted(now, command, reading, policy), ...(joins && { commutes: true }) };
  }
  if (now.moved) {
    const next = change(now.record, reading, { ttlAtSec: touchedTtlAtSec(before, reading, policy) });
    return { answer: waitingView(next, leaseId, reading), next, events: now.events };
  }
  const reports = needsKeepAlive(before, waiter, reading);
  return {
    answer: waitingView(reports ? now.record : before, leaseId, reading),
    ...(reports && { touch: { waiter: touch, index } }),
    events: [],
  };
}

/** Decides a later request of a member of the wait set: a keep-alive if one is due, or the notify of a waiter that left without the key. */
function pollAsMember(before: LockRecord, member: Member, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const { leaseId } = member;
  const members = waitSetOf(before);
  const index = members.indexOf(member);
  const touch = touched(member, index, reading);
  const seen = { ...before, waitSet: members.with(index, touch) };
  const now = advanceQueue(seen, reading);
  if (!memberOf(now.record, leaseId)) {
    const next = change(now.record, reading, { ttlAtSec: touchedTtlAtSec(before, reading, policy) });
    return { answer: waitingView(next, leaseId, reading), next, events: now.events };
  }
  if (!isHalfOver(member, reading)) return { answer: memberView(before, member), events: [] };
  const ttlAtSec = keptTtlAtSec(before, reading, policy);
  return { answer: memberView(seen, touch), touch: { waiter: touch, index, inWaitSet: true, ttlAtSec }, events: [] };
}

/** True if any other lease holds, is offered or waits for the key. */
function isUsed({ holds, offers, waiters }: LockRecord, leaseId: string): boolean {
  return Object.keys(holds).length > 0 || offers.length > 0 || waiters.some((waiter) => !isSameLeaseId(waiter.leaseId, leaseId));
}

/** Refuses a request whose id is queued by another principal or with other parameters. */
function refuseAsking(waiter: Waiter | Offer, { principal, requestHash, sleepMs }: Acquire): Refusal | undefined {
  if (waiter.principal !== principal) return refuse("forbidden");
  if (sleepMs !== undefined && !waiter.asleep) return refuse("lease-reused", { detail: "This leaseId waits for the key by polling" });
  if (waiter.requestHash === requestHash) return undefined;
  return refuse("lease-reused", { detail: "This leaseId waits for the key with other parameters" });
}

function refuseLimit({ limit }: LockRecord, command: Acquire): Refusal {
  return refuse("limit-mismatch", { detail: `The key is in use with a limit of ${limit}, not ${command.limit}` });
}

/** Refuses a caller for whom the queue has no place. It is told when those before it are likely to have one. */
function refuseFull(record: LockRecord, { key, leaseId }: Acquire): Refusal {
  return refuse("queue-full", {
    retryAfterMs: placeAfterMs(record, leaseId),
    detail: `${record.waiters.length} wait for ${key} already`,
  });
}

/** Grants the key to the waiter that it was offered to. The lease begins now, with a new token. */
function claim(before: LockRecord, offer: Offer, command: Acquire, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const record = { ...before, offers: before.offers.filter((other) => other !== offer) };
  const isOnly = Object.keys(before.holds).length + before.offers.length === 1;
  const isSame = command.limit === before.limit && !offer.asleep;
  const commutes = isSame && (isAlone(command) ? isOnly : command.scope === undefined && isCrowd(before));
  return { ...granted({ record, events: [] }, command, reading, policy, before.ttlAtSec), ...(commutes && { commutes }) };
}

/**
 * Grants a new lease of a free key, or beside the present holders, whether or not some have expired, and takes it from its place: the result
 * of a form that did only that.
 */
export function grantBeside(before: LockRecord, command: Acquire, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const waiters = before.waiters.filter(({ leaseId }) => !isSameLeaseId(leaseId, command.leaseId));
  return granted({ record: { ...before, waiters }, events: [] }, command, reading, policy);
}

/** Grants a new lease, beside those that are compatible with it. The record is collected no earlier than `leastTtlAtSec`. */
function granted(
  now: Pick<AdvancedQueue, "record" | "events">,
  command: Acquire,
  reading: ClockReading,
  policy: LockPolicy,
  leastTtlAtSec = 0,
): Decision<Acquire> {
  const { leaseId, limit } = command;
  // With another limit the key is granted only if no member is alive. A dead one must not come back: nobody could notify it then.
  const { upgrading, ...rest } = limit === now.record.limit ? now.record : withWaitSet(now.record, []);
  const others = Object.keys(rest.holds).length > 0;
  const alone = newHold(rest, command, reading, policy);
  const hold = others ? { ...alone, fencingToken: tokenBeside(rest, reading) } : alone;
  const least = isUsed(rest, leaseId) ? rest.ttlAtSec : leastTtlAtSec;
  const next = change({ ...rest, ...(others && upgrading && { upgrading }) }, reading, {
    holds: { ...rest.holds, [leaseId]: hold },
    fencingToken: hold.fencingToken,
    fenceFloor: others ? rest.fenceFloor : hold.fencingToken,
    limit,
    ttlAtSec: Math.max(least, ttlAtSec(hold, policy)),
  });
  return { answer: grantAnswer(next, hold, command, reading), next, events: [...now.events, grantEvent(leaseId, hold)] };
}

/** Adds a reentrant hold to the scope that holds. It passes the whole queue, and has the scope's token and a lease length of its own. */
function nested(before: LockRecord, [, outer]: HoldEntry, command: Acquire, reading: ClockReading, policy: LockPolicy): Decision<Acquire> {
  const { leaseId } = command;
  if (command.limit !== before.limit) return { answer: refuseLimit(before, command), events: [] };
  if (outer.mode === "shared" && command.mode === "exclusive") {
    const detail = "Its scope holds the key shared: a reader becomes the writer by a change of mode";
    return { answer: refuseLocked(before, reading, detail), events: [] };
  }
  // A new reentrant hold would outlast the one that an operator is ending.
  if (outer.broken) return { answer: refuseLocked(before, reading, "An operator is ending the hold of its scope"), events: [] };
  if (Object.keys(before.holds).length >= LIMITS.leasesMax) return { answer: refuseNumber(command), events: [] };
  if (command.permits > outer.permits) return { answer: refuseLocked(before, reading, "Its scope has fewer permits"), events: [] };
  const { mode, permits, fencingToken } = outer;
  const hold: Hold = { ...newHold(before, command, reading, policy), mode, permits, fencingToken };
  const now = withoutItsPlace(before, leaseId, reading);
  const next = change(now.record, reading, {
    holds: { ...now.record.holds, [leaseId]: hold },
    ttlAtSec: Math.max(before.ttlAtSec, ttlAtSec(hold, policy)),
  });
  return { answer: grantAnswer(next, hold, command, reading), next, events: [...now.events, grantEvent(leaseId, hold)] };
}

/** Removes the id from the queue and the offers, and advances the queue if it was there. */
function withoutItsPlace(before: LockRecord, leaseId: string, reading: ClockReading): Pick<AdvancedQueue, "record" | "events"> {
  const isOther = (asking: Waiter | Offer): boolean => !isSameLeaseId(asking.leaseId, leaseId);
  const queue = { ...before, offers: before.offers.filter(isOther), waiters: before.waiters.filter(isOther) };
  const isQueued = queue.offers.length + queue.waiters.length < before.offers.length + before.waiters.length;
  return isQueued ? advanceIfQueued(queue, reading) : { record: queue, events: [] };
}

function grantAnswer(next: LockRecord, hold: Hold, { key, leaseId }: Acquire, reading: ClockReading) {
  return { ok: true, how: "granted", lease: leaseView(key, leaseId, hold, next, reading) } as const;
}

function grantEvent(leaseId: string, { owner, principal, fencingToken }: Hold): LeaseEvent {
  return { event: "granted", leaseId, owner, principal, fencingToken };
}

/** Decides a repeated acquire: the same lease, token and expiry, or a refusal. */
function replay(record: LockRecord, hold: Hold, command: Acquire, reading: ClockReading): Decision<Acquire> {
  const { key, leaseId, principal } = command;
  const refusal = refuseReplay(record, hold, command, reading);
  if (refusal) return { answer: refusal, events: [] };
  const replayed: LeaseEvent = { event: "replayed", leaseId, owner: hold.owner, principal, fencingToken: hold.fencingToken };
  // After a transfer, the lease belongs to the first principal that asks for it.
  const next =
    hold.principal === "" ? change(record, reading, { holds: { ...record.holds, [leaseId]: { ...hold, principal } } }) : undefined;
  const lease = leaseView(key, leaseId, hold, next ?? record, reading);
  return { answer: { ok: true, how: "replayed", lease }, ...(next && { next }), events: [replayed] };
}
