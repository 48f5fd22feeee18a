/**
 * A lease as its holder uses it. `isHeld` is computed at every call from the service's last answer and both clocks. Once it is false, it
 * stays false, except that a wait for a condition holds again afterwards. The client stops treating the lease as held, and the signal
 * aborts, before it sends anything that lets another client have the key.
 */
import { isA } from "../../core/brand.js";
import type { Held, LeaseState, LeaseView } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions, Kind, LeaseRef } from "../../core/api/locks.js";
import { cancel, transferHold } from "../ask/fresh-id.js";
import type { ConditionDeps, SendNotify, WaitingLease } from "./condition.js";
import { checkWait, CONDITION, notifierOf, stillMine, waitForCondition } from "./condition.js";
import { type Meta, DETAILS } from "../../core/details.js";
import { pick } from "../../core/members.js";
import type { Mode } from "../../core/record.js";
import type { Keeper, Lease, LeaseKind, LeaseClient, State, WaitOptions } from "./lease-types.js";
import { type Instant, backgroundClock } from "../../core/time.js";
import { type LeaseDeadline, deadlineFrom, deadlineLeftMs } from "../ask/deadline.js";
import { type StopSignal, LazyAbort } from "../wire/lazy-abort.js";
import { type Answered, type RetryBounds, type Runtime, boundsFor, retry } from "../wire/retry.js";
import { errorOf, LockLostError, endedError } from "../wire/errors.js";
import { toHandle } from "./detached-lease.js";
import { capBudgetMs } from "../wire/invocation.js";
import type { Handoff } from "../ask/local-queue.js";
import { CHECKS, checkOptions, metaOf } from "../wire/checks.js";
import { untilUpgraded } from "./upgrade.js";
import type { Alarms } from "./alarms.js";
import type { RenewalBatcher } from "./renewal-batcher.js";
import type { RetryGate } from "../wire/retry-gate.js";

/** The dependencies of a lease, shared by the leases of a client. */
export interface LeaseDeps extends ConditionDeps {
  /** The timers of the client's leases. */
  readonly alarms: Alarms;
  /** The gate where failing heartbeats wait. */
  readonly gate: RetryGate;
  /** Sends heartbeats together where that is possible. */
  readonly renewalBatcher?: RenewalBatcher | undefined;
  /** The scope under which the lease was acquired. */
  readonly scope: string | undefined;
  readonly client: LeaseClient<HeldLease>;
}

/** The budget of a release or transfer; after it, the lease's expiry frees the key. */
const RELEASE_BUDGET_MS = 5000;

/** The implementation of the interface; the keep-alive drives it. */
export class HeldLease implements Lease, WaitingLease {
  readonly kind: Kind;
  /** Given by `keepAlive`. */
  keeper: Keeper<HeldLease> | undefined;
  readonly #deps: LeaseDeps;
  #handoff: Handoff | undefined;
  readonly #lost = new LazyAbort();
  #view: LeaseView;
  #deadline: LeaseDeadline;
  /** The last renewal without an answer, since the service last said held. */
  #failure: Error | undefined;
  #saved = 0;
  #over: "lost" | "released" | undefined;
  /** The reason for which the hold ended; undefined while it is held. To read it makes no error. */
  endReason: LockLostError["reason"] | undefined;
  #released: Promise<LeaseState> | undefined;
  isWaiting = false;
  #notify: SendNotify | undefined;

