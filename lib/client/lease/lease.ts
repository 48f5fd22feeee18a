/**
 * A lease as its holder uses it. Whether it is held is computed at every call from what the service
 * last answered and both clocks, and once it is not, it never is again. Belief ends, and the signal
 * fires, before anything is sent that lets somebody else have the key.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { Held, LeaseState, LeaseView, Recorded, Waiting } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import { refuse } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions, Kind, LeaseRef } from "../../core/api/locks.js";
import type { AcquireDeps } from "../acquire/acquire.js";
import { cancel } from "../acquire/acquire.js";
import type { Meta, Mode } from "../../core/record.js";
import type { OutcomeSaid } from "../../core/api/runs.js";
import type { Instant } from "../../core/time.js";
import { backgroundClock } from "../../core/time.js";
import type { LeaseDeadline } from "./deadline.js";
import { deadlineFrom, deadlineLeftMs } from "./deadline.js";
import type { RetryBounds, Runtime } from "../transport/retry.js";
import { boundsFor, retry, pause } from "../transport/retry.js";
import { errorOf, LockLostError } from "../errors.js";
import { transferHold } from "../acquire/transfer.js";
import { toHandle } from "./detached-lease.js";
import { capBudgetMs, capWaitMs } from "../invocation.js";
import type { Handoff } from "../acquire/local-queue.js";
import { checkLease, checkMs, checkNames } from "../options.js";
import { DEFAULTS, LIMITS } from "../../core/limits.js";
import { Wait } from "../acquire/wait.js";

/** `unknown`: still held by the clock, but the last renewal was not answered. */
export type State = "held" | "unknown" | "lost" | "released";

/**
 * A hold on a key. Release it, or let `await using` do so: that throws LockLostError unless it was held to the end, as
 * `withLock` does. Where the block threw as well, JavaScript makes a SuppressedError of both.
 */
export interface Lease extends AsyncDisposable {
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly owner: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly holdCount: number;
  /** Strictly increases with every grant of the key: hand it to what you write to (see `fencedWrite`). */
  readonly fencingToken: number;
  /**
   * What a resource compares for this lease: its token, or of a shared lease or a permit the token of the last
   * exclusive grant, since those who hold together would fence each other off.
   */
  readonly fenceFloor: number;
  readonly state: State;
  /** Aborts with {@link LockLostError} before anyone else can be granted the key, and when it is released. */
  readonly signal: AbortSignal;
  /** For how long the lease may still be believed without a renewal, in ms; 0 when it is not held. */
  remainingMs(): number;
  /** Whether the key is held, computed now. */
  isHeld(): boolean;
  /** @throws LockLostError when the key is not held. Call it before each side effect. */
  assertHeld(): void;
  /**
   * Extends the lease now; never shortens it. Heartbeats do so by themselves.
   * @throws LockLostError when it is over; LockUnavailableError when nobody answered before the deadline.
   */
  renew(options?: { readonly leaseMs?: number; readonly meta?: Meta }): Promise<void>;
  /**
   * Of a shared lease: becomes the writer as soon as it is the only reader, with a new token.
   * @throws LockTimeoutError when other readers still hold after `waitMs` (default 30 s; 0 asks once); LockError
   *   `upgrade-conflict` when another reader asked first: release this lease, or both wait for ever; LockLostError.
   */
  upgrade(options?: { readonly waitMs?: number }): Promise<void>;
  /** Of an exclusive lease: lets other readers in, with a new token. @throws LockLostError when it is over. */
  downgrade(): Promise<void>;
  /**
   * Frees the key. Safe to repeat; tells how the hold ended: `lost` means that somebody was granted the
   * key before, so what it guarded must be rolled back.
   * @throws LockUnavailableError when nobody answered: the key is free after its lease at the latest.
   */
  release(): Promise<LeaseState>;
  /**
   * Hands the hold to whoever attaches with the returned handle, in `leaseMs` at the latest; this side
   * stops. The handle is a secret, and works once. @default leaseMs: the lease's own
   */
  detach(options?: { readonly leaseMs?: number }): Promise<string>;
}

