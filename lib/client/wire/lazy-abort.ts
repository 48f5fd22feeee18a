/**
 * An AbortController that makes its AbortSignal when it is read. Every acquire, attempt and lease has one, and few are ever looked at: an
 * AbortSignal takes 1.5 KB of heap, and as long to make as the rest of an attempt.
 */

import { brand, isA } from "../../core/brand.js";
import type { CallOptions } from "../../core/api/locks.js";

/** The part of an AbortSignal that this package listens to. */
export interface StopSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Returns the signal of options to listen to. An attempt's options are one themselves: to read their AbortSignal would make it. */
export function stopSignalOf(options: CallOptions): StopSignal | undefined {
  return isA(options, LazyAbort) ? options : options.signal;
}

/** Options whose signal is only listened to. */
export type Stoppable<Options> = Omit<Options, "signal"> & { readonly signal?: StopSignal | undefined };

/** Aborts once. Its own listeners run before those of its signal. */
export class LazyAbort implements StopSignal {
  static {
    brand(this, "LazyAbort");
  }
  #aborted = false;
  #reason: unknown;
  #makeReason: (() => unknown) | undefined;
  #listeners: Set<() => void> | undefined;
  #controller: AbortController | undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    const make = this.#makeReason;
    this.#makeReason = undefined;
    if (make) this.#reason = make();
    return this.#reason;
  }

  /** The AbortSignal, for callers and for transports. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort(this.reason);
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    this.abortBy(() => reason);
  }

  /** Aborts with a reason that is made when it is first read: an error's stack takes as long to make as a release to send. */
  abortBy(makeReason: () => unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#makeReason = makeReason;
    const listeners = this.#listeners;
    this.#listeners = undefined;
    listeners?.forEach((listener) => listener());
    this.#controller?.abort(this.reason);
  }

  /** Calls `listener` once, when it aborts; never if it has aborted already. */
  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.#aborted) (this.#listeners ??= new Set()).add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners?.delete(listener);
    if (this.#listeners?.size === 0) this.#listeners = undefined;
  }
}
