/**
 * The lease of an execution: what a lock and a run of it have in common. The lease belongs to the execution, so each invocation that replays
 * it has the same lease id.
 *
 * Between two steps nobody renews the lease: heartbeats that outlive a step would keep the key of an execution that was stopped, as long as
 * its sandbox is warm. So each step first confirms the lease. A step that the history has runs nothing, and needs no lease. A tied lease is renewed
 * by the service's agent.
 */
import type { DurableContext, Duration, StepConfig } from "@aws/durable-execution-sdk-js";
import { isA } from "../core/brand.js";
import { errorOf, InvalidRequestError, LockLostError } from "../client/wire/errors.js";
import type { HeldLease } from "../client/hold/lease.js";
import type { Lease } from "../client/hold/lease-types.js";
import { refused } from "../client/wire/checks.js";
import { type Session, CALL_BUDGET_MS } from "../client/calls/session.js";
import { type Answered, boundsFor, isUndecided, retry } from "../client/wire/retry.js";
import { type KeyUse, runHolding } from "../client/calls/surrounding.js";
import type { CallOptions, Kind, LeaseRef } from "../core/api/locks.js";
import type { LeaseState } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import type { LeaseId } from "../core/lease-id.js";
import * as LIMITS from "../core/request-limits.js";

/** The lease, as the body of a step has it. */
export type StepLease = Pick<Lease, "key" | "fencingToken" | "fenceFloor" | "signal" | "isHeld" | "assertHeld" | "remainingMs">;

/** The steps and waits of an execution under its lease. */
export interface DurableSteps {
  /**
   * Runs `body` as a step of the execution, under the lease: it confirms the lease, keeps it alive until `body` settles, and hands it out. A
   * step that the history has already returns its result, and runs nothing.
   * @throws LockLostError if the lease ended before the step or during it, whatever `body` returned, and the step isn't tried again; the
   *   SDK's StepError if `body` failed in all attempts, or threw a FinalError
   */
  step<T>(name: string, body: (lease: StepLease) => Promise<T>, config?: StepConfig<T>): Promise<T>;
  /**
   * Suspends the execution and keeps the lease: a step first makes it longer than `duration` by `leaseMs`, and by a minute at least. At most a
   * day less a minute; the lease is a day then. With a tied lease it is a wait alone, of any length.
   * @throws LockLostError if the lease has ended; InvalidRequestError for a longer time
   */
  wait(name: string, duration: Duration): Promise<void>;
}

/** The operations of the SDK's context that a lease uses. */
export type Context = Pick<DurableContext, "step" | "wait">;
/** The key of a lease, how it is held, the lease's length, and if the service's agent renews it. */
export type LeaseSettings = KeyUse & { readonly kind: Kind; readonly leaseMs: number; readonly isTied?: boolean };
/** A refusal because the lease's id is not new enough. */
export interface Stale {
  readonly stale: Refusal;
}

/** The length of a lease in ms, unless the caller gives one. */
export const LEASE_MS = 180_000;
/** The shortest time that a lease outlasts a wait: Lambda starts the function again, and it begins its next step. */
const RESUME_MS = 60_000;
const NEW_ID_TRIES = 5;
/** The attempts of a step, and the pause before the second, which doubles up to the longest, with full jitter: as the SDK's own. */
const RETRIES = { attempts: 6, firstSeconds: 5, longestSeconds: 60 };

/** The name of an error for the loss of a step's own lease. The history keeps an error's name and message, so no other error has it. */
const LEASE_LOST = "StepLeaseLost";
/** The names of errors after which a step isn't tried again. */
const UNREPEATED: ReadonlySet<string> = new Set(["FinalError", LEASE_LOST]);

/** @throws `error`, under the name {@link LEASE_LOST} if it is a loss */
function throwOwn(error: unknown): never {
  throw isA(error, LockLostError) ? Object.assign(new Error(error.message), { name: LEASE_LOST }) : error;
}

/** @throws InvalidRequestError if the leases of this client end with an invocation */
export function checkLasting({ context }: Session): void {
  if (!context) return;
  const rule = "must be the client itself: a view for one invocation ends its leases with it, and this one lasts";
  throw new InvalidRequestError(`locks: ${rule}`, "locks");
}

