/** The defaults that a client fills in itself: constants, for the reason in request-limits.ts. DEFAULTS in limits.ts has all others too. */

/** The length of a lease. */
export const leaseMs = 30_000;
/** The time that an acquire waits: longer than a crashed holder of the default length blocks the key. limit-relations.ts asserts that. */
export const waitMs = 45_000;
/** The time that a wait for a condition takes to get the key back. */
export const takeBackMs = 300_000;
