/**
 * Leader election: of all candidates for a key, the holder of its lease leads. Candidates don't stay in the key's queue, where a wait of
 * days would need a poll every few seconds. Each asks once per renewal interval, and when the leader's lease could be over. So a leader
 * that crashed is replaced after its lease and margin, and a leader that resigned within one renewal interval.
 */
import { mayWaitForItself } from "./surrounding.js";
import { isA } from "../../core/brand.js";
import { type Backoff, backoffMs } from "../../core/backoff.js";
import * as LIMITS from "../../core/request-limits.js";
import { renewAfterMs } from "../../core/renewal.js";
import { askOnce } from "../ask/fresh-id.js";
import type { Stoppable } from "../wire/lazy-abort.js";
import { boundsFor, pause } from "../wire/retry.js";
import { errorOf, isUnanswered, LockError, LockLostError } from "../wire/errors.js";
import { type Session, CALL_BUDGET_MS } from "./session.js";
import { capWaitMs } from "../wire/invocation.js";
import type { HeldLease } from "../hold/lease.js";
import type { Lease } from "../hold/lease-types.js";
import type { LeaseOptions } from "./options.js";
import { type Checks, CHECKS, checkResult } from "../wire/checks.js";
import { runUnderLease } from "./run-under-lease.js";

/** Options of an election. */
export interface ElectOptions extends Pick<LeaseOptions, "leaseMs" | "owner" | "meta" | "progressMs"> {
  /** Ends the election: the leader's lease signal aborts, and candidates stop. @default never */
  readonly signal?: AbortSignal | undefined;
}

/** The work of a leader. It should end when its lease's signal aborts. */
export type Lead = (lease: Lease) => Promise<void> | void;

/** The jitter at the end of the leader's lease, so that candidates don't all ask at once, in ms. */
const SPREAD_MS = 500;
/** The pauses while the service can't be reached, or refuses: the first, which doubles up to the longest. */
const RETRIES: Backoff = { firstMs: 500, longestMs: 30_000 };

export const ELECT_OPTIONS: Checks<ElectOptions> = {
  leaseMs: CHECKS.leaseMs,
  owner: CHECKS.owner,
  meta: CHECKS.meta,
  progressMs: CHECKS.progressMs,
  signal: CHECKS.signal,
};

/** Campaigns for `key` and leads whenever it is elected, until the signal aborts, or the client or the invocation ends. */
export async function elect(session: Session, key: string, options: ElectOptions, lead: Lead): Promise<void> {
  mayWaitForItself(session, { key });
  for (let wasAllowed = false; ; wasAllowed = true) {
    const lease = await elected(session, key, options, wasAllowed);
    if (!lease) return;
    await leadUntilOver(session, lease, options.signal, lead);
    // Let another candidate lead, if there is one.
    await pauseFor(session, lease.renewAfterMs, options.signal);
  }
}

/**
 * Campaigns until elected; undefined when the election is over. After a first answer no refusal ends it: a right that was taken away by
 * mistake comes back, and nobody would start the candidate again.
 * @param wasAllowed true if this candidate has led before
 * @throws LockError if it is refused for good before it had any other answer
 */
async function elected(session: Session, key: string, options: ElectOptions, wasAllowed: boolean): Promise<HeldLease | undefined> {
  const { registry, context, deps } = session;
  const goesOn = (): boolean => options.signal?.aborted !== true && !registry.closedBy && capWaitMs(LIMITS.leaseMinMs, context) > 0;
  let isAllowed = wasAllowed;
  let failure: string | undefined;
  for (let failedAttempts = 0; goesOn();) {
    try {
      const stood = await registry.run(options.signal, (signal) => campaign(session, key, { ...options, signal }));
      if (typeof stood !== "number") return stood;
      isAllowed = true;
      failure = undefined;
      failedAttempts = 0;
      await pauseFor(session, stood, options.signal);
    } catch (error) {
      if (!goesOn()) return undefined;
      if (!isA(error, LockError)) throw error;
      // A lease that was lost before it reached this code is no refusal.
      const type = isUnanswered(error) || isA(error, LockLostError) ? "unavailable" : "refused";
      // Once for all failures in a row that have the same code.
      if (failure !== error.code) session.emit({ type, key, error });
      failure = error.code;
      if (error.retry === "never" && !isAllowed) throw error;
      await pauseFor(session, deps.random() * backoffMs(RETRIES, failedAttempts++), options.signal);
    }
  }
  return undefined;
}

/** Asks once. Returns the lease, or the time in ms until it should ask again. @throws LockError for any refusal but `locked` */
async function campaign(session: Session, key: string, options: Stoppable<ElectOptions>): Promise<HeldLease | number> {
  const { deps, context } = session;
  const params = { ...session.acquireParams(key, options), signal: options.signal };
  const answered = await askOnce(params, boundsFor(params.leaseMs, capWaitMs(Math.min(params.leaseMs, CALL_BUDGET_MS), context)), deps);
  const { answer } = answered;
  if (answer.ok) return session.holds.adopt({ ...answered, answer }, options);
  if (answer.code !== "locked") throw errorOf(answer, `elect ${key}`);
  const { retryAfterMs = Number.POSITIVE_INFINITY } = answer;
  const part = deps.random();
  return Math.min(retryAfterMs + SPREAD_MS * part, renewAfterMs(params.leaseMs) * (0.5 + 0.5 * part));
}

/**
 * Leads until `lead` returns or the lease is lost. A leader that should stop is no longer renewed; it keeps the key until `lead` has
 * returned or the lease expires. @throws the error of `lead`, unless it is the loss or the stop
 */
async function leadUntilOver(session: Session, lease: HeldLease, signal: AbortSignal | undefined, lead: Lead): Promise<void> {
  const stop = (): void => lease.abandon();
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop();
  let failed: { readonly by: unknown } | undefined;
  try {
    await runUnderLease(session, lease, { uses: [lease], isToldAtOnce: true }, async () => {
      try {
        checkResult(await (lead(lease) as Promise<unknown>));
      } catch (by) {
        failed = { by };
        throw by;
      }
    });
  } catch {
    // The lease's signal already reported a loss.
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  if (failed && !(lease.wasLost && stopped(failed.by, lease.signal, signal))) throw failed.by;
}

/** True if the error comes from an aborted signal: its reason, or the AbortError of an operation that uses the signal. */
function stopped(error: unknown, ...signals: readonly (AbortSignal | undefined)[]): boolean {
  const { name, cause } = error instanceof Error ? error : ({} as Partial<Error>);
  return signals.some((signal) => signal?.aborted === true && (name === "AbortError" || [error, cause].includes(signal.reason)));
}

/** Pauses until the time is over, the signal aborts or the client is closed. */
function pauseFor({ registry, deps }: Session, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return registry.run(signal, (giveUp) => pause(ms, deps.clock, giveUp));
}
