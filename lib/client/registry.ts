/**
 * Everything a client has under way or holds. Acquires can be given up by their caller's signal, and
 * all of it by the end of the client, which waits until nothing is left behind. What a view of the
 * client has, the client has too.
 */
import { setMaxListeners } from "node:events";
import type { HeldLease } from "./lease/lease.js";

/** The leases and acquires of one client. */
export class Registry {
  readonly #whole: Registry | undefined;
  readonly #leases = new Set<HeldLease>();
  /** The number of them for each key. */
  readonly #ofKey = new Map<string, number>();
  readonly #acquires = new Map<AbortController, Promise<unknown>>();
  readonly #tracked = new Set<Promise<unknown>>();
  #closed = false;

  /** @param whole the registry of the client that this one's is a view of */
  constructor(whole?: Registry) {
    this.#whole = whole;
  }

  get isClosed(): boolean {
    return this.#closed || (this.#whole?.isClosed ?? false);
  }

  add(lease: HeldLease): void {
    this.#leases.add(lease);
    this.#ofKey.set(lease.key, (this.#ofKey.get(lease.key) ?? 0) + 1);
    this.#whole?.add(lease);
  }

  /** Whether it was there. */
  delete(lease: HeldLease): boolean {
    this.#whole?.delete(lease);
    if (!this.#leases.delete(lease)) return false;
    const left = (this.#ofKey.get(lease.key) ?? 1) - 1;
    if (left > 0) this.#ofKey.set(lease.key, left);
    else this.#ofKey.delete(lease.key);
    return true;
  }

  /** Whether the client, or a view of it, has a lease, or a run, of this name. */
  has(key: string): boolean {
    return this.#whole?.has(key) ?? this.#ofKey.has(key);
  }

  /** Notes work that goes on after its caller was answered, such as a cancel, or that ends a lease. */
  track(work: Promise<unknown>): void {
    const untrack = (): void => void this.#tracked.delete(work);
    this.#tracked.add(work);
    work.then(untrack, untrack);
    this.#whole?.track(work);
  }

  /** Runs `acquire` with a signal that aborts with the caller's, or when everything is given up. */
  async run<T>(signal: AbortSignal | undefined, acquire: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const giveUp = new AbortController();
    const forward = (): void => giveUp.abort(signal?.reason);
    // One signal may be that of any number of acquires: a request's, a server's.
    if (signal) setMaxListeners(0, signal);
    signal?.addEventListener("abort", forward, { once: true });
    if (signal?.aborted) forward();
    const acquired = this.#whole ? this.#whole.run(giveUp.signal, acquire) : acquire(giveUp.signal);
    this.#acquires.set(giveUp, acquired);
    try {
      return await acquired;
    } finally {
      this.#acquires.delete(giveUp);
      signal?.removeEventListener("abort", forward);
    }
  }

  /**
   * Takes nothing more, gives every acquire up for `reason` and returns the leases that are to be ended;
   * `cleaned` resolves when the last acquire has cleaned up after itself and all that is tracked has ended.
   */
  close(reason: Error): { readonly leases: readonly HeldLease[]; readonly cleaned: Promise<unknown> } {
    this.#closed = true;
    for (const controller of this.#acquires.keys()) controller.abort(reason);
    return { leases: [...this.#leases], cleaned: this.#cleaned() };
  }

  async #cleaned(): Promise<void> {
    await Promise.allSettled(this.#acquires.values());
    // What ends may begin something more, such as a cancel; each has a budget, and nothing else is taken on.
    while (this.#tracked.size > 0) await Promise.allSettled(this.#tracked);
  }
}
