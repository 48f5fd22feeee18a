/**
 * The spans and metrics of acquires, holds, runs and takes. A hold is followed by its signal, which aborts when it ends, and tells why. No leaseId,
 * scope, handle or message of an error gets into an attribute, and a key only as `keyAttribute` reduces it.
 */
import { isA } from "../core/brand.js";
import type { Attributes, Context, MeterProvider, Span, Tracer, TracerProvider } from "@opentelemetry/api";
import { context, metrics, SpanStatusCode, trace } from "@opentelemetry/api";
import { VERSION } from "../core/version.js";
import type { Clock } from "../core/time.js";
import { type LockLostError, LimitExceededError, LockTimeoutError } from "../client/wire/errors.js";
import type { SetKey } from "../client/hold/lease-set.js";
import { type Checks, checkOptions, ofType } from "../client/wire/checks.js";
import { type Instruments, endReason, failure, instrumentsOf } from "./instruments.js";

/** Options of {@link traced}. */
export interface TracedOptions {
  /**
   * Returns the group of a key, which becomes the attribute `holdfast.key.group`; undefined for none. It takes the key as the caller names
   * it, without the client's prefix. There should be few groups: each is a time series of every metric. @default no attribute
   */
  readonly keyAttribute?: ((key: string) => string | undefined) | undefined;
  /** @default the global one */
  readonly tracerProvider?: TracerProvider | undefined;
  /** @default the global one, as it is set when the client is wrapped */
  readonly meterProvider?: MeterProvider | undefined;
}

const OPTIONS: Checks<TracedOptions> = {
  keyAttribute: ofType("function"),
  tracerProvider: ofType("object"),
  meterProvider: ofType("object"),
};

/** The keys of an operation and their mode, as the caller gave them: nothing of it is checked yet. */
export interface Use {
  readonly keys: readonly SetKey[];
  readonly mode?: "exclusive" | "shared" | undefined;
  /** True if the call waits for the keys. */
  readonly waits: boolean;
}

/** A hold that is followed: a lock, a set or a run. */
interface Followed {
  readonly span: Span;
  readonly attributes: Attributes;
}

interface Held {
  readonly signal: AbortSignal;
  readonly fencingToken?: number;
}

/** The reasons for which a holder ends its own hold. */
const ENDED_ITSELF: ReadonlySet<string> = new Set<LockLostError["reason"]>(["released", "transferred", "closed"]);

/** The telemetry of a client and its views. */
export class Telemetry {
  readonly #tracer: Tracer;
  readonly #instruments: Instruments;
  readonly #keyAttribute: TracedOptions["keyAttribute"];
  readonly #transport: string;
  readonly #clock: Clock;
  /** The holds by their signals, which a lease has in common with its set or run. */
  readonly #holds = new WeakMap<AbortSignal, Followed>();

  constructor(options: TracedOptions, transport: string, clock: Clock) {
    checkOptions("traced", options, OPTIONS);
    this.#tracer = (options.tracerProvider ?? trace).getTracer("holdfast", VERSION);
    this.#instruments = instrumentsOf((options.meterProvider ?? metrics).getMeter("holdfast", VERSION));
    this.#keyAttribute = options.keyAttribute;
    this.#transport = transport;
    this.#clock = clock;
  }

  /** Follows an acquire, which `ask` makes. The requests of it are below its span. */
  async acquire<T extends Held | null>(use: Use, ask: () => Promise<T>): Promise<T> {
    const acquiring = this.#acquiring(use);
    try {
      const held = await context.with(acquiring.within, ask);
      acquiring.end(held ? "acquired" : "held");
      if (held) this.#follow(held, acquiring.attributes);
      return held;
    } catch (error) {
      acquiring.failed(error);
      throw error;
    }
  }

