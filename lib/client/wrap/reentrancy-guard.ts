/**
 * What the present chain of calls holds: work that asks, in a `withLock` or `runOnce`, for what a call around it
 * already has would wait for itself. It is told so at once.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Kind } from "../../core/api/locks.js";
import type { Mode } from "../../core/record.js";
import { LockError } from "../errors.js";
import type { Lease } from "../lease/lease.js";
import type { LeaseSet } from "../lease/lease-set.js";

/** A key, and how it is held or wanted. */
export interface KeyUse {
  readonly key: string;
  /** A run and a lock of one name are two. @default "locks" */
  readonly kind?: Kind | undefined;
  /** @default "exclusive" */
  readonly mode?: Mode | undefined;
  /** @default 1 */
  readonly limit?: number | undefined;
  /** @default 1 */
  readonly permits?: number | undefined;
}

/** Keys held by a call further out. */
export interface HeldKeys {
  readonly uses: readonly KeyUse[];
  /** Whose keys they are: a client of another service has keys of the same names. */
  readonly of: object;
  /** The lease, or set, as the work knows it; of a run none. */
  readonly lease?: Lease | LeaseSet;
  isHeld(): boolean;
}

const held = new AsyncLocalStorage<readonly HeldKeys[]>();

/** Runs `work`, and all that it calls, as holding these. */
export function runHolding<T>(these: HeldKeys, work: () => T): T {
  return held.run([...(held.getStore() ?? []), these], work);
}

/** The lease, or set, of the nearest lock around the call: its token is for resources that check one. Undefined outside. */
export function currentLease(): Lease | LeaseSet | undefined {
  return held.getStore()?.findLast(({ lease }) => lease !== undefined)?.lease;
}

/** @throws LockError `self-deadlock` when the chain of calls that asks holds the key in a way that keeps this use of it out. */
export function refuseOwn(params: KeyUse, of: object): void {
  const { key, kind = "locks" } = params;
  const own = (held.getStore() ?? []).filter((one) => one.of === of && one.isHeld()).flatMap(({ uses }) => uses);
  const ofKey = own.filter((use) => use.key === key && (use.kind ?? "locks") === kind);
  if (ofKey.length === 0 || !isKeptOut(params, ofKey)) return;
  const [what, advice] = kind === "runs" ? ["run", ""] : ["acquire", "; a scope makes it reentrant"];
  throw new LockError(`${what} ${key}: this chain of calls holds it already, and would wait for itself${advice}`, {
    code: "self-deadlock",
    definite: true,
    retry: "never",
  });
}

/** Readers and permits may fit in beside what is held, and another limit is the service's to refuse. */
function isKeptOut({ mode, limit = 1, permits = 1 }: KeyUse, own: readonly KeyUse[]): boolean {
  if (own.some((one) => (one.limit ?? 1) !== limit)) return false;
  if (limit > 1) return own.reduce((sum, one) => sum + (one.permits ?? 1), permits) > limit;
  return mode !== "shared" || own.some((one) => one.mode !== "shared");
}
