/**
 * Sends the heartbeats of a process that are due at about the same time as one request. A single lease beats as if there were no batcher.
 * Each renewal in a batch is a separate attempt with its own answer. A caller that may only use keys of a prefix may not send keys in a
 * body, which its policy can't inspect; its heartbeats are sent one by one.
 */
import type { Held } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import { LIMITS } from "../../core/limits.js";
import type { CallOptions, RenewRequest } from "../../core/api/locks.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { Clock, Timer } from "../../core/time.js";

/** The share of its interval by which a heartbeat can be sent early, to join another. */
const EARLY = 0.1;

interface Due {
  readonly dueMs: number;
  /** The earliest time at which it can join another heartbeat. */
  readonly earliestMs: number;
  readonly beat: () => void;
  readonly timer: Timer;
}

interface Gathered {
  readonly request: RenewRequest;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (answer: Held | Refusal) => void;
  readonly reject: (error: unknown) => void;
}

/** The heartbeats of one client. */
export class RenewalBatcher {
  readonly #api: ServiceApi;
  readonly #clock: Clock;
  readonly #due = new Set<Due>();
  #gathered: Gathered[] = [];
  /** True until the service refuses a batch of this caller. */
  #mayGather = true;

  constructor(api: ServiceApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /** Runs `beat` in `delayMs`, or a little earlier together with another heartbeat. */
  schedule(delayMs: number, beat: () => void): Timer {
    const dueMs = this.#clock.monotonicMs() + delayMs;
    const due: Due = { dueMs, earliestMs: dueMs - delayMs * EARLY, beat, timer: this.#clock.inBackground(delayMs, () => this.#fire(due)) };
    this.#due.add(due);
    return { cancel: () => void (due.timer.cancel(), this.#due.delete(due)) };
  }

  /** Sends a renewal together with all others requested in the same microtask turn. */
  renew(request: RenewRequest, { signal }: CallOptions = {}): Promise<Held | Refusal> {
    return new Promise((resolve, reject) => {
      if (this.#gathered.length === 0) queueMicrotask(() => this.#send());
      this.#gathered.push({ request, signal, resolve, reject });
    });
  }

  #fire(first: Due): void {
    this.#due.delete(first);
    const nowMs = this.#clock.monotonicMs();
    const together = [...this.#due].filter(({ earliestMs }) => earliestMs <= nowMs).slice(0, LIMITS.renewalsMax - 1);
    for (const due of together) {
      due.timer.cancel();
      this.#due.delete(due);
    }
    first.beat();
    for (const { beat } of together) beat();
  }

  #send(): void {
    const group = this.#gathered.splice(0, this.#mayGather ? LIMITS.renewalsMax : 1);
    if (this.#gathered.length > 0) this.#send();
    if (group.length > 1) this.#sendTogether(group);
    else group.forEach((one) => this.#sendAlone(one));
  }

  #sendAlone({ request, signal, resolve, reject }: Gathered): void {
    void this.#api.renew(request, signal && { signal }).then(resolve, reject);
  }

  #sendTogether(group: readonly Gathered[]): void {
    const leases = group.map(({ request }) => request);
    void this.#api.renewMany({ leases }, { signal: whenAll(group) }).then(
      (answer) => {
        if (!answer.ok && answer.code === "forbidden") {
          this.#mayGather = false;
          group.forEach((one) => this.#sendAlone(one));
          return;
        }
        for (const [index, { resolve, reject }] of group.entries()) {
          const result = answer.ok ? answer.results[index] : answer;
          if (result) resolve(result);
          else reject(new Error("renewMany answered fewer leases than it was asked for"));
        }
      },
      (error: unknown) => group.forEach(({ reject }) => reject(error)),
    );
  }
}

/** Returns a signal that aborts when every caller of the group has aborted. */
function whenAll(group: readonly Gathered[]): AbortSignal {
  const given = new AbortController();
  let waiting = group.length;
  const leave = (): void => void (--waiting === 0 && given.abort());
  for (const { signal } of group) {
    if (signal?.aborted) leave();
    else signal?.addEventListener("abort", leave, { once: true });
  }
  return given.signal;
}
