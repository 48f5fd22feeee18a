/**
 * Detects self-deadlocks. Work in a `withLock` or `runOnce` that asks for a key held by a surrounding call would wait for itself; it gets
 * an error at once.
 */
import type { Kind } from "../../core/api/locks.js";
import type { Mode } from "../../core/record.js";
import { LockError } from "../errors.js";
import type { Lease } from "../lease/lease.js";
import type { LeaseSet } from "../lease/lease-set.js";
import { sharedStorage } from "./shared-storage.js";

/** A key and the way in which it is held or requested. */
export interface KeyUse {
  readonly key: string;
  /** The kind: a run and a lock of the same name are different. @default "locks" */
  readonly kind?: Kind | undefined;
  /** @default "exclusive" */
  readonly mode?: Mode | undefined;
  /** @default 1 */
  readonly limit?: number | undefined;
  /** @default 1 */
  readonly permits?: number | undefined;
}

/** Keys held by a surrounding call. */
export interface HeldKeys {
  readonly uses: readonly KeyUse[];
  /** The service that owns the keys: a client of another service can have keys of the same names. */
  readonly of: object;
  /** The lease, or set, as the work sees it; undefined for a run. */
  readonly lease?: Lease | LeaseSet;
  isHeld(): boolean;
}

const held = /* @__PURE__ */ sharedStorage<readonly HeldKeys[]>("holdfast.held/1");

/** Runs `work`, and everything that it calls, as the holder of these keys. */
export function runHolding<T>(these: HeldKeys, work: () => T): T {
  return held.run([...(held.getStore() ?? []), these], work);
}

/** Returns the lease, or set, of the nearest surrounding lock, for its fencing token. Undefined outside of a lock. */
export function currentLease(): Lease | LeaseSet | undefined {
  return held.getStore()?.findLast(({ lease }) => lease !== undefined)?.lease;
}

/** @throws LockError `self-deadlock` if a surrounding call holds the key in a way that excludes this use. */
export function refuseOwn(params: KeyUse, of: object): void {
  const { key, kind = "locks" } = params;
  const own = (held.getStore() ?? []).filter((one) => one.of === of && one.isHeld()).flatMap(({ uses }) => uses);
  const ofKey = own.filter((use) => use.key === key && (use.kind ?? "locks") === kind);
  if (ofKey.length === 0 || !isKeptOut(params, ofKey)) return;
  const [what, advice] = kind === "runs" ? ["run", ""] : ["acquire", "; a scope makes it reentrant"];
  throw new LockError(`${what} ${key}: this chain of calls holds it already${advice}`, {
    code: "self-deadlock",
    definite: true,
    retry: "never",
  });
}

/** True if the held uses exclude this one. Readers and permits can fit in; a different limit is left for the service to refuse. */
function isKeptOut({ mode, limit = 1, permits = 1 }: KeyUse, own: readonly KeyUse[]): boolean {
  if (own.some((one) => (one.limit ?? 1) !== limit)) return false;
  if (limit > 1) return own.reduce((sum, one) => sum + (one.permits ?? 1), permits) > limit;
  return mode !== "shared" || own.some((one) => one.mode !== "shared");
}