  /**
   * Follows an acquire whose work runs within `ask`. The work runs below the span of its hold; without a hold, if the locks can't be reached
   * and the caller proceeds, below no span of ours.
   */
  async acquireAround<H extends Held, T>(
    use: Use,
    work: (held: H) => Promise<T> | T,
    ask: (work: (held: H | undefined) => Promise<T>) => Promise<T>,
  ): Promise<T> {
    const outside = context.active();
    const acquiring = this.#acquiring(use);
    let isOver = false as boolean;
    const over = (outcome: string): void => {
      if (!isOver) acquiring.end(outcome);
      isOver = true;
    };
    try {
      const result = await context.with(acquiring.within, () =>
        ask(async (held) => {
          over(held ? "acquired" : "unavailable");
          return held ? this.#around(held, acquiring.attributes, outside, work) : context.with(outside, work as (none?: H) => T);
        }),
      );
      over("unavailable"); // The call was skipped.
      return result;
    } catch (error) {
      if (!isOver) acquiring.failed(error);
      throw error;
    }
  }

  /** Follows a hold that was granted without a call of its own, as a leader's, and runs `work` below its span. */
  around<H extends Held, T>(use: Use, held: H, work: (held: H) => Promise<T> | T): Promise<T> {
    return this.#around(held, this.#attributesOf(use), context.active(), work);
  }

  /** Follows a run, which `ask` makes. Its work runs below its span. */
  async run<R extends Held & { readonly attempt: number; readonly takeover: boolean }, T, A extends { readonly replayed: boolean }>(
    key: string,
    work: (run: R) => Promise<T> | T,
    ask: (work: (run: R | undefined) => Promise<T> | T) => Promise<(A & { readonly attempt: number }) | undefined>,
  ): Promise<A & { readonly attempt: number }> {
    const attributes = this.#attributesOf({ keys: [key], waits: true });
    const span = this.#tracer.startSpan("holdfast.run", { attributes: { ...attributes, "holdfast.transport": this.#transport } });
    const within = trace.setSpan(context.active(), span);
    const elapsedSec = this.#stopwatch();
    const end = (outcome: string, more: Attributes = {}): void => {
      const ended = { "holdfast.run.outcome": outcome, ...more };
      this.#instruments.runSec.record(elapsedSec(), { ...attributes, ...ended });
      span.setAttributes(ended).end();
    };
    try {
      const result = await context.with(within, () =>
        ask((run) => {
          if (!run) return context.with(within, work as (none?: R) => T);
          span.setAttributes({ "holdfast.run.attempt": run.attempt, "holdfast.run.takeover": run.takeover });
          this.#untilEnd(run, span, { ...attributes, "holdfast.kind": "run" }, () => undefined);
          return context.with(within, work, undefined, run);
        }),
      );
      const isRun = result !== undefined && result.attempt > 0;
      if (isRun) span.setAttribute("holdfast.run.attempt", result.attempt);
      end(!isRun ? "unavailable" : result.replayed ? "replayed" : "executed");
      return result as A & { readonly attempt: number }; // Undefined only where the caller's options allow it.
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      end(outcomeOf(error), failure(error));
      throw error;
    }
  }

  /** Follows a take from the limit `name`, which `ask` makes, until it may start or is refused. */
  async take<T>(name: string, ask: () => Promise<T>): Promise<T> {
    const attributes = this.#attributesOf({ keys: [name], waits: true });
    const span = this.#tracer.startSpan("holdfast.take", { attributes: { ...attributes, "holdfast.transport": this.#transport } });
    const elapsedSec = this.#stopwatch();
    const end = (outcome: string, more: Attributes = {}): void => {
      const ended = { "holdfast.take.outcome": outcome, ...more };
      this.#instruments.takeSec.record(elapsedSec(), { ...attributes, ...ended });
      span.setAttributes(ended).end();
    };
    try {
      const taken = await context.with(trace.setSpan(context.active(), span), ask);
      end("taken");
      return taken;
    } catch (error) {
      const outcome = isA(error, LimitExceededError) ? "limited" : outcomeOf(error);
      if (outcome === "failed") span.setStatus({ code: SpanStatusCode.ERROR });
      end(outcome, failure(error));
      throw error;
    }
  }

  beat(signal: AbortSignal, beat: Promise<void>): void {
    const followed = this.#holds.get(signal);
    if (!followed) return;
    const elapsedSec = this.#stopwatch();
    const { renewSec } = this.#instruments;
    beat.then(
      () => {
        renewSec.record(elapsedSec(), followed.attributes);
        followed.span.addEvent("renewed");
      },
      (error: unknown) => renewSec.record(elapsedSec(), { ...followed.attributes, ...failure(error) }),
    );
  }

