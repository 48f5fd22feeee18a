/** The leases of a client, or of a view of it: an answer becomes a live lease here, and its end is told. */
import { isA } from "../../core/brand.js";
import type { Kind } from "../../core/api/locks.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { Held, LeaseState } from "../../core/commands.js";
import { LockError, LockLostError } from "../wire/errors.js";
import type { LockClientEvent } from "../wire/events.js";
import type { Answered } from "../wire/retry.js";
import { type KeepAliveOptions, keepAlive } from "./keep-alive.js";
import { type LeaseDeps, HeldLease } from "./lease.js";
import type { LeaseKind } from "./lease-types.js";
import type { LeaseClient } from "./lease-types.js";
import { type Registry, closedError } from "./registry.js";

/** The reasons for which this side ends a lease on purpose. */
const GIVEN_UP: ReadonlySet<LockLostError["reason"] | undefined> = new Set(["released", "transferred", "closed"]);

/** The release states of a hold that was lost before. After a grant, `unknown` and `never` count as lost, unless the release was repeated. */
const LOST: ReadonlySet<LeaseState | undefined> = new Set(["lost", "unknown", "never"]);

/** The kind of the lease, the service that renews and releases it, and its handoff. */
interface AdoptOptions extends Pick<LeaseKind, "handoff"> {
  readonly kind?: Kind;
  readonly api?: ServiceApi;
}

/** The leases that a client holds. */
export class Holds implements LeaseClient<HeldLease> {
  /** Told of each heartbeat when it begins, if a wrapper measures them. */
  onBeat?: (lease: HeldLease, beat: Promise<void>) => void;
  readonly #deps: LeaseDeps;
  readonly #registry: Registry;
  readonly #emit: (event: LockClientEvent) => void;

  constructor(deps: Omit<LeaseDeps, "client" | "run">, registry: Registry, emit: (event: LockClientEvent) => void) {
    this.#deps = { ...deps, client: this, run: (signal, wait) => registry.run(signal, wait) };
    this.#registry = registry;
    this.#emit = emit;
  }

  /** Turns the reply into a live lease. A lease that can't be kept is released, and no caller ever gets it. */
  async adopt(
    answered: Answered<Held>,
    options: KeepAliveOptions,
    { kind = "locks", api = this.#deps.api, handoff }: AdoptOptions = {},
  ): Promise<HeldLease> {
    const isLock = kind === "locks" && api === this.#deps.api;
    const deps = isLock ? this.#deps : { ...this.#deps, api, renewalBatcher: undefined };
    const lease = new HeldLease(answered.answer.lease, answered.sentAt, { kind, handoff }, deps);
    keepAlive(lease, options, deps);
    if (this.#registry.closedBy || !lease.isHeld()) await this.tryRelease(lease);
    if (this.#registry.closedBy) throw closedError();
    if (isWithoutTime(lease)) throw withoutTimeError(lease.key);
    lease.assertHeld();
    this.#registry.add(lease);
    this.emit("acquired", lease);
    return lease;
  }

  /** Releases the lease. A release without a response is reported as an event only: the lease ends by itself. */
  async tryRelease(lease: HeldLease): Promise<LeaseState | undefined> {
    try {
      return await lease.release();
    } catch (error) {
      this.emit("release-failed", lease, error);
      return undefined;
    }
  }

  /**
   * Releases the lease of finished work. @throws LockLostError unless it was held until then, or the work itself released or transferred
   * it.
   */
  async endHold(lease: HeldLease): Promise<void> {
    const { wasLost } = lease;
    const state = await this.tryRelease(lease);
    if (wasLost) lease.assertHeld();
    // With many shared holders the key forgets the id before the release is repeated. The lease was held when it was sent first.
    if (!(state === "unknown" && lease.wasReleaseRepeated)) assertEnded(lease.key, state);
  }

  emit(type: LockClientEvent["type"], lease: HeldLease, error?: unknown): void {
    this.#emit({ type, key: lease.key, fencingToken: lease.fencingToken, ...(error !== undefined && { error }) });
  }

  ended(lease: HeldLease): void {
    if (!this.#registry.delete(lease)) return;
    if (GIVEN_UP.has(lease.endReason)) this.emit("released", lease);
    else this.emit("lost", lease, lease.ending.reason);
  }

  beats(lease: HeldLease, beat: Promise<void>): void {
    this.onBeat?.(lease, beat);
  }

  renewalFailed(lease: HeldLease, error: unknown): void {
    this.emit("renew-failed", lease, error);
  }

  /**
   * A key under which work runs is given back when that has returned, or its lease is over. A run ends only by its own outcome: if it were
   * given up here, work that had begun would count as never started.
   */
  giveBack(lease: HeldLease): void {
    if (lease.kind === "locks" && !this.#registry.works.has(lease)) void this.tryRelease(lease);
  }
}

/** @throws LockLostError if the work's hold was lost before the release whose state this is; undefined: the release got no response */
export function assertEnded(key: string, state: LeaseState | undefined): void {
  if (LOST.has(state)) throw new LockLostError(`${key}: was taken or broken while the work ran`, "broken", { key });
}

/** True if the invocation ended the lease, which nobody had yet. */
function isWithoutTime({ ending: { reason } }: HeldLease): boolean {
  return isA(reason, LockLostError) && reason.reason === "invocation-ends";
}

function withoutTimeError(key: string): LockError {
  const what = `${key}: nothing is held, because the Lambda invocation has no time left for it`;
  return new LockError(what, { code: "invocation-ends", definite: true, retry: "later" });
}
