/**
 * Sends the heartbeats of a process that are due at about the same time as one request, by a heap and not by a grid of times (decision 098). A single lease beats as if there were no batcher.
 * Each renewal in a batch is a separate attempt with its own answer. A batch is of one caller: where credentials depend on the call chain,
 * as a tenant's token does, those of different callers go apart. A caller that may only use keys of a prefix may not send keys in a body,
 * which its policy can't inspect; its heartbeats are sent one by one.
 */
import type { Held } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import * as LIMITS from "../../core/request-limits.js";
import type { CallOptions, RenewRequest } from "../../core/api/locks.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { Clock, Timer } from "../../core/time.js";
import { Heap } from "../ask/heap.js";
import { LazyAbort, stopSignalOf } from "../wire/lazy-abort.js";
import type { Callers } from "../wire/http.js";
import type { Alarms } from "./alarms.js";

/** The share of its interval by which a heartbeat can be sent early, to join another. */
const EARLY = 0.1;

/** A scheduled heartbeat: the call of `beat` with its argument. */
class Heartbeat<Argument = unknown> implements Timer {
  alarm: Timer | undefined;

  constructor(
    /** The earliest time at which it can join another heartbeat. */
    readonly earliestMs: number,
    readonly beat: (argument: Argument) => void,
    readonly argument: Argument,
    readonly heap: Heap<Heartbeat>,
  ) {}

  cancel(): void {
    this.alarm?.cancel();
    this.heap.delete(this as Heartbeat);
  }
}

interface Gathered {
  readonly request: RenewRequest;
  readonly options: CallOptions;
  readonly resolve: (answer: Held | Refusal) => void;
  readonly reject: (error: unknown) => void;
}

/** The heartbeats of one client. */
export class RenewalBatcher {
  readonly #api: ServiceApi;
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  readonly #callers: Callers | undefined;
  readonly #due = new Heap<Heartbeat>(({ earliestMs }) => earliestMs);
  /** By caller. */
  readonly #gathered = new Map<unknown, Gathered[]>();
  /** True until the service refuses a batch of this caller. */
  #mayGather = true;

  /** @param callers tells callers apart; undefined if the client has only one */
  constructor(api: ServiceApi, clock: Clock, alarms: Alarms, callers?: Callers) {
    this.#api = api;
    this.#clock = clock;
    this.#alarms = alarms;
    this.#callers = callers;
  }

  /** Runs `beat` with `argument` in `delayMs`, or a little earlier together with another heartbeat. */
  set<Argument>(delayMs: number, beat: (argument: Argument) => void, argument: Argument): Timer {
    const earliestMs = this.#clock.monotonicMs() + delayMs * (1 - EARLY);
    const due = new Heartbeat(earliestMs, beat, argument, this.#due) as Heartbeat;
    due.alarm = this.#alarms.set(delayMs, this.#fire, due);
    this.#due.add(due);
    return due;
  }

  /** Sends a renewal together with all others that the same caller requests in the same microtask turn. */
  async renew(request: RenewRequest, options: CallOptions = {}): Promise<Held | Refusal> {
    const caller = this.#callers && (await callerNow(this.#callers));
    return new Promise((resolve, reject) => {
      const gathered = this.#gathered.get(caller) ?? [];
      // In the async context of the first, which is one of this caller.
      if (gathered.length === 0) queueMicrotask(() => this.#send(caller));
      gathered.push({ request, options, resolve, reject });
      this.#gathered.set(caller, gathered);
    });
  }

  readonly #fire = (first: Heartbeat): void => {
    const nowMs = this.#clock.monotonicMs();
    const together: Heartbeat[] = [];
    for (let next: Heartbeat | undefined = first; next && together.length < LIMITS.renewalsMax; next = this.#due.first) {
      if (next !== first && next.earliestMs > nowMs) break;
      next.cancel();
      together.push(next);
    }
    for (const { beat, argument } of together) beat(argument);
  };

  #send(caller: unknown): void {
    const gathered = this.#gathered.get(caller) ?? [];
    this.#gathered.delete(caller);
    while (gathered.length > 0) {
      const group = gathered.splice(0, this.#mayGather ? LIMITS.renewalsMax : 1);
      if (group.length > 1) this.#sendTogether(group);
      else group.forEach((one) => this.#sendAlone(one));
    }
  }

  #sendAlone({ request, options, resolve, reject }: Gathered): void {
    void this.#api.renew(request, options).then(resolve, reject);
  }

  #sendTogether(group: readonly Gathered[]): void {
    const leases = group.map(({ request: { key, leaseId, leaseMs } }) => ({ key, leaseId, leaseMs }));
    void this.#api.renewMany({ leases }, whenAll(group)).then(
      (answer) => {
        if (!answer.ok && answer.code === "forbidden") {
          this.#mayGather = false;
          group.forEach((one) => this.#sendAlone(one));
          return;
        }
        const results = answer.ok ? answer.results : group.map(() => answer);
        results.forEach((result, index) => group[index]?.resolve(result));
      },
      (error: unknown) => group.forEach(({ reject }) => reject(error)),
    );
  }
}

/** Returns the present caller. One whose credentials can't be had is like no other: its own request says why. */
async function callerNow(callers: Callers): Promise<unknown> {
  try {
    return await callers();
  } catch {
    return Symbol("unknown");
  }
}

/** Returns options whose signal aborts when every caller of the group has aborted. */
function whenAll(group: readonly Gathered[]): CallOptions {
  const controller = new LazyAbort();
  let waiting = group.length;
  const leave = (): void => void (--waiting === 0 && controller.abort());
  for (const { options } of group) {
    const signal = stopSignalOf(options);
    if (signal?.aborted) leave();
    else signal?.addEventListener("abort", leave, { once: true });
  }
  return controller;
}
