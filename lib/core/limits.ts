/**
 * Every limit and default of the protocol, with its unit, in one place. limit-relations.ts asserts the relations that
 * safety rests on, so a service with a wrong constant never starts.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Bounds on the content of a request. */
export const LIMITS = {
  keyChars: 200,
  ownerChars: 256,
  metaBytes: 1024,
  reasonChars: 256,
  bodyBytes: 16 * 1024,
  leaseMinMs: 1 * SECOND,
  leaseMaxMs: 1 * DAY,
  drainMaxMs: 1 * DAY,
  permitsMax: 1000,
  /** Concurrent leases of one key: semaphore permits, readers, reentrant holds. Use several keys (segments) for more. */
  leasesMax: 150,
  scopeMinChars: 16,
  scopeMaxChars: 256,
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
  /** Keys of one set, and heartbeats of one request. */
  setKeys: 25,
  renewalsMax: 25,
  listMax: 100,
  /** A page of keys ends before its items exceed this size as JSON, whatever their number. */
  pageBytes: 512 * 1024,
  /** A refusal lists holders up to this size as JSON, and says how many it omits. */
  holdersBytes: 16 * 1024,
  /** A payload (a run's checkpoint or outcome) up to this size is stored in the record; a larger one in an item of its own. */
  inlineBytes: 1024,
  checkpointBytes: 8 * 1024,
  resultBytes: 256 * 1024,
  /** The body of an outcome request: a result with every character escaped, and the JSON around it. */
  outcomeBodyBytes: (6 * 256 + 16) * 1024,
  fingerprintChars: 128,
  keepResultMinMs: 1 * MINUTE,
  keepResultMaxMs: 365 * DAY,
  attemptsMax: 1_000_000,
  priorityMax: 9,
  /** Waiters of one key, and their total size in bytes. DynamoDB charges every write by the size of the item. */
  waitersMax: 100,
  queueBytes: 15 * 1024,
  /** The size of a whole record, holders included. */
  recordBytes: 32 * 1024,
  /** Leases of records above this size are renewed less often. */
  smallRecordBytes: 4 * 1024,
  /** A waiter polls again after this time for each place in the queue, up to the maximum. */
  pollStepMs: 200,
  pollMaxMs: 3500,
  /** While an offer has been unclaimed for this long, the other waiters send keep-alives. */
  keepAliveAfterMs: 2000,
  /** The longest that a request may wait in the service for a run's outcome, or for the key. */
  serverWaitMs: 5 * SECOND,
  /** Lost races for the item after which a request gives up. */
  compareAndSetAttempts: 12,
} as const;

/** Values that apply where neither the request nor the deployment sets one. */
export const DEFAULTS = {
  leaseMs: 30 * SECOND,
  waitMs: 30 * SECOND,
  keepResultMs: 1 * DAY,
  maxAttempts: 5,
  listMax: 50,
  /** A waiter keeps its place for this long after it was last seen, and for one step longer per place behind the first. */
  waiterTtlMs: 15 * SECOND,
  waiterTtlStepMs: 1 * SECOND,
  /** The key is reserved this long for the waiter that it is offered to. */
  offerWindowMs: 5 * SECOND,
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

/**
 * The time after which a holder should renew: a third of its lease, so that two renewals may fail before the third is
 * late. Above {@link LIMITS.smallRecordBytes} it grows with the record, up to half of the lease, because DynamoDB
 * charges each renewal by the record's size.
 */
export function renewAfterMs(leaseMs: number, recordBytes = 0): number {
  const { smallRecordBytes: smallest, recordBytes: largest } = LIMITS;
  const grown = Math.min(Math.max(0, recordBytes - smallest) / (largest - smallest), 1);
  return Math.floor((leaseMs * (2 + grown)) / 6);
}

/** The distance between a client's lease deadline and the end of the lease. For signalling only: safety rests on the takeover margin. */
export function clientMarginMs(leaseMs: number): number {
  return Math.max(leaseMs / 100, 50);
}
