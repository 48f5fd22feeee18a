/**
 * Limits of a client: how much may start in a time, by `rates`, and how much may run at once, by `concurrent`. The rates are one item of
 * the table (core/rate.ts); what runs at once holds permits of the semaphore of the same name.
 */
import { optionsAndWork } from "./options.js";
import { brand, isA } from "../../core/brand.js";
import type { CallOptions } from "../../core/api/locks.js";
import { type LimitView, type Rate, type RateWithBurst, costMaxOf, withBurst } from "../../core/rate.js";
import * as LIMITS from "../../core/request-limits.js";
import { elapsedMs, instantOf } from "../../core/time.js";
import { throwIfAborted } from "../ask/fresh-id.js";
import { LimitExceededError, LockError } from "../wire/errors.js";
import { capWaitMs } from "../wire/invocation.js";
import type { Locks } from "./locks.js";
import type { Lease } from "../hold/lease-types.js";
import type { WorkLast } from "./options.js";
import { type Checks, CHECKS, checkOptions, checkResult, checkWork, ms, ofType, refused, whole } from "../wire/checks.js";
import type { ShutOptions } from "./limit-writes.js";
import { type Session, CALL_BUDGET_MS, orNothing } from "./session.js";
import { pause } from "../wire/retry.js";

/** A limit. All users of its name give the same. */
export interface LimiterOptions {
  /** 1 to 4 rates, which a take must fit together: of `{ count: 100, perMs: 60_000 }` at most 100 start in any minute, and 25 of them at once. */
  readonly rates: readonly Rate[];
  /** The most calls of {@link Limiter.run} at once, 1 to 1 000. Each holds a permit with a lease. @default no limit */
  readonly concurrent?: number | undefined;
}