  #acquiring(use: Use) {
    const { acquireSec, activeWaiters } = this.#instruments;
    const attributes = this.#attributesOf(use);
    const span = this.#tracer.startSpan("holdfast.acquire", { attributes: { ...attributes, "holdfast.transport": this.#transport } });
    const elapsedSec = this.#stopwatch();
    if (use.waits) activeWaiters.add(1, attributes);
    const end = (outcome: string, more: Attributes = {}): void => {
      if (use.waits) activeWaiters.add(-1, attributes);
      const ended = { "holdfast.acquire.outcome": outcome, ...more };
      acquireSec.record(elapsedSec(), { ...attributes, ...ended });
      span.setAttributes(ended).end();
    };
    const failed = (error: unknown): void => {
      const outcome = outcomeOf(error);
      if (outcome !== "aborted") span.setStatus({ code: SpanStatusCode.ERROR });
      end(outcome, failure(error));
    };
    return { attributes, within: trace.setSpan(context.active(), span), end, failed };
  }

  async #around<H extends Held, T>(held: H, attributes: Attributes, outside: Context, work: (held: H) => Promise<T> | T): Promise<T> {
    const { span, workEnded } = this.#follow(held, attributes, outside, true);
    try {
      return await context.with(trace.setSpan(outside, span), work, undefined, held);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR }).setAttributes(failure(error));
      throw error;
    } finally {
      workEnded();
    }
  }

  /** Follows a lock or a set until it ends. The span of one that has work lasts for the work too. */
  #follow(held: Held, attributes: Attributes, outside = context.active(), hasWork = false) {
    const { holdSec, activeLocks } = this.#instruments;
    const { fencingToken } = held;
    const more = { "holdfast.transport": this.#transport, ...(fencingToken !== undefined && { "holdfast.fencing_token": fencingToken }) };
    const span = this.#tracer.startSpan("holdfast.lock", { attributes: { ...attributes, ...more } }, outside);
    const elapsedSec = this.#stopwatch();
    let lasts = hasWork ? 2 : 1;
    const oneEnded = (): void => void (--lasts === 0 && span.end());
    activeLocks.add(1, attributes);
    this.#untilEnd(held, span, { ...attributes, "holdfast.kind": "lock" }, (lost) => {
      activeLocks.add(-1, attributes);
      holdSec.record(elapsedSec(), { ...attributes, ...lost });
      oneEnded();
    });
    return { span, workEnded: oneEnded };
  }

  /** Calls `onEnd` when the hold ends, with the attributes of its loss, if it was lost. */
  #untilEnd({ signal }: Held, span: Span, attributes: Attributes, onEnd: (lost: Attributes) => void): void {
    this.#holds.set(signal, { span, attributes });
    const ended = (): void => {
      const reason = endReason(signal.reason);
      if (ENDED_ITSELF.has(reason)) return onEnd({});
      const lost = { "holdfast.lost.reason": reason };
      this.#instruments.lostLocks.add(1, { ...attributes, ...lost });
      span.setStatus({ code: SpanStatusCode.ERROR }).setAttributes(lost).addEvent("lost", lost);
      onEnd(lost);
    };
    if (signal.aborted) ended();
    else signal.addEventListener("abort", ended, { once: true });
  }

  #attributesOf({ keys, mode }: Use): Attributes {
    const all = (Array.isArray(keys) ? keys : []) as readonly SetKey[];
    const groups = [...new Set(all.map((key) => this.#groupOf(key)).filter((group) => typeof group === "string"))].sort();
    return { ...(groups.length > 0 && { "holdfast.key.group": groups.join(",") }), ...(mode !== undefined && { "holdfast.mode": mode }) };
  }

  /** Returns the key's group. An error of the user's function doesn't fail the work. */
  #groupOf(one: SetKey): string | undefined {
    try {
      return this.#keyAttribute?.(typeof one === "string" ? one : one.key);
    } catch {
      return undefined;
    }
  }

  #stopwatch(): () => number {
    const beganMs = this.#clock.monotonicMs();
    return () => (this.#clock.monotonicMs() - beganMs) / 1000;
  }
}

function outcomeOf(error: unknown): string {
  if (isA(error, LockTimeoutError)) return "timeout";
  return (error as Partial<Error> | undefined)?.name === "AbortError" ? "aborted" : "failed";
}