/** What a lease needs beside its service. */
export interface LeaseDeps extends AcquireDeps {
  /** Told when the lease stops being one, whatever the way. */
  readonly onEnd: (lease: HeldLease) => void;
  /** Releases the lease; rejects with LockLostError unless it was held until then. */
  readonly endHold: (lease: HeldLease) => Promise<void>;
  /** What the lease is of. */
  readonly kind: Kind;
  /** Who of this process has the key after it, if anybody. */
  readonly handoff?: Handoff | undefined;
}

/** A release or hand-over is worth this long; after it, the lease's own end frees the key. */
const RELEASE_BUDGET_MS = 5000;
/** What says more than that the lease is over is worth longer. */
const COMPLETE_BUDGET_MS = 10_000;
const COMPLETE_ATTEMPT_MS = 3000;
/** How often a reader that would be the writer asks whether the others are gone. */
const UPGRADE_POLL_MS = 200;

/** A lease that was granted waits for nothing: one that is in the queue is another's, by the same id. */
function stillMine(answer: Held | Waiting | Refusal): Held | Refusal {
  return answer.ok && "state" in answer ? refuse("lease-lost", { reason: "never" }) : answer;
}

/** The lease behind the interface; the keep-alive drives it. */
export class HeldLease implements Lease {
  readonly #deps: LeaseDeps;
  readonly #lost = new AbortController();
  #view: LeaseView;
  #deadline: LeaseDeadline;
  #ambiguous = false;
  /** Checkpoints saved so far. */
  #saved = 0;
  #over: "lost" | "released" | undefined;
  #released: Promise<LeaseState> | undefined;

  constructor(view: LeaseView, sentAt: Instant, deps: LeaseDeps) {
    this.#deps = deps;
    this.#view = view;
    this.#deadline = deadlineFrom(view, sentAt);
  }

  get kind(): Kind {
    return this.#deps.kind;
  }
  get key(): string {
    return this.#view.key;
  }
  get leaseId(): LeaseId {
    return this.#view.leaseId;
  }
  get owner(): string {
    return this.#view.owner;
  }
  get mode(): Mode {
    return this.#view.mode;
  }
  get permits(): number {
    return this.#view.permits;
  }
  get holdCount(): number {
    return this.#view.holdCount;
  }
  get fencingToken(): number {
    return this.#view.fencingToken;
  }
  get fenceFloor(): number {
    return this.#view.fenceFloor ?? this.#view.fencingToken;
  }
  get leaseMs(): number {
    return this.#view.leaseMs;
  }
  get renewAfterMs(): number {
    return this.#view.renewAfterMs;
  }
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get state(): State {
    if (this.isHeld()) return this.#ambiguous ? "unknown" : "held";
    return this.#over ?? "lost";
  }