export interface TakeOptions {
  /** The amount that it takes of every rate, at most the smallest burst. @default 1 */
  readonly cost?: number | undefined;
  /** The longest wait until its start, in ms, at most a day; in Lambda at most the remaining time − 1 s. @default 0, which asks once */
  readonly waitMs?: number | undefined;
  /**
   * The longest time for an answer, in ms, 100 to 10 000: then the take throws LockUnavailableError, and may be charged all the same.
   * @default 10 000
   */
  readonly timeoutMs?: number | undefined;
  /** Cancels the wait with an AbortError. What was taken stays taken. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of a call under a limit. */
export interface LimitedOptions extends TakeOptions {
  /**
   * True to shut the limit if the work's error has a `Retry-After` in its headers, or in those of its response or cause: nobody starts before
   * then. @default false
   */
  readonly shutOnRetryAfter?: boolean | undefined;
}

/** A granted take. */
export interface TakeResult {
  /** The time from the call to the start, in ms. */
  readonly waitedMs: number;
  /** The amount that can be taken at once after it, of each rate. */
  readonly remaining: readonly number[];
}

/** A limit by its name. It has no state of its own. */
export interface Limiter {
  readonly name: string;
  /**
   * Takes from every rate, or from none, and resolves when it may start. A start in the future is reserved at once, so waiting costs no
   * further request, and nobody is overtaken. After a lost reply the request is sent again with what is left of the wait, and charged twice:
   * stricter, never looser.
   * @throws LimitExceededError if it can't start within `waitMs`; LockError `limit-mismatch` if others use the name with other rates, and
   *   `invocation-ends` if it could start only after the Lambda invocation; LockUnavailableError if there was no response; AbortError if
   *   `signal` aborts.
   */
  take(options?: TakeOptions): Promise<TakeResult>;
  /**
   * Takes, and runs `work` when it may start. With `concurrent`, it acquires a permit first, and `work` gets its lease. Both waits together
   * take at most `waitMs`.
   * @throws as `take`; LockTimeoutError if no permit became free; LockLostError if the lease was lost while `work` ran, or
   *   before it: it doesn't begin then; the error of `work`.
   */
  run<T>(work: (lease: Lease | undefined) => Promise<T> | T): Promise<T>;
  run<T>(options: LimitedOptions, work: (lease: Lease | undefined) => Promise<T> | T): Promise<T>;
  /**
   * Charges what was used beyond a take, such as the tokens of an answer, and waits for nothing: takes that come later start when it has flowed in.
   * After a lost reply the request is sent again, and charged once more: stricter, never looser. A client that closes sends it too.
   * @param cost the amount of every rate, at most the smallest burst; of 0, nothing is sent
   * @throws LimitExceededError, and nothing is charged, if more than what flows in within a day would be owed, or if there is no room and the
   *   clocks are over 2 s apart; LockError `limit-mismatch` if others use the name with other rates; LockUnavailableError if there was no response
   */
  charge(cost: number, options?: Pick<TakeOptions, "timeoutMs">): Promise<void>;
  /**
   * Shuts the limit for all its users: who takes after it resolved starts in `forMs` at the earliest, as if everything had been taken. Starts that
   * were granted before stay. A limit that is shut for longer stays so; an operator opens it by {@link Limits.reset}.
   * @throws LockError `limit-mismatch` if others use the name with other rates; LockUnavailableError if there was no response
   */
  shut(options: ShutOptions): Promise<void>;
  /** Returns what can be taken at once, of each rate; 0 while others use the name with other rates. @throws LockUnavailableError */
  remaining(): Promise<readonly number[]>;
}

/** The limits of one application. */
export interface Limits {
  /**
   * Makes a limit full, as an operator: the next take may bring other rates. The reason is logged. A process that was refused learns of it
   * within 5 s. @throws LockError `not-found` if nobody used the name
   */
  reset(name: string, options: { readonly reason: string }): Promise<void>;
  /** Lists limits that are not full, in the order of their names, one page at a time. A page can be short without being the last. */
  list(options?: {
    readonly prefix?: string | undefined;
    readonly max?: number | undefined;
    readonly cursor?: string | undefined;
  }): Promise<{ readonly items: readonly LimitView[]; readonly cursor?: string }>;
}

const RATE: Checks<Rate> = {
  count: whole(1, LIMITS.rateCountMax),
  perMs: ms(LIMITS.ratePerMinMs, LIMITS.ratePerMaxMs),
  burst: whole(1, LIMITS.rateCountMax),
};
const LIMITER: Checks<LimiterOptions> = {
  rates(name, value) {
    if (!Array.isArray(value) || value.length < 1 || value.length > LIMITS.ratesMax)
      throw refused(name, value, `it must be 1 to ${LIMITS.ratesMax} rates, such as { count: 100, perMs: 60_000 }`);
    for (const rate of value as readonly Partial<Rate>[]) {
      checkOptions("a rate", rate, RATE);
      if (rate.count === undefined || rate.perMs === undefined) throw refused(name, rate, "each rate has a count and perMs");
    }
  },
  concurrent: whole(1, LIMITS.permitsMax),
};

/** The codes of refusals that are remembered. */
const REFUSALS: ReadonlySet<string> = new Set(["rate-limited", "limit-mismatch"]);

/** The check of a time for an answer. */
export const TIMEOUT = ms(100, CALL_BUDGET_MS);
const TAKE: Checks<Omit<TakeOptions, "cost">> = { waitMs: ms(0, LIMITS.takeWaitMaxMs), timeoutMs: TIMEOUT, signal: CHECKS.signal };

const RUN: Checks<Pick<LimitedOptions, "shutOnRetryAfter">> = { shutOnRetryAfter: ofType("boolean") };

/** Loads what charges and shuts a limit. */
const writing = () => import("./limit-writes.js");

/** @throws InvalidRequestError naming the invalid option of a limiter. */
export function checkLimiter(options: LimiterOptions): void {
  checkOptions("limiter", options, LIMITER, "rates");
}

/**
 * Takes from several limits, one after the other: give the most specific first, such as a user's before everybody's. A later refusal leaves
 * the earlier ones charged, unless this client was refused the same take in the last 5 s. @throws as {@link Limiter.take}
 */
export async function limitAll(limiters: readonly Limiter[], options: TakeOptions = {}): Promise<void> {
  const list: unknown = limiters;
  if (!Array.isArray(list)) throw refused("limiters", limiters, "it must be a list of limiters");
  // A cost that one of them never allows charges none, and neither does a take that this client knows to be refused.
  const named = limiters.filter((limiter) => isA(limiter, NamedLimiter));
  for (const limiter of named) limiter.check("limitAll", options);
  for (const limiter of named) limiter.refuseAsLately(options);
  let { waitMs: leftMs = 0 } = options;
  for (const limiter of limiters) {
    const { waitedMs } = await limiter.take({ ...options, waitMs: leftMs });
    leftMs = Math.max(0, leftMs - Math.ceil(waitedMs));
  }
}

/** Carries out a take of the limit `name` by `ask`, for telemetry around it. */
export type FollowTake = <T>(name: string, ask: () => Promise<T>) => Promise<T>;

/** The parts of a client that a limit needs. */
interface LimiterDeps {
  readonly session: Session;
  /** Returns the client without a scope, under which two calls would share a permit. */
  readonly locks: () => Locks;
  readonly follow: FollowTake | undefined;
}

/** The limit of one name. */
export class NamedLimiter implements Limiter {
  static {
    brand(this, "NamedLimiter");
  }
  readonly name: string;
  readonly #key: string;
  readonly #rates: readonly RateWithBurst[];
  readonly #concurrent: number | undefined;
  readonly #session: Session;
  readonly #locks: () => Locks;
  readonly #follow: FollowTake;

  constructor(name: string, key: string, { rates, concurrent }: LimiterOptions, { session, locks, follow }: LimiterDeps) {
    this.name = name;
    this.#key = key;
    this.#rates = rates.map(withBurst);
    this.#concurrent = concurrent;
    this.#session = session;
    this.#locks = locks;
    this.#follow = follow ?? ((_name, ask) => ask());
  }

  async take(options: TakeOptions = {}): Promise<TakeResult> {
    this.check("take", options);
    return this.#take(options);
  }

