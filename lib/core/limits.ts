/**
 * Every limit and default of the protocol, with its unit, in one place. The relations that safety rests on are
 * asserted where rules are made of them (limit-relations.ts): a service with a wrong constant never starts.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Bounds on what a request may carry. */
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
  /** Leases of one key at once: those of a semaphore, readers, levels of a scope. More by segments. */
  leasesMax: 150,
  scopeMinChars: 16,
  scopeMaxChars: 256,
  /** How far a leaseId's own time may run ahead of, or stay behind, the service's clocks. */
  leaseIdAheadMs: 10 * SECOND,
  leaseIdBehindMs: 15 * MINUTE,
  /**
   * A leaseId made further ahead than this is not remembered when it is cancelled: within it, the memory of a
   * key outlives every id that it remembers.
   */
  leaseIdReachMs: 40 * MINUTE,
  /** LeaseIds that ended and are remembered with how they ended; older ones are known by the floor. */
  tombstonesMax: 8,
  /** Of those, cancelled ones that are ahead of the clock: the others keep how honest leases ended. */
  tombstonesAheadMax: 4,
  /** Keys of one set; heartbeats of one request. */
  setKeys: 25,
  renewalsMax: 25,
  listMax: 100,
  /** A page of keys ends before its items take more than this as JSON, whatever their number. */
  pageBytes: 512 * 1024,
  /** A refusal names the holders up to this size as JSON, and says how many it leaves out. */
  holdersBytes: 16 * 1024,
  /** A payload (a run's checkpoint or outcome) up to this size is kept in the record; above it, on an item of its own. */
  inlineBytes: 1024,
  checkpointBytes: 8 * 1024,
  resultBytes: 256 * 1024,
  /** The body of an outcome: the result with every character escaped, and what is said around it. */
  outcomeBodyBytes: (6 * 256 + 16) * 1024,
  fingerprintChars: 128,
  keepResultMinMs: 1 * MINUTE,
  keepResultMaxMs: 365 * DAY,
  attemptsMax: 1_000_000,
  priorityMax: 9,
  /** Waiters of one key, and the bytes that they may take: every write of the item is paid by its size. */
  waitersMax: 100,
  queueBytes: 15 * 1024,
  /** The bytes of a record in all, its holders included. */
  recordBytes: 32 * 1024,
  /** Above this size of their record, leases are renewed less and less often. */
  smallRecordBytes: 4 * 1024,
  /** A waiter is told to come again in so long for each place, and never in longer than the most. */
  pollStepMs: 200,
  pollMaxMs: 3500,
  /** While somebody's offer stands unclaimed for so long, the others say that they are still there. */
  keepAliveAfterMs: 2000,
  /** How long one request may wait in the service for a run's outcome, or for its turn. */
  serverWaitMs: 5 * SECOND,
  /** Decisions of one request that lost the race for the item before it gives up. */
  compareAndSetAttempts: 12,
} as const;

/** What is assumed when nobody says otherwise. */
export const DEFAULTS = {
  leaseMs: 30 * SECOND,
  waitMs: 30 * SECOND,
  keepResultMs: 1 * DAY,
  maxAttempts: 5,
  listMax: 50,
  /** How long somebody who waits and isn't heard of keeps its place, and so much longer for each place behind the first. */
  waiterTtlMs: 15 * SECOND,
  waiterTtlStepMs: 1 * SECOND,
  /** How long the key is kept for whose turn it is. */
  offerWindowMs: 5 * SECOND,
  /** E: at least one of the two server clocks is this close to true time. */
  clockErrorMs: 500,
  /** ρ: how far off the rate of a client's clock may be. */
  clockRateError: 0.001,
  /** Server clocks further apart than this refuse to decide. */
  clockGuardMs: 10 * SECOND,
  /** How long an item outlives its last use before garbage collection may take it. */
  retentionMs: 1 * DAY,
} as const;

/** `keepResultMs: "forever"`, as a length of time: far beyond any clock, and still a safe integer when a time is added. */
export const FOREVER_MS = 10_000_000 * DAY;

/** The rule of a `serverWaitMs`, as a person reads it. */
export const SERVER_WAIT_RULE = `it must be a whole number of ms from 0 to ${LIMITS.serverWaitMs}`;

/** Whether a service may hold requests for so long: no longer than its functions last. */
export function isServerWait(waitMs: number): boolean {
  return Number.isInteger(waitMs) && waitMs >= 0 && waitMs <= LIMITS.serverWaitMs;
}

/** Retention is never set below this: it must exceed any stalled write plus 2E by far. */
export const RETENTION_MIN_MS = 1 * HOUR;

/**
 * How long after `expiresAt` a lease may be taken over: both servers' clock errors, and the drift of
 * the client's clock over the whole lease on both sides. Less breaks mutual exclusion (E alone does).
 */
export function takeoverMarginMs(leaseMs: number, clockErrorMs: number = DEFAULTS.clockErrorMs): number {
  return Math.ceil(2 * clockErrorMs + 2 * DEFAULTS.clockRateError * leaseMs) + 1;
}

/**
 * When a holder should renew: after a third of its lease, so that two renewals may fail before the third is late. From
 * {@link LIMITS.smallRecordBytes} on it grows with the record, up to half of the lease: each renewal is paid by its size.
 */
export function renewAfterMs(leaseMs: number, recordBytes = 0): number {
  const { smallRecordBytes: smallest, recordBytes: largest } = LIMITS;
  const grown = Math.min(Math.max(0, recordBytes - smallest) / (largest - smallest), 1);
  return Math.floor((leaseMs * (2 + grown)) / 6);
}

/** How much earlier than it must a client stops believing: for signalling only, safety is the margin's. */
export function clientMarginMs(leaseMs: number): number {
  return Math.max(leaseMs / 100, 50);
}