  remainingMs(): number {
    return this.isHeld() ? Math.max(0, deadlineLeftMs(this.#deadline, this.#deps.clock)) : 0;
  }

  isHeld(): boolean {
    if (this.#over) return false;
    if (deadlineLeftMs(this.#deadline, this.#deps.clock) > 0) return true;
    this.lose(new LockLostError(`${this.key}: no renewal landed before the lease's deadline`, "deadline"));
    return false;
  }

  assertHeld(): void {
    if (!this.isHeld()) throw this.#lossError();
  }

  async renew(options: { readonly leaseMs?: number; readonly meta?: Meta } = {}): Promise<void> {
    checkNames("renew", options, ["leaseMs", "meta"]);
    checkLease(options);
    this.assertHeld();
    const request = { ...this.#ref, leaseMs: options.leaseMs ?? this.leaseMs, meta: options.meta };
    await this.#confirm((attempt) => this.#deps.api.renew(request, attempt), this.#deps);
  }

  /** A renewal that saves how far the work of a run got. */
  async save(checkpoint: unknown): Promise<void> {
    this.assertHeld();
    const request = { ...this.#ref, leaseMs: this.leaseMs, checkpoint, sequence: ++this.#saved };
    await this.#confirm((attempt) => this.#deps.api.renew(request, attempt), this.#deps);
  }

  async upgrade(options: { readonly waitMs?: number } = {}): Promise<void> {
    checkNames("upgrade", options, ["waitMs"]);
    checkMs("waitMs", options.waitMs, 0, Number.MAX_SAFE_INTEGER);
    const { clock, random, context } = this.#deps;
    const waitMs = capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context);
    const wait = new Wait(waitMs, this.#deps);
    const what = `upgrade ${this.key}`;
    for (;;) {
      const refusal = await this.#changeMode("exclusive", wait.bounds(this.leaseMs, this.signal));
      if (!refusal) return;
      if (refusal.code !== "locked") throw wait.wasCutShort ? wait.over(what) : errorOf(refusal, what);
      wait.heard(refusal);
      const pauseMs = Math.min(UPGRADE_POLL_MS * (0.5 + 0.5 * random()), wait.leftMs());
      if (pauseMs > 0) await pause(pauseMs, clock, this.signal);
      this.assertHeld();
      if (wait.leftMs() <= 0) throw wait.over(what);
    }
  }

  async downgrade(): Promise<void> {
    const refusal = await this.#changeMode("shared", { ...this.#bounds(this.remainingMs()), signal: this.signal });
    if (refusal) throw errorOf(refusal, `downgrade ${this.key}`);
  }

  /** The refusal, when there is one that leaves the lease as it was. */
  async #changeMode(mode: Mode, bounds: RetryBounds): Promise<Refusal | undefined> {
    this.assertHeld();
    const request = { ...this.#ref, mode, fencingToken: this.fencingToken };
    const { answer, sentAt } = await retry((attempt) => this.#deps.api.changeMode(request, attempt), bounds, this.#deps);
    if (answer.ok) return void this.#heard(answer.lease, sentAt);
    if (answer.code === "lease-lost") this.lose(errorOf(answer, this.key) as LockLostError);
    this.assertHeld();
    return answer;
  }

  /**
   * A heartbeat: a renewal that nobody waits for. `thawed`: asks whether the lease is still held, before anything is claimed.
   * @param onFailedAttempt told of each attempt that failed; it goes on
   */
  async beat(leaseMs: number, thawed: boolean, onFailedAttempt: (refusal: Refusal) => void): Promise<void> {
    this.assertHeld();
    const { api, renewalBatcher, gate, random } = this.#deps;
    const runtime = { clock: backgroundClock(this.#deps.clock), random };
    const more = { gate: gate.for(this), onFailedAttempt };
    if (thawed) await this.#confirm(async (attempt) => stillMine(await api.check(this.#ref, attempt)), runtime, more);
    const renewal = { ...this.#ref, leaseMs };
    await this.#confirm((attempt) => (renewalBatcher ?? api).renew(renewal, attempt), runtime, more);
  }

  release(): Promise<LeaseState> {
    if (!this.#released) {
      this.#released = this.#release().catch((error: unknown) => {
        this.#released = undefined; // Asked again, it is sent again.
        throw error;
      });
      this.#deps.track(this.#released);
    }
    return this.#released;
  }

  async detach(options: { readonly leaseMs?: number } = {}): Promise<string> {
    checkNames("detach", options, ["leaseMs"]);
    checkMs("leaseMs", options.leaseMs, LIMITS.leaseMinMs, LIMITS.leaseMaxMs);
    this.assertHeld();
    const { key, owner, leaseMs } = this;
    const to = { owner, leaseMs: options.leaseMs ?? leaseMs };
    this.#end("released", new LockLostError(`${key}: detached`, "transferred"));
    const handed = transferHold(this.#ref, to, this.#bounds(Math.min(leaseMs, RELEASE_BUDGET_MS)), this.#deps);
    this.#deps.track(handed);
    const { answer } = await handed;
    if (answer.ok) return toHandle({ key, leaseId: answer.lease.leaseId, leaseMs: to.leaseMs });
    // Nobody has it now: better free at once than after its lease.
    await cancel(this.#ref, this.#deps);
    throw errorOf(answer, `detach ${key}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#deps.endHold(this);
  }

  /** Whether the hold ended otherwise than by a release or a hand-over of its own: whoever works under it must know. */
  get wasLost(): boolean {
    const reason: unknown = this.signal.reason;
    return !this.isHeld() && !(reason instanceof LockLostError && (reason.reason === "released" || reason.reason === "transferred"));
  }

  /** Gives the hold up because its client ends; the release is still to be sent. */
  abandon(): void {
    this.#end("released", new LockLostError(`${this.key}: the client was closed`, "closed"));
  }

  /** Stops believing, for this reason. The keep-alive and every reader of the signal learn it now. */
  lose(error: LockLostError): void {
    this.#end("lost", error);
  }

  #end(over: "lost" | "released", error: LockLostError): void {
    if (this.#over) return;
    this.#over = over;
    this.#lost.abort(error);
    this.#deps.onEnd(this);
    if (error.reason !== "released") this.#deps.handoff?.over();
  }

  /** Ends the hold of a run by what came of it, whether or not it was lost: the service knows whether it still counts. */
  async complete(outcome: OutcomeSaid): Promise<Recorded | Refusal> {
    this.#end("released", new LockLostError(`${this.key}: released`, "released"));
    const bounds = { attemptMs: COMPLETE_ATTEMPT_MS, budgetMs: capBudgetMs(COMPLETE_BUDGET_MS, this.#deps.context) };
    const completed = retry((attempt) => this.#deps.api.complete({ ...this.#ref, outcome }, attempt), bounds, this.#deps);
    this.#deps.track(completed);
    return (await completed).answer;
  }

  async #release(): Promise<LeaseState> {
    this.#end("released", new LockLostError(`${this.key}: released`, "released"));
    const { handoff } = this.#deps;
    try {
      if (await handoff?.handOff(this.#ref).catch(() => false)) return "released";
      const { answer } = await retry((attempt) => this.#deps.api.release(this.#ref, attempt), this.#bounds(RELEASE_BUDGET_MS), this.#deps);
      if (!answer.ok) throw errorOf(answer, `release ${this.key}`);
      return answer.state;
    } finally {
      handoff?.over();
    }
  }

  /** Sends until answered or the deadline; the answer decides, silence only raises a doubt. */
  async #confirm(
    attempt: (options: CallOptions) => Promise<Held | Refusal>,
    runtime: Runtime,
    { gate, onFailedAttempt: tell }: Pick<RetryBounds, "gate" | "onFailedAttempt"> = {},
  ): Promise<void> {
    const onFailedAttempt = (refusal: Refusal): void => {
      this.#ambiguous = true;
      tell?.(refusal);
    };
    const bounds = { ...this.#bounds(this.remainingMs()), signal: this.signal, gate, onFailedAttempt };
    const { answer, sentAt } = await retry(attempt, bounds, runtime);
    if (answer.ok) return void this.#heard(answer.lease, sentAt);
    if (answer.code === "lease-lost") this.lose(errorOf(answer, this.key) as LockLostError);
    this.#ambiguous = true;
    this.assertHeld();
    throw errorOf(answer, `renew ${this.key}`);
  }

  /**
   * A reply that says held: of two, the one with the higher version decides, and of one version the one that lasts longer,
   * for renewals never shorten. A lease that ended stays so.
   */
  #heard(view: LeaseView, sentAt: Instant): void {
    this.assertHeld();
    this.#ambiguous = false;
    const deadline = deadlineFrom(view, sentAt);
    const { clock } = this.#deps;
    if (deadline.version < this.#deadline.version) return;
    if (deadline.version === this.#deadline.version && deadlineLeftMs(deadline, clock) < deadlineLeftMs(this.#deadline, clock)) return;
    this.#view = view;
    this.#deadline = deadline;
  }

  get #ref(): LeaseRef {
    const { kind, key, leaseId } = this;
    return { kind, key, leaseId };
  }

  #bounds(budgetMs: number): RetryBounds {
    return boundsFor(this.leaseMs, capBudgetMs(budgetMs, this.#deps.context));
  }

  #lossError(): LockLostError {
    const reason: unknown = this.signal.reason;
    return reason instanceof LockLostError ? reason : new LockLostError(`${this.key}: not held`, "never");
  }
}