  async run<T>(...rest: WorkLast<LimitedOptions, Lease | undefined, T>): Promise<T> {
    const [options, work] = optionsAndWork(rest);
    checkWork("run", "work", work);
    this.check("run", options, RUN);
    const limit = this.#concurrent;
    const { clock } = this.#session.deps;
    const { waitMs = 0, signal } = options;
    const began = instantOf(clock);
    const started = async (lease: Lease | undefined): Promise<T> => {
      await this.#take({ ...options, waitMs: Math.max(0, waitMs - Math.ceil(elapsedMs(began, instantOf(clock)))) });
      lease?.assertHeld();
      try {
        return checkResult(await work(lease));
      } catch (error) {
        if (options.shutOnRetryAfter) await (await writing()).shutAfter(this.#limit, error);
        throw error;
      }
    };
    return limit === undefined ? started(undefined) : this.#locks().withLock(this.name, { limit, waitMs, signal }, started);
  }

  async charge(cost: number, options: Pick<TakeOptions, "timeoutMs"> = {}): Promise<void> {
    checkOptions("charge", options, { timeoutMs: TIMEOUT });
    this.#costFrom(0)("cost", cost);
    if (cost > 0) await (await writing()).charge(this.#limit, cost, options.timeoutMs);
  }

  async shut(options: ShutOptions): Promise<void> {
    await (await writing()).shut(this.#limit, options);
  }

  get #limit() {
    return { session: this.#session, key: this.#key, rates: this.#rates };
  }

  async remaining(): Promise<readonly number[]> {
    const session = this.#session;
    const ask = async (call: CallOptions) => orNothing(await session.deps.api.limit({ key: this.#key }, call));
    const found = await session.read(`limit ${this.#key}`, ask);
    const limit = "limit" in found ? found.limit : undefined;
    if (!limit?.fullInMs) return this.#rates.map(({ burst }) => burst);
    return JSON.stringify(limit.rates) === JSON.stringify(this.#rates) ? limit.remaining : this.#rates.map(() => 0);
  }

  /** @throws InvalidRequestError naming the option of a take that is invalid, or that the rates never allow. */
  check(what: string, options: TakeOptions, more: Checks<object> = {}): void {
    checkOptions(what, options, { cost: this.#costFrom(1), ...TAKE, ...more });
  }

  /** Returns the check of a cost: from `least` to what the rates allow. */
  #costFrom(least: number) {
    return whole(least, costMaxOf(this.#rates), "it takes at most the smallest burst of the rates: a whole number");
  }

  /** @throws LockError as this client was refused the same take lately, if that still holds at the end of the wait */
  refuseAsLately({ cost = 1, waitMs = 0 }: TakeOptions): void {
    const { deps, context } = this.#session;
    const refusal = deps.refusedTakes.refusalOf(this.#key, { rates: this.#rates, cost }, instantOf(deps.clock));
    if (!refusal) return;
    const { code, retryAfterMs } = refusal;
    const what = `take from ${this.#key}`;
    if (code !== "rate-limited")
      throw new LockError(`${what}: others use it with other rates`, { code, definite: true, retry: "later", retryAfterMs });
    if (retryAfterMs > capWaitMs(waitMs, context)) throw new LimitExceededError(`${what}: no room for ${retryAfterMs} ms`, retryAfterMs);
  }

  #take(options: TakeOptions): Promise<TakeResult> {
    return this.#follow(this.name, () => this.#ask(options));
  }

  async #ask({ cost = 1, waitMs: requestedMs = 0, timeoutMs, signal }: TakeOptions): Promise<TakeResult> {
    const session = this.#session;
    const { api, clock, refusedTakes } = session.deps;
    const waitMs = capWaitMs(requestedMs, session.context);
    const what = `take from ${this.#key}`;
    const askedAt = instantOf(clock);
    const passedMs = (): number => elapsedMs(askedAt, instantOf(clock));
    return session.registry.run(signal, async (giveUp) => {
      throwIfAborted(giveUp);
      this.refuseAsLately({ cost, waitMs });
      const request = { key: this.#key, rates: this.#rates, cost };
      // The wait counts from the call, so a request that is sent again asks for what is left of it.
      const ask = (attempt: CallOptions) => api.take({ ...request, waitMs: Math.max(0, waitMs - Math.ceil(passedMs())) }, attempt);
      const { startInMs, remaining } = await session.carryOut(what, ask, { signal: giveUp, mostMs: timeoutMs }).catch((error: unknown) => {
        throwIfAborted(giveUp);
        if (isA(error, LockError) && REFUSALS.has(error.code))
          refusedTakes.add(this.#key, { rates: this.#rates, cost, askedAt, code: error.code, retryAfterMs: error.retryAfterMs ?? 0 });
        throw error;
      });
      if (startInMs > 0) await pause(startInMs, clock, giveUp);
      throwIfAborted(giveUp);
      if (session.context && session.context.getRemainingTimeInMillis() <= 0) {
        // The take is not given back.
        throw new LockError(`${what}: the Lambda invocation has no time left to start`, {
          code: "invocation-ends",
          definite: false,
          retry: "later",
        });
      }
      return { waitedMs: passedMs(), remaining };
    });
  }
}
