/**
 * The keys that the calls around this one hold, as the async context says: a hint and never a reason to refuse. In a pool, and in work that is
 * started and not awaited, the context is another caller's, and no runtime can tell (docs/waiting.md).
 */
import type { Kind } from "../../core/api/locks.js";
import type { Mode } from "../../core/record.js";
import type { Lease } from "../hold/lease-types.js";
import type { LeaseSet } from "../hold/lease-set.js";
import { isA } from "../../core/brand.js";
import { checkResult } from "../wire/checks.js";
import { LockTimeoutError } from "../wire/errors.js";
import type { Session } from "./session.js";
import { sharedStorage } from "./chain-storage.js";

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
  /** The hold of the keys. */
  readonly hold: { isHeld(): boolean };
}

/** Keys, and whether their work has ended: what it left running still has their context. */
interface Surrounding extends HeldKeys {
  isOver: boolean;
}

/** Returns the sentence that a timeout adds if this side holds the keys. A scope makes locks reentrant, and neither permits nor runs. */
function hintOf(uses: readonly KeyUse[], isAround: boolean): string {
  const ofRun = uses.some(({ kind }) => kind === "runs");
  const ofPermits = uses.some(({ limit = 1 }) => limit > 1);
  const isReentrant = !ofRun && !ofPermits;
  if (!isAround) {
    const holds = ofRun ? "runs it" : ofPermits ? "holds permits of it" : "holds it";
    return `; this client ${holds} itself${isReentrant ? ", and a scope makes it reentrant" : ""}`;
  }
  return `; a call around this one seems to hold it: ${ofRun ? "" : `pass its lease on${isReentrant ? ", or use a scope" : ""}; `}in a pool, bind each job to its context`;
}

const surroundings = /* @__PURE__ */ sharedStorage<readonly Surrounding[]>("holdfast.held/1");

/**
 * Runs `work`, and everything that it calls, as the holder of these keys. @throws InvalidRequestError if its result is an iterator, whose work
 * would begin afterwards
 */
export async function runHolding<T>(these: HeldKeys, work: () => Promise<T> | T): Promise<T> {
  const own = { ...these, isOver: false };
  try {
    return checkResult(await surroundings.run([...(surroundings.getStore() ?? []), own], work));
  } finally {
    own.isOver = true;
  }
}

/**
 * Returns the lease, or set, of the lock around this call, for its fencing token. Undefined outside of a lock, directly in a run, and in work
 * that the lock's work left running. A pool's worker that was started under a lock has that lease while it is held, whichever job it does: pass
 * the lease as an argument there, or bind the job with `AsyncResource.bind`.
 */
export function currentLease(): Lease | LeaseSet | undefined {
  const nearest = surroundings.getStore()?.at(-1);
  return nearest?.isOver ? undefined : nearest?.lease;
}

/**
 * Tells the listener if `use` seems to be held by a call around this one, without which it may wait for itself. Within a scope it doesn't.
 * Returns true if it seems so.
 */
export function mayWaitForItself(session: Session, use: KeyUse): boolean {
  const may = (session.scope === undefined || use.kind === "runs") && seemsHeldAround(use, session.deps.api);
  if (may) session.emit({ type: "self-wait", key: use.key });
  return may;
}

/** Carries out a wait for these keys. A timeout says so if one of them seems to be held around it, or is held by this client. */
export async function awaited<T>(session: Session, uses: readonly KeyUse[], wait: () => Promise<T>): Promise<T> {
  const isAround = uses.filter((use) => mayWaitForItself(session, use)).length > 0;
  try {
    return await wait();
  } catch (error) {
    if (!isA(error, LockTimeoutError)) throw error;
    const hint = isAround || uses.some(({ key }) => session.registry.has(key)) ? hintOf(uses, isAround) : "";
    const key = uses.map((use) => use.key).join(" ");
    throw new LockTimeoutError(error.message + hint, Object.assign({}, error, { cause: error.cause, key }));
  }
}

/** True if a surrounding call seems to hold the key in a way that excludes this use. */
export function seemsHeldAround({ key, kind = "locks", ...use }: KeyUse, of: object): boolean {
  const own = (surroundings.getStore() ?? [])
    .filter((one) => one.of === of && !one.isOver && one.hold.isHeld())
    .flatMap(({ uses }) => uses);
  const ofKey = own.filter((one) => one.key === key && (one.kind ?? "locks") === kind);
  return ofKey.length > 0 && isKeptOut(use, ofKey);
}

/** True if this call seems to be made by work under `hold`. */
export function isMadeUnder(hold: object): boolean {
  return (surroundings.getStore() ?? []).some((one) => one.hold === hold && !one.isOver);
}

/** True if the held uses exclude this one. Readers and permits can fit in; a different limit is left for the service to refuse. */
function isKeptOut({ mode, limit = 1, permits = 1 }: Omit<KeyUse, "key">, own: readonly KeyUse[]): boolean {
  if (own.some((one) => (one.limit ?? 1) !== limit)) return false;
  if (limit > 1) return own.reduce((sum, one) => sum + (one.permits ?? 1), permits) > limit;
  return mode !== "shared" || own.some((one) => one.mode !== "shared");
}