/** The lease of an execution, in one of its invocations. */
export class ExecutionLease<C extends Context> {
  readonly ctx: C;
  readonly session: Session;
  readonly key: string;
  readonly #settings: LeaseSettings;
  #leaseId: LeaseId = "";
  /** The lease, as each step that runs in this process has it. */
  readonly #inSteps = new Set<HeldLease>();
  #isOver = false;

  constructor(ctx: C, session: Session, settings: LeaseSettings) {
    this.ctx = ctx;
    this.session = session;
    this.key = settings.key;
    this.#settings = settings;
  }

  /** The lease of the last request for the key. */
  get ref(): LeaseRef {
    return { kind: this.#settings.kind, key: this.key, leaseId: this.#leaseId };
  }

  /** Its steps and waits, as the work has them. */
  get steps(): DurableSteps {
    return { step: (name, body, config) => this.#step(name, body, config), wait: (name, duration) => this.#wait(name, duration) };
  }

  /**
   * Asks for the key under a new id, and again if that is not new enough. The id is in the history before it is used, so a crash leaves no
   * lease behind.
   * @throws the error of `ask`: nothing is held then
   */
  async asked<A extends object>(ask: () => Promise<A | Stale>): Promise<A> {
    const { ctx, key, session } = this;
    let aboveMs = 0;
    for (let tries = 1; ; tries++) {
      this.#leaseId = await ctx.step(`${key}: lease id`, async () => session.deps.ids.next(aboveMs));
      try {
        const asked = await ask();
        if (!("stale" in asked)) return asked;
        if (tries === NEW_ID_TRIES) throw errorOf(asked.stale, key);
        // An invocation that crashed got the key, or a place, with other options than this one's. No one else ends that.
        if (asked.stale.code === "lease-reused") await this.end("give up");
        aboveMs = asked.stale.leaseIdAboveMs ?? 0;
      } catch (error) {
        await this.end("give up");
        throw error;
      }
    }
  }

  /**
   * Sends a request in a step. Returns the answer, also a refusal that is final or has the code `decided`.
   * @param untilDecided true for an outcome: a refusal that is not the service's is not final
   * @throws LockError if a later attempt of the step may get another answer, and there is one
   */
  async send<A extends { readonly ok: true }>(
    request: (options: CallOptions) => Promise<A | Refusal>,
    attempt: number,
    { decided, untilDecided = false }: { readonly decided?: Refusal["code"]; readonly untilDecided?: boolean } = {},
  ): Promise<A | Refusal> {
    const { answer } = await this.retried(request, untilDecided);
    if (answer.ok || answer.code === decided) return answer;
    if (answer.retry === "new-lease") this.session.deps.ids.correct(answer);
    else if ((answer.retry !== "never" || (untilDecided && isUndecided(answer))) && attempt < RETRIES.attempts)
      throw errorOf(answer, this.key);
    return answer;
  }

  async #step<T>(name: string, body: (lease: StepLease) => Promise<T>, config: StepConfig<T> = {}): Promise<T> {
    const { retryStrategy = (_error: Error, attempt: number) => this.#retryOf(attempt) } = config;
    try {
      return await this.ctx.step(name, () => this.#underLease(body), {
        ...config,
        retryStrategy: (error, attempt) => (UNREPEATED.has(error.name) ? { shouldRetry: false } : retryStrategy(error, attempt)),
      });
    } catch (error) {
      const { cause } = error as { readonly cause?: Error };
      throw cause?.name === LEASE_LOST ? new LockLostError(cause.message, "expired", { key: this.key, cause: error }) : error;
    }
  }

  /** Runs `body` while the lease is kept alive in this process. */
  async #underLease<T>(body: (lease: StepLease) => Promise<T>): Promise<T> {
    const session = this.session;
    const { kind, leaseMs, isTied: _tied, ...use } = this.#settings;
    const { answer, ...when } = await this.#renewed(leaseMs);
    if (!answer.ok) throwOwn(errorOf(answer, use.key, { key: use.key }));
    // A wait has made the lease long for once. Heartbeats renew by its own length, or by what is left.
    const view = { ...answer.lease, leaseMs: Math.min(answer.lease.leaseMs, Math.max(leaseMs, answer.lease.remainingMs)) };
    const lease = await session.holds.adopt({ answer: { ...answer, lease: view }, ...when }, {}, { kind }).catch(throwOwn);
    const { mode, permits } = lease;
    const held = { uses: [{ ...use, kind, mode, permits }], of: session.deps.api, hold: lease };
    this.#inSteps.add(lease);
    try {
      if (this.#isOver) lease.abandon("released");
      lease.assertHeld();
      const these = kind === "locks" ? { ...held, lease } : held;
      const result = await session.registry.during(lease, false, () => runHolding(these, () => body(lease)));
      lease.assertHeld();
      return result;
    } catch (error) {
      if (lease.isHeld()) throw error;
      throwOwn(lease.ending.reason);
    } finally {
      lease.abandon();
      this.#inSteps.delete(lease);
    }
  }

  /**
   * Stops treating the lease as held, also in steps that still run because the work didn't wait for them. Comes before each request by which
   * another may get the key.
   */
  leave(): void {
    this.#isOver = true;
    for (const lease of this.#inSteps) lease.abandon("released");
  }

  async #wait(name: string, duration: Duration): Promise<void> {
    if (this.#settings.isTied) return this.ctx.wait(name, duration);
    const { days = 0, hours = 0, minutes = 0, seconds = 0 }: Partial<Record<"days" | "hours" | "minutes" | "seconds", number>> = duration;
    const waitMs = Math.ceil((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000);
    const mostMs = LIMITS.leaseMaxMs - RESUME_MS;
    if (!(waitMs >= 0 && waitMs <= mostMs)) throw refused("duration", waitMs, `it is 0 to ${mostMs} ms`);
    // The pause after the wait may be as long as any other.
    const leaseMs = Math.min(LIMITS.leaseMaxMs, waitMs + Math.max(RESUME_MS, this.#settings.leaseMs));
    const lost = await this.ctx.step(`${name}: lengthen the lease`, async () => {
      const { answer } = await this.#renewed(leaseMs);
      if (answer.ok) return null;
      if (answer.code !== "lease-lost") throw errorOf(answer, this.key);
      return answer;
    });
    if (lost) throw errorOf(lost, this.key, { key: this.key });
    await this.ctx.wait(name, duration);
  }

  /**
   * Ends the lease, whatever became of it. Returns its last state; undefined if that got no response, or is forbidden: the lease then ends
   * by itself.
   */
  async end(what: "release" | "give up"): Promise<LeaseState | undefined> {
    const { key } = this;
    if (what === "release") this.leave();
    try {
      return await this.ctx.step(`${key}: ${what}`, async () => {
        const { answer } = await this.retried((options) => this.session.deps.api.release(this.ref, options), what === "release");
        if (answer.ok) return answer.state;
        if (answer.retry === "never") return undefined;
        throw errorOf(answer, `${what} ${key}`);
      });
    } catch {
      return undefined;
    }
  }

  #renewed(leaseMs: number) {
    return this.retried((options) => this.session.deps.api.renew({ ...this.ref, leaseMs }, options));
  }

  /** Sends a request until it is answered, for as long as a call may take. */
  retried<A extends { readonly ok: true }>(
    attempt: (options: CallOptions) => Promise<A | Refusal>,
    untilDecided = false,
  ): Promise<Answered<A | Refusal>> {
    return retry(attempt, { ...boundsFor(this.#settings.leaseMs, CALL_BUDGET_MS), untilDecided }, this.session.deps);
  }

  #retryOf(attempt: number) {
    const seconds = Math.min(RETRIES.longestSeconds, RETRIES.firstSeconds * 2 ** (attempt - 1));
    return { shouldRetry: attempt < RETRIES.attempts, delay: { seconds: Math.max(1, Math.round(seconds * this.session.deps.random())) } };
  }
}
