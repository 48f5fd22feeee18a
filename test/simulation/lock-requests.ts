/** What clients asked of locks, as it reached a handler: nothing else may come of it. */
import type { Mode } from "../../lib/core/record.js";

/** What is asked for under a leaseId. */
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

  add(operation: Operation, leaseId: string): void {
    this.#asked[operation].add(leaseId);
  }

  has(operation: Operation, leaseId: string): boolean {
    return this.#asked[operation].has(leaseId);
  }

  /** All of these keys, under one id. */
  set(leaseId: string, keys: readonly string[]): void {
    this.add("acquire", leaseId);
    this.#sets.set(leaseId, keys);
  }

  /** The keys of the set that the id is of. */
  keysOf(leaseId: string): readonly string[] | undefined {
    return this.#sets.get(leaseId);
  }

  /** Somebody's lease is to go on under this id. */
  handOn(toLeaseId: string): void {
    this.#handedOn.add(toLeaseId);
    this.add("acquire", toLeaseId);
  }

  isHandedOn(leaseId: string): boolean {
    return this.#handedOn.has(leaseId);
  }

  /** The lease that has this token is to be of that mode. */
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

  /** By force: its holder may go on believing. */
  isForced(fencingToken: number): boolean {
    return this.#forced.has(fencingToken);
  }
}
