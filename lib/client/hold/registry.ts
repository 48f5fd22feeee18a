/**
 * The acquires that a client has in progress and the leases that it holds. The caller's signal can cancel an acquire. Closing the client
 * cancels all of them and waits until their cleanup is done (decision 077 has how it drains). The registry of a client includes those of its views.
 */
import type { HeldLease } from "./lease.js";
import { type LockLostError, LockError } from "../wire/errors.js";
import { type StopSignal, LazyAbort } from "../wire/lazy-abort.js";

/** The listeners of a caller's signal, and the one that the signal has. */
interface Heard {
  readonly listeners: Set<() => void>;
  readonly notify: () => void;
}

/** Work under a lease. */
export interface Work {
  /** Settles when the work has returned, and its lease is released or its outcome recorded. */
  readonly ended: Promise<void>;
  /** True if it ends only when its lease's signal aborts, as that of a leader does. */
  readonly isToldAtOnce: boolean;
}

/** The leases and acquires of one client. */
export class Registry {
  readonly #whole: Registry | undefined;
  readonly #leases = new Set<HeldLease>();
  /** The number of leases of each key. */
  readonly #ofKey = new Map<string, number>();
  readonly #acquires = new Map<LazyAbort, Promise<unknown>>();
  readonly #works = new Map<HeldLease, Work>();
  readonly #tracked = new Set<Promise<unknown>>();
  /** The listeners of each caller's signal, which all views share. */
  readonly #listening: WeakMap<AbortSignal, Heard>;
  #closedBy: Error | undefined;

  /** @param whole the registry of the client of which this one is a view */
  constructor(whole?: Registry) {
    this.#whole = whole;
    this.#listening = whole ? whole.#listening : new WeakMap();
  }

  /** The reason with which it was closed; undefined while it is open. */
  get closedBy(): Error | undefined {
    return this.#closedBy ?? this.#whole?.closedBy;
  }

  add(lease: HeldLease): void {
    this.#leases.add(lease);
    this.#ofKey.set(lease.key, (this.#ofKey.get(lease.key) ?? 0) + 1);
    this.#whole?.add(lease);
  }

  /** Removes the lease. Returns true if it was registered. */
  delete(lease: HeldLease): boolean {
    this.#whole?.delete(lease);
    if (!this.#leases.delete(lease)) return false;
    const left = (this.#ofKey.get(lease.key) ?? 1) - 1;
    if (left > 0) this.#ofKey.set(lease.key, left);
    else this.#ofKey.delete(lease.key);
    return true;
  }

  /** True if the client, or a view of it, has a lease or a run of this name. */
  has(key: string): boolean {
    return this.#whole?.has(key) ?? this.#ofKey.has(key);
  }

  /** The work that runs. */
  get works(): ReadonlyMap<HeldLease, Work> {
    return this.#works;
  }

  /** Returns the leases without work: those that their user holds. */
  held(): readonly HeldLease[] {
    return [...this.#leases].filter((lease) => !this.#works.has(lease));
  }

  /** Runs `work`, which ends the lease itself. Until it has settled, nobody else here gives the key away. */
  async during<T>(lease: HeldLease, isToldAtOnce: boolean, work: () => Promise<T>): Promise<T> {
    let end = (): void => undefined;
    this.#setWork(lease, { ended: new Promise((resolve) => (end = resolve)), isToldAtOnce });
    try {
      return await work();
    } finally {
      this.#setWork(lease);
      end();
    }
  }

  #setWork(lease: HeldLease, work?: Work): void {
    if (work) this.#works.set(lease, work);
    else this.#works.delete(lease);
    if (this.#whole) this.#whole.#setWork(lease, work);
  }

  /** Ends every hold of this side, for the reason that `lossOf` its key gives. Nothing is sent: the leases end by themselves. */
  lose(lossOf: (key: string) => LockLostError): void {
    for (const lease of [...this.#leases]) lease.lose(lossOf(lease.key));
  }

  /** Registers work that goes on after its caller got an answer, such as a cancel, or that ends a lease. */
  track(work: Promise<unknown>): void {
    const untrack = (): void => void this.#tracked.delete(work);
    this.#tracked.add(work);
    work.then(untrack, untrack);
    this.#whole?.track(work);
  }

  /** Runs `acquire` with a signal that aborts when the caller's signal does, or when the client is closed. After that, it has aborted. */
  async run<T>(signal: AbortSignal | StopSignal | undefined, acquire: (giveUp: LazyAbort) => Promise<T>): Promise<T> {
    const giveUp = new LazyAbort();
    const forward = (): void => giveUp.abort(signal?.reason);
    const stopListening = this.#listen(signal, forward);
    if (signal?.aborted) forward();
    if (this.closedBy) giveUp.abort(this.closedBy);
    const acquired = this.#whole ? this.#whole.run(giveUp, acquire) : acquire(giveUp);
    this.#acquires.set(giveUp, acquired);
    try {
      return await acquired;
    } finally {
      this.#acquires.delete(giveUp);
      stopListening();
    }
  }

  /**
   * Calls `listener` when `signal` aborts. Returns what ends that. A single signal, such as a server's, can belong to any number of acquires, and
   * Node warns of more than ten listeners: the signal has one for all.
   */
  #listen(signal: AbortSignal | StopSignal | undefined, listener: () => void): () => void {
    if (!(signal instanceof EventTarget)) {
      signal?.addEventListener("abort", listener);
      return () => signal?.removeEventListener("abort", listener);
    }
    const listening = this.#listening.get(signal) ?? { listeners: new Set(), notify: () => listening.listeners.forEach((one) => one()) };
    if (listening.listeners.size === 0) signal.addEventListener("abort", listening.notify, { once: true });
    listening.listeners.add(listener);
    this.#listening.set(signal, listening);
    return () => {
      listening.listeners.delete(listener);
      if (listening.listeners.size === 0) signal.removeEventListener("abort", listening.notify);
    };
  }

  /** Accepts nothing more, and cancels every acquire with `reason`. */
  close(reason: Error): void {
    this.#closedBy = reason;
    for (const controller of this.#acquires.keys()) controller.abort(reason);
  }

  /** Resolves when the last acquire of a closed client has cleaned up and all tracked work has ended. */
  async cleaned(): Promise<void> {
    await Promise.allSettled(this.#acquires.values());
    // Work that ends can start more work, such as a cancel. Each has a budget, and nothing else is accepted.
    while (this.#tracked.size > 0) await Promise.allSettled(this.#tracked);
  }
}

/** Returns the error of a closed client. */
export function closedError(): LockError {
  return new LockError("the client is closed", { code: "closed", definite: true, retry: "never" });
}
