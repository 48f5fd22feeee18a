/**
 * The end of a client, or of a view of it. SIGTERM, `close()`, the end of a view's block and of an election all come here:
 *
 * 1. Nothing new is granted, and every wait ends.
 * 2. Work that runs goes on under renewed leases, for `drainMs` at most. Each lease is released when its work has returned.
 * 3. Then the signals of the others abort. Their keys go when their work has returned, or when their leases are over.
 *
 * A lease of `acquire()` has no work that a client could wait for: what counts is that its user releases it, and after `drainMs` it is
 * released here.
 */
import type { Clock } from "../../core/time.js";
import { type InvocationContext, capBudgetMs, capWaitMs } from "../wire/invocation.js";
import { atMost } from "../wire/retry.js";
import type { Holds } from "./holds.js";
import type { HeldLease } from "./lease.js";
import { type Registry, type Work, closedError } from "./registry.js";

/** Options of the end of a client. */
export interface CloseOptions {
  /**
   * The time in ms for which work goes on under renewed leases before its lease's signal aborts. In an invocation it is at most the remaining
   * time − 1 s.
   * @default the client's `drainMs`; without one 10 000 for work of `withLock`, `withLocks`, `runOnce` and what is built on them, and 0 for
   *   the work of `elect`, which is told at once, and for leases of `acquire()`
   */
  readonly drainMs?: number | undefined;
}

/** The default of {@link CloseOptions.drainMs} for work, in ms: a third of the time that most orchestrators give a process to end. */
export const DRAIN_MS = 10_000;

/** The releases that a closing client sends at once. With thousands on their way, most would not be answered in time. */
const RELEASES_AT_ONCE = 100;

/** A client or view that is closed, and the options. */
export interface Closing extends CloseOptions {
  readonly registry: Registry;
  readonly holds: Holds;
  readonly clock: Clock;
  readonly context: InvocationContext | undefined;
  /** The default of `drainMs` for leases without work, in ms. */
  readonly heldMs: number;
  /** True of the lease under which the caller of the close itself runs: its work can't return before the close does. */
  readonly isAround: (lease: HeldLease) => boolean;
}

/** Closes. Resolves when all work has returned or its lease is over, and every pending release, cancel and outcome has been answered. */
export async function close(closing: Closing): Promise<void> {
  const { registry } = closing;
  registry.close(closedError());
  await Promise.all([...Array.from(registry.works, ([lease, work]) => workEnds(closing, lease, work)), heldEnds(closing)]);
  await registry.cleaned();
}

/** Waits for the end of work under a lease: first with the lease, then until the lease is over. */
async function workEnds(closing: Closing, lease: HeldLease, { ended, isToldAtOnce }: Work): Promise<void> {
  const { clock, context, drainMs = isToldAtOnce ? 0 : DRAIN_MS } = closing;
  const isAround = closing.isAround(lease);
  const mostMs = isAround ? 0 : capWaitMs(drainMs, context);
  if (mostMs > 0) await atMost(mostMs, ended, clock);
  lease.abandon();
  const leftMs = isAround ? 0 : capBudgetMs(lease.leftMs(), context);
  if (leftMs > 0) await atMost(leftMs, ended, clock);
}

/** Waits until the leases without work are released, and releases what is left of them. */
async function heldEnds({ registry, holds, clock, context, heldMs, drainMs = heldMs }: Closing): Promise<void> {
  const mostMs = capWaitMs(drainMs, context);
  const held = registry.held();
  if (mostMs > 0 && held.length > 0) await atMost(mostMs, Promise.all(held.map(ended)), clock);
  const left = registry.held();
  for (const lease of left) lease.abandon();
  // A run ends by its own outcome.
  const locks = left.filter(({ kind }) => kind === "locks").values();
  const someOfThem = async (): Promise<void> => {
    for (const lease of locks) if (!(await holds.tryRelease(lease))) return;
  };
  await Promise.all(Array.from({ length: RELEASES_AT_ONCE }, someOfThem));
  // After so many releases without success, the others are not sent: their leases end by themselves.
  for (const lease of locks) holds.emit("release-failed", lease, registry.closedBy);
}

function ended({ ending }: HeldLease): Promise<void> {
  return new Promise((resolve) => void ending.addEventListener("abort", resolve));
}
