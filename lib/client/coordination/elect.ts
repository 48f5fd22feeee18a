/**
 * Leading, one at a time of all who stand for a key: who holds its lease leads. Who stands by is not in the key's queue,
 * where a wait of days would be looked after every few seconds: it asks once each renewal interval of its own, and at
 * the moment when the leader's lease could be over. So a leader that died is replaced when its lease and margin have
 * passed, one that resigned within a renewal interval.
 */
import type { Backoff } from "../../core/backoff.js";
import { backoffMs } from "../../core/backoff.js";
import { LIMITS, renewAfterMs } from "../../core/limits.js";
import { tryOnce } from "../acquire/acquire.js";
import { boundsFor, pause } from "../transport/retry.js";
import { refuseOwn } from "../wrap/reentrancy-guard.js";
import { LockLostError, LockUnavailableError } from "../errors.js";
import type { Session } from "../session.js";
import { CALL_BUDGET_MS } from "../session.js";
import { capWaitMs } from "../invocation.js";
import type { HeldLease, Lease } from "../lease/lease.js";
import type { LeaseOptions } from "../options.js";
import { checkLease, checkNames, checkSignal } from "../options.js";
import { runUnderLease } from "../wrap/run-under-lease.js";

/** Options of an election. */
export interface ElectOptions extends Pick<LeaseOptions, "leaseMs" | "owner" | "meta"> {
  /** Ends it: who leads is told by its lease's signal, who stands by stops. @default never */
  readonly signal?: AbortSignal;
}

/** What a leader does. It should end when its lease's signal aborts. */
export type Lead = (lease: Lease) => Promise<void> | void;

/** Who asks at the end of the leader's lease comes up to so much later: not all who stand by at once. */
const SPREAD_MS = 500;
/** Pauses while the service can't be reached: the first, doubled up to the longest. */
const RETRIES: Backoff = { firstMs: 500, longestMs: 30_000 };

/** @throws InvalidRequestError naming what is wrong with the options of an election. */
export function checkElect(options: ElectOptions): void {
  checkNames("elect", options, ["leaseMs", "owner", "meta", "signal"]);
  checkLease(options);
  checkSignal(options.signal);
}

/** Stands for `key` and leads whenever it is elected, until the signal, the client or the invocation ends. */
export async function elect(session: Session, key: string, options: ElectOptions, lead: Lead): Promise<void> {
  if (session.scope === undefined) refuseOwn({ key }, session.deps.api);
  for (;;) {
    const lease = await elected(session, key, options);
    if (!lease) return;
    await leadUntilOver(session, lease, options.signal, lead);
    // It is another's turn, if there is one.
    await pauseFor(session, lease.renewAfterMs, options.signal);
  }
}

/** Stands by until it is elected; undefined when the election is over. */
async function elected(session: Session, key: string, options: ElectOptions): Promise<HeldLease | undefined> {
  const { registry, context, deps } = session;
  const goesOn = (): boolean => options.signal?.aborted !== true && !registry.isClosed && capWaitMs(LIMITS.leaseMinMs, context) > 0;
  for (let failedAttempts = 0; goesOn();) {
    try {
      const stood = await registry.run(options.signal, (signal) => campaign(session, key, { ...options, signal }));
      if (typeof stood !== "number") return stood;
      failedAttempts = 0;
      await pauseFor(session, stood, options.signal);
    } catch (error) {
      if (!goesOn()) return undefined;
      // Lost while it was on its way here, as by a process that froze, is as good as not granted.
      if (!(error instanceof LockUnavailableError || error instanceof LockLostError)) throw error;
      await pauseFor(
        session,
        deps.random() * backoffMs(RETRIES, failedAttempts++),
        options.signal,
      );
    }
  }
  return undefined;
}

/** Asks once: the lease, or in how many ms to ask again. */
async function campaign(session: Session, key: string, options: ElectOptions): Promise<HeldLease | number> {
  const { deps, context } = session;
  const params = { ...session.acquireParams(key, options), signal: options.signal };
  const answered = await tryOnce(params, boundsFor(params.leaseMs, capWaitMs(Math.min(params.leaseMs, CALL_BUDGET_MS), context)), deps);
  const { answer } = answered;
  if (answer.ok) return session.adopt({ ...answered, answer }, options);
  const { retryAfterMs = Number.POSITIVE_INFINITY } = answer;
  const part = deps.random();
  return Math.min(retryAfterMs + SPREAD_MS * part, renewAfterMs(params.leaseMs) * (0.5 + 0.5 * part));
}

/**
 * Leads until it is done, or the lease is lost. Who is told to stop is not renewed any more, and keeps the key until
 * `lead` has stopped, or the lease runs out. @throws what `lead` throws, unless that is the loss or the stop
 */
async function leadUntilOver(session: Session, lease: HeldLease, signal: AbortSignal | undefined, lead: Lead): Promise<void> {
  const stop = (): void => lease.abandon();
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop();
  let failed: { readonly by: unknown } | undefined;
  try {
    await runUnderLease(session, lease, [lease], async () => {
      try {
        await lead(lease);
      } catch (by) {
        failed = { by };
        throw by;
      }
    });
  } catch {
    // Of a loss it was told by its lease's signal.
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  if (failed && !(lease.wasLost && stopped(failed.by, lease.signal, signal))) throw failed.by;
}

/** Whether the error says that one of the signals aborted: its reason, or what waits with a signal makes of it. */
function stopped(error: unknown, ...signals: readonly (AbortSignal | undefined)[]): boolean {
  const { name, cause } = error instanceof Error ? error : ({} as Partial<Error>);
  return signals.some((signal) => signal?.aborted === true && (name === "AbortError" || [error, cause].includes(signal.reason)));
}

/** A pause that ends with the signal, and with the client. */
function pauseFor({ registry, deps }: Session, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return registry.run(signal, (given) => pause(ms, deps.clock, given));
}
