/** The requests of clients about locks, as they reached a handler. Only what they asked for may happen. */
import type { Mode } from "../../../lib/core/record.js";

/** The operation requested for a leaseId. */
export type Operation = "acquire" | "release" | "renew" | "transfer";

/** Every request about locks of one history. */
export class LockRequests {
  readonly #asked: Readonly<Record<Operation, Set<string>>> = {
    ...{ acquire: new Set(), release: new Set(), renew: new Set(), transfer: new Set() },
  };
  readonly #modes = new Set<string>();
  readonly #sets = new Map<string, readonly string[]>();
  readonly #handedOn = new Set<string>();
  readonly #broken = new Set<number>();
  readonly #forced = new Set<number>();

  /** @param setsInParts true if a set is acquired in parts, so its acquire also renews and releases keys */
  constructor(readonly setsInParts = false) {}

  add(operation: Operation, leaseId: string): void {
    this.#asked[operation].add(leaseId);
  }

  has(operation: Operation, leaseId: string): boolean {
    return this.#asked[operation].has(leaseId);
  }

  /** Records an acquire of all these keys under one id. */
  set(leaseId: string, keys: readonly string[]): void {
    for (const operation of this.setsInParts ? (["acquire", "renew", "release"] as const) : (["acquire"] as const))
      this.add(operation, leaseId);
    this.#sets.set(leaseId, keys);
  }

  /** Returns the keys of the set with this id. */
  keysOf(leaseId: string): readonly string[] | undefined {
    return this.#sets.get(leaseId);
  }

  /** Records a transfer of a lease to this id. */
  handOn(toLeaseId: string): void {
    this.#handedOn.add(toLeaseId);
    this.add("acquire", toLeaseId);
  }

  isHandedOn(leaseId: string): boolean {
    return this.#handedOn.has(leaseId);
  }

  /** Records a change of the lease with this token to that mode. */
  change(leaseId: string, mode: Mode, fencingToken: number): void {
    this.#modes.add(`${leaseId}/${mode}/${fencingToken}`);
  }

  isToChange(leaseId: string, mode: Mode, fencingToken: number): boolean {
    return this.#modes.has(`${leaseId}/${mode}/${fencingToken}`);
  }

  break(fencingToken: number, byForce: boolean): void {
    this.#broken.add(fencingToken);
    if (byForce) this.#forced.add(fencingToken);
  }

  isBroken(fencingToken: number): boolean {
    return this.#broken.has(fencingToken);
  }

  /** True if the lease was broken by force. Its holder may go on treating it as held. */
  isForced(fencingToken: number): boolean {
    return this.#forced.has(fencingToken);
  }
}
