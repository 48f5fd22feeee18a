/**
 * Every limit and default of the protocol, with its unit, in one place; those that a client needs come from files that
 * its bundle can have in parts. limit-relations.ts asserts the relations that safety rests on, so no function is made with
 * a wrong constant.
 */
import * as REQUEST_DEFAULTS from "./request-defaults.js";
import * as REQUEST_LIMITS from "./request-limits.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** All limits, those of request-limits.ts included. */
export const LIMITS = {
  ...REQUEST_LIMITS,
  bodyBytes: 16 * 1024,
  /** Concurrent leases of one key: semaphore permits, readers, reentrant holds. Use several keys (segments) for more. */
  leasesMax: 150,
  /**
   * The most write units a second that the heartbeats of one key may take, by the most bytes that its record can have. An item takes 1,000;
   * the rest is for those who come and go. Above it heartbeats are throttled, and all holders lose their leases alike.
   */
  renewalUnits: 850,
  /** The furthest that a leaseId's own time may be ahead of, or behind, the service's clocks. */
  leaseIdAheadMs: 10 * SECOND,
  leaseIdBehindMs: 15 * MINUTE,
  /**
   * The service doesn't store the cancellation of a leaseId that was made further ahead than this. Within this bound, a
   * key's record outlives every id that it stores.
   */
  leaseIdReachMs: 40 * MINUTE,
  /** Tombstones of a key: ended leaseIds with how they ended. Older ones are known only by the low watermark. */
  tombstonesMax: 8,
  /** Cancelled ids among them that are ahead of the clock. The rest of the space is for leases that really ended. */
  tombstonesAheadMax: 4,
  /** A page of keys ends before its items exceed this size as JSON, whatever their number. */
  pageBytes: 512 * 1024,
  /** A page of one owner's keys, or of runs in one state, is chosen from up to this many. */
  filteredMax: 1_600,
  /** A refusal lists holders up to this size as JSON, and says how many it omits. */
  holdersBytes: 16 * 1024,
  /** A payload (a run's checkpoint or outcome) up to this size is stored in the record; a larger one in an item of its own. */
  inlineBytes: 1024,
  /** The body of an outcome request: a result with every character escaped, and the JSON around it. */
  outcomeBodyBytes: (6 * 256 + 16) * 1024,
  fingerprintChars: 128,
  /**
   * Waiters of one key that poll, those that sleep, those that wait for a condition, and their total size in bytes. DynamoDB charges every write by the
   * size of the item, and reads of it are cheaper: so callers beyond these ask again (docs/decisions/061). Each of the three has places of its own.
   */
  waitersMax: 32,
  /** While this many wait or more, the places left are for those who have waited the longest (docs/decisions/072). */
  placesForAnyone: 24,
  membersMax: 100,
  queueBytes: 15 * 1024,
  /** The part of these bytes that only waiters that poll may use. */
  pollersBytes: 3 * 1024,
  /** The longest token of a task, and the longest id of a callback, that a sleeper is woken by. */
  taskTokenChars: 2048,
  callbackIdChars: 1024,
  /** Targets of one sleeper. Each request by its leaseId adds its own: a retried task has a new token. */
  targetsMax: 20,
  /** The longest ARN of an execution that a lease is tied to. */
  executionArnChars: 1024,
  /** A member of the wait set polls again after this time for each place, and every waiter after the maximum at the latest. */
  pollStepMs: 200,
  pollMaxMs: 3500,
  /** The time from the release of a lease to the request that claims the next one, since a release is seen once it is written. No poll pauses for less. */
  handOverMs: 8,
  /** The length of a lease on a key of which none was released yet. */
  unknownHeldMs: 45,
  /** The shortest time after which a caller for whom the queue is full asks again; and the same where those in the queue came at one moment. */
  fullWaitMs: 150,
  burstWaitMs: 1 * SECOND,
  /** While an offer has been unclaimed for this long, the other waiters send keep-alives. */
  keepAliveAfterMs: 2000,
  /** A grant beside others takes the next token if the last is at most this old. Restoring a table takes longer. */
  nextTokenMs: 1 * MINUTE,
  /** Lost races for the item after which a request gives up. */
  compareAndSetAttempts: 12,
} as const;

/** Values that apply where neither the request nor the deployment sets one. */
export const DEFAULTS = {
  ...REQUEST_DEFAULTS,
  keepResultMs: 1 * DAY,
  /**
   * Enough for causes that pass by themselves, and an end for work that always fails, whose every attempt may charge or mail again. A run
   * that has used them up is refused until it is reset or collected, so an outcome that is no fault is reported as final instead.
   */
  maxAttempts: 5,
  listMax: 50,
  /** A waiter keeps its place for this long after it was last seen, and for one step longer per place behind the first. */
  waiterTtlMs: 15 * SECOND,
  waiterTtlStepMs: 1 * SECOND,
  /** The key is reserved this long for the waiter that it is offered to. */
  offerWindowMs: 5 * SECOND,
  /** The same for a waiter that sleeps: two rounds of the agent that claims for it, and a minute more. */
  wakeWindowMs: 3 * MINUTE,
  /** E: at least one of the two server clocks is this close to true time. */
  clockErrorMs: 500,
  /** ρ: the largest error in the rate of a client's clock. */
  clockRateError: 0.001,
  /** The service refuses to decide while the server clocks are further apart than this. */
  clockGuardMs: 10 * SECOND,
  /** The shortest time between an item's last use and its garbage collection. */
  retentionMs: 1 * DAY,
} as const;

/** `keepResultMs: "forever"` in ms: far beyond any clock, and still a safe integer when a time is added. */
export const FOREVER_MS = 10_000_000 * DAY;

/** The last position of a waiter: behind as many offers as a key may have, and the places of each kind. */
export const POSITION_MAX = LIMITS.leasesMax + LIMITS.waitersMax + 2 * LIMITS.membersMax;

/** The rule for a `serverWaitMs`, in words. */
export const SERVER_WAIT_RULE = `it must be a whole number of ms from 0 to ${LIMITS.serverWaitMs}`;

/** True if a service may hold requests this long: no longer than its functions run. */
export function isServerWait(waitMs: number): boolean {
  return Number.isInteger(waitMs) && waitMs >= 0 && waitMs <= LIMITS.serverWaitMs;
}

/** The minimum retention. It must far exceed any stalled write plus 2E. */
export const RETENTION_MIN_MS = 1 * HOUR;

/**
 * The time after `expiresAt` from which a lease may be taken over: both servers' clock errors, plus the drift of the
 * client's clock over the whole lease on both sides. Less breaks mutual exclusion (E alone does).
 */
export function takeoverMarginMs(leaseMs: number, clockErrorMs: number = DEFAULTS.clockErrorMs): number {
  return Math.ceil(2 * clockErrorMs + 2 * DEFAULTS.clockRateError * leaseMs) + 1;
}