  constructor(view: LeaseView, sentAt: Instant, { kind, handoff }: LeaseKind, deps: LeaseDeps) {
    this.kind = kind;
    this.#handoff = handoff;
    this.#deps = deps;
    this.#view = view;
    this.#deadline = deadlineFrom(view, sentAt);
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
  /** Aborts as `signal` does, for this package's own listeners. */
  get ending(): StopSignal {
    return this.#lost;
  }

  get state(): State {
    if (this.isHeld()) return this.#failure ? "unknown" : "held";
    return this.#over ?? (this.isWaiting ? "waiting" : "lost");
  }

  remainingMs(): number {
    return this.isHeld() ? this.leftMs() : 0;
  }

  /** The time in ms until the service's lease is over, also after the hold ended on this side; 0 if it is over. */
  leftMs(): number {
    return Math.max(0, deadlineLeftMs(this.#deadline, this.#deps.clock));
  }

  isHeld(): boolean {
    if (this.#over || this.isWaiting) return false;
    if (deadlineLeftMs(this.#deadline, this.#deps.clock) > 0) return true;
    this.lose(new LockLostError(`${this.key}: not renewed in time`, "deadline", { key: this.key, cause: this.#failure }));
    return false;
  }

  assertHeld(): void {
    if (!this.isHeld()) throw this.#lossError();
  }

  progress(): boolean {
    if (this.isHeld()) this.keeper?.progress();
    return this.isHeld();
  }

  async renew(options: { readonly leaseMs?: number | undefined; readonly meta?: Meta | undefined } = {}): Promise<void> {
    checkOptions("renew", options, { leaseMs: CHECKS.leaseMs, meta: CHECKS.meta });
    this.assertHeld();
    const request = { ...this.#ref, leaseMs: options.leaseMs ?? this.leaseMs, meta: metaOf(options.meta) };
    await this.#confirm((call) => this.#deps.api.renew(request, call), this.#deps);
  }

  /** Renews the lease and saves a checkpoint of the run's work, which is progress. */
  async save(checkpoint: unknown): Promise<void> {
    if (!this.progress()) throw this.#lossError();
    const request = { ...this.#ref, leaseMs: this.leaseMs, checkpoint, sequence: ++this.#saved };
    await this.#confirm((call) => this.#deps.api.renew(request, call), this.#deps);
  }

  async upgrade(options: { readonly waitMs?: number | undefined } = {}): Promise<void> {
    await untilUpgraded(this, options, this.#lost, (bounds) => this.#changeMode("exclusive", bounds), this.#deps);
  }

  async downgrade(): Promise<void> {
    const refusal = await this.#changeMode("shared", { ...this.#bounds(this.remainingMs()), signal: this.#lost });
    if (refusal) throw errorOf(refusal, `downgrade ${this.key}`, this);
  }

  /** Returns the refusal if there is one that leaves the lease unchanged; undefined after success. */
  async #changeMode(mode: Mode, bounds: RetryBounds): Promise<Refusal | undefined> {
    this.assertHeld();
    const request = { ...this.#ref, mode, fencingToken: this.fencingToken };
    const { answer, sentAt } = await retry((call) => this.#deps.api.changeMode(request, call), bounds, this.#deps);
    if (answer.ok) return void this.#heard(answer.lease, sentAt);
    // A wait that began meanwhile has freed the key itself.
    if (answer.code === "lease-lost" && request.leaseId === this.leaseId && !this.isWaiting)
      this.lose(errorOf(answer, this.key, this) as LockLostError);
    this.assertHeld();
    return answer;
  }

  /**
   * Sends a heartbeat: a renewal that no caller waits for. If `thawed`, first checks with the service that the lease is still held.
   * @param onFailedAttempt called for each failed attempt; the retries continue
   */
  async beat(leaseMs: number, thawed: boolean, onFailedAttempt: (refusal: Refusal) => void): Promise<void> {
    this.assertHeld();
    const { api, renewalBatcher, gate, random } = this.#deps;
    const runtime = { clock: backgroundClock(this.#deps.clock), random };
    const more = { gate: gate.for(this), onFailedAttempt };
    if (thawed) await this.#confirm(async (call) => stillMine(await api.check(this.#ref, call)), runtime, more);
    const renewal = { ...this.#ref, leaseMs };
    await this.#confirm((call) => (renewalBatcher ?? api).renew(renewal, call), runtime, more);
  }

  release(): Promise<LeaseState> {
    if (!this.#released) {
      this.#released = this.#release().catch((error: unknown) => {
        this.#released = undefined; // The next call sends it again.
        throw error;
      });
      this.#deps.track(this.#released);
    }
    return this.#released;
  }

  async wait(condition: string, options: WaitOptions = {}): Promise<void> {
    checkWait(condition, options);
    this.assertHeld();
    const acquire = { ...pick(this.#view, DETAILS), leaseMs: this.leaseMs, scope: this.#deps.scope };
    await waitForCondition({ lease: this, ref: this.#ref, condition }, acquire, options, this.#deps);
    this.assertHeld();
  }

  notifyAll(condition: string): Promise<number> {
    return this.notify(condition, true);
  }

  async notify(condition: string, all = false): Promise<number> {
    CONDITION("condition", condition);
    this.assertHeld();
    const ref = this.#ref;
    const bounds = { ...this.#bounds(this.remainingMs()), signal: this.#lost };
    const answer = await (this.#notify ??= notifierOf(this.#deps))({ ...ref, condition, all }, bounds);
    if (answer.ok) return answer.notified;
    // A wait that began meanwhile has freed the key itself.
    if (answer.code === "lease-lost" && ref.leaseId === this.leaseId && !this.isWaiting)
      this.lose(errorOf(answer, this.key, this) as LockLostError);
    throw errorOf(answer, `notify ${condition} of ${this.key}`, this);
  }

  suspend(): void {
    this.isWaiting = true;
    this.keeper?.end();
  }

  freed(): void {
    this.#handoff?.over();
    this.#handoff = undefined;
  }

  resume(granted?: Answered<Held>): void {
    this.isWaiting = false;
    if (this.#over) return;
    if (granted) {
      this.#view = granted.answer.lease;
      this.#deadline = deadlineFrom(this.#view, granted.sentAt);
      this.#failure = undefined;
    }
    this.keeper?.start();
  }

  endWait(error: LockLostError): void {
    this.#end(error.reason === "released" ? "released" : "lost", error.reason, () => error);
  }

  async detach(options: { readonly leaseMs?: number | undefined } = {}): Promise<string> {
    checkOptions("detach", options, { leaseMs: CHECKS.leaseMs });
    this.assertHeld();
    const { key, owner, leaseMs } = this;
    const to = { owner, leaseMs: options.leaseMs ?? leaseMs };
    this.#end("released", "transferred", () => new LockLostError(`${key}: detached`, "transferred", { key }));
    const handed = transferHold(this.#ref, to, this.#bounds(Math.min(leaseMs, RELEASE_BUDGET_MS)), this.#deps);
    this.#deps.track(handed);
    const { answer } = await handed;
    if (answer.ok) return toHandle({ key, leaseId: answer.lease.leaseId, leaseMs: to.leaseMs });
    // No process has the lease now: cancel it, so that the key is free at once and not at the end of the lease.
    await cancel(this.#ref, this.#deps);
    throw errorOf(answer, `detach ${key}`, { key });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#deps.client.endHold(this);
  }

  /** True if an attempt of the release had no answer: it may have ended the hold, and the key may have forgotten the id since. */
  wasReleaseRepeated = false;

  /** True if the hold ended by anything but its own release or transfer. Work under the lease must learn of it. */
  get wasLost(): boolean {
    return !this.isHeld() && this.endReason !== "released" && this.endReason !== "transferred";
  }

  /** Ends the hold because its client closes, or because it is given back: it isn't renewed any more. Its release is sent afterwards. */
  abandon(by: "closed" | "released" = "closed"): void {
    this.#end("released", by, () => endedError(this.key, by));
  }

  /** Stops treating the lease as held, for this reason. The signal aborts and the keep-alive stops at once. */
  lose(error: LockLostError): void {
    this.#end("lost", error.reason, () => error);
  }

  #end(over: "lost" | "released", reason: LockLostError["reason"], errorOf: () => LockLostError): void {
    if (this.#over) return;
    this.#over = over;
    this.endReason = reason;
    this.keeper?.end();
    this.#lost.abortBy(errorOf);
    this.#deps.client.ended(this);
    if (reason !== "released") this.#handoff?.over();
  }

  /** Ends the hold of a run whose work is done. Returns its lease in another object, which is kept alive while the outcome is recorded. */
  conclude(): HeldLease {
    const recording = new HeldLease(this.#view, this.#deadline.sentAt, { kind: this.kind }, this.#deps);
    if (this.isHeld()) this.keeper?.keep(recording);
    else recording.abandon();
    this.abandon("released");
    return recording;
  }

  async #release(): Promise<LeaseState> {
    this.abandon("released");
    const handoff = this.#handoff;
    try {
      if (await handoff?.handOff(this.#ref, this.#deps.context).catch(() => false)) return "released";
      const bounds = { ...this.#bounds(RELEASE_BUDGET_MS), untilDecided: true };
      const { answer, ambiguous } = await retry((call) => this.#deps.api.release(this.#ref, call), bounds, this.#deps);
      if (!answer.ok) throw errorOf(answer, `release ${this.key}`);
      this.wasReleaseRepeated = ambiguous;
      return answer.state;
    } finally {
      handoff?.over();
    }
  }

  /** Retries until there is an answer or the deadline passes. Only an answer decides; no response makes the state ambiguous. */
  async #confirm(
    attempt: (options: CallOptions) => Promise<Held | Refusal>,
    runtime: Runtime,
    { gate, onFailedAttempt: report }: Pick<RetryBounds, "gate" | "onFailedAttempt"> = {},
  ): Promise<void> {
    const onFailedAttempt = (refusal: Refusal): void => {
      this.#failure = errorOf(refusal, `renew ${this.key}`);
      report?.(refusal);
    };
    const bounds = { ...this.#bounds(this.remainingMs()), signal: this.#lost, gate, onFailedAttempt };
    const { leaseId } = this;
    const { answer, sentAt } = await retry(attempt, bounds, runtime);
    // An answer about the hold before a wait.
    if (leaseId !== this.leaseId || this.isWaiting) return void this.assertHeld();
    if (answer.ok) return void this.#heard(answer.lease, sentAt);
    if (answer.code === "lease-lost") this.lose(errorOf(answer, this.key, { key: this.key, cause: this.#failure }) as LockLostError);
    const failure = (this.#failure = errorOf(answer, `renew ${this.key}`));
    this.assertHeld();
    throw failure;
  }

  /**
   * Takes a reply that says held. Of two replies, the one with the higher version counts; of the same version, the one with the later
   * deadline, because renewals never shorten a lease. A lease that ended stays ended.
   */
  #heard(view: LeaseView, sentAt: Instant): void {
    this.assertHeld();
    this.#failure = undefined;
    const deadline = deadlineFrom(view, sentAt);
    if (deadline.version < this.#deadline.version) return;
    const isEarlier = deadlineLeftMs(deadline, this.#deps.clock) < deadlineLeftMs(this.#deadline, this.#deps.clock);
    if (deadline.version === this.#deadline.version && isEarlier) return;
    this.#view = view;
    this.#deadline = deadline;
    if (isEarlier) this.keeper?.deadlineMoved();
  }

  get #ref(): LeaseRef {
    return { kind: this.kind, key: this.key, leaseId: this.leaseId };
  }

  #bounds(budgetMs: number): RetryBounds {
    return boundsFor(this.leaseMs, capBudgetMs(budgetMs, this.#deps.context));
  }

  #lossError(): LockLostError {
    const { reason } = this.#lost;
    return isA(reason, LockLostError) ? reason : new LockLostError(`${this.key}: ${this.isWaiting ? "waits" : "not held"}`, "never", this);
  }
}
