/**
 * The limits that a client checks before it sends a request. Each is a constant of its own, so that a client's bundle has only those that
 * it uses. limits.ts has these and all others.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** The longest key. */
export const keyChars = 200;
/** The longest owner. */
export const ownerChars = 256;
/** The longest name of a condition. */
export const conditionChars = 64;
/** The longest time for which a waiter sleeps. */
export const sleepMaxMs = 365 * DAY;
/** The largest `meta`, as JSON. */
export const metaBytes = 1024;
/** The longest reason for breaking a hold or resetting a run. */
export const reasonChars = 256;
/** The shortest lease. */
export const leaseMinMs = 1 * SECOND;
/** The longest lease. */
export const leaseMaxMs = 1 * DAY;
/**
 * The shortest lease that an agent looks after, because its holder is woken or it is tied to an execution: it outlasts two sweeps, and a minute
 * more.
 */
export const agentLeaseMinMs = 3 * MINUTE;
/** The longest time that a broken hold may be left to finish. */
export const drainMaxMs = 1 * DAY;
/** The most permits of a semaphore. */
export const permitsMax = 1000;
/** The shortest scope: a shorter one could be guessed. */
export const scopeMinChars = 16;
/** The longest scope. */
export const scopeMaxChars = 256;
/** The most keys of one set. */
export const setKeys = 25;
/** The most heartbeats of one request. */
export const renewalsMax = 25;
/** The longest page of a list, in items. */
export const listMax = 100;
/** The largest checkpoint of a run, as JSON. */
export const checkpointBytes = 8 * 1024;
/** The largest result of a run, as JSON. */
export const resultBytes = 256 * 1024;
/** The shortest time for which an outcome is stored. */
export const keepResultMinMs = 1 * MINUTE;
/** The longest time for which an outcome is stored, other than for ever. */
export const keepResultMaxMs = 365 * DAY;
/** The shortest interval of a schedule. */
export const tickMinMs = 1 * SECOND;
/** The most starts of a run. */
export const attemptsMax = 1_000_000;
/** The most rates of one limit. */
export const ratesMax = 4;
/** The largest count, burst and cost of a limit. */
export const rateCountMax = 1_000_000;
/** The shortest time of a rate. */
export const ratePerMinMs = 1 * SECOND;
/** The longest time of a rate. */
export const ratePerMaxMs = 31 * DAY;
/** The longest time until the start of a take. */
export const takeWaitMaxMs = 1 * DAY;
/** The highest priority in a key's queue. */
export const priorityMax = 9;
/** The size of a whole record, holders included. */
export const recordBytes = 32 * 1024;
/** Leases of records above this size are renewed less often. */
export const smallRecordBytes = 4 * 1024;
/** The longest that a request may wait in the service for a run's outcome, or for a change. */
export const serverWaitMs = 5 * SECOND;
