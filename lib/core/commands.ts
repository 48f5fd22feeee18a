/**
 * The commands on a key and their answers: the vocabulary that the service, the stores and the client share. Answers
 * are data, and a refusal is an answer too.
 */
import type { Refusal } from "./errors.js";
import type { LeaseId } from "./lease-id.js";
import type { Details, Meta } from "./details.js";
import type { Checkpoint, Ending, LockRecord, Mode, Payload, Waiter } from "./record.js";

/** The key, lease and caller of a command. */
interface OfLease {
  readonly key: string;
  readonly leaseId: LeaseId;
  /** Digest of the caller's principal. The record stores no other form of it. */
  readonly principal: string;
}

/** Acquires the key under a new leaseId, or repeats an earlier acquire. */
export interface Acquire extends OfLease, Details {
  readonly type: "acquire";
  readonly leaseMs: number;
  readonly mode: Mode;
  /** The number of permits that the key has: 1 unless it is a semaphore. */
  readonly limit: number;
  /** The number of permits that this lease takes. */
  readonly permits: number;
  /** Digest of the scope. Absent: no scope. */
  readonly scope?: string;
  /** Priority in the queue: higher ones first. */
  readonly priority: number;
  /** Hash of the parameters above. */
  readonly requestHash: string;
  /** Set to queue for the key if it is not available now. */
  readonly wait?: true;
  /** With `wait`: it sleeps for at most this long. This request never gets the key, only a place or an offer. */
  readonly sleepMs?: number;
}

/** Extends a lease by `leaseMs`, or by its own length without it. */
export interface Renew extends OfLease {
  readonly type: "renew";
  readonly leaseMs?: number;
  readonly meta?: Meta;
  /** For a run: its progress. */
  readonly checkpoint?: Checkpoint;
  /** For a run: its checkpoint's own item was kept for longer. */
  readonly prolonged?: ProlongedPayload;
}

/** The digest of a large payload, and the later time until which its own item is kept, in epoch seconds. */
export interface ProlongedPayload {
  readonly digest: string;
  readonly ttlAtSec: number;
}

/** Releases a lease, or cancels an acquire whose outcome is unknown. */
export interface Release extends OfLease {
  readonly type: "release";
  /** Set to end a wait alone: a lease that holds the key keeps it, and the answer is `unknown`. */
  readonly onlyWaiting?: true;
  /**
   * Set to end a part of a set that nobody has confirmed: a lease that was never prolonged beyond this length. Another one keeps the key, and
   * the answer is `unknown`.
   */
  readonly pendingMs?: number;
}

/** Releases the lease and joins the wait set of a condition under a new leaseId, in one change. */
export interface WaitForCondition extends OfLease {
  readonly type: "wait";
  readonly condition: string;
  /** The acquire by which it takes the key back after a notify. */
  readonly to: Acquire;
}

/** Wakes the first waiter of a condition, or all of them: they join the queue. */
export interface Notify extends OfLease {
  readonly type: "notify";
  readonly condition: string;
  /**
   * The number of this notify among those of its lease. One that isn't above the last is a repeat, and wakes no other waiter. Absent: each
   * request is a new notify.
   */
  readonly sequence?: number;
  readonly all?: boolean;
}

/** Transfers the hold to a new leaseId, with a new token. What is absent stays as it is. */
export interface Transfer extends OfLease {
  readonly type: "transfer";
  readonly toLeaseId: LeaseId;
  readonly toOwner?: string;
  readonly toMeta?: Meta;
  readonly leaseMs?: number;
}

/** Makes a reader the writer, or the writer a reader. */
export interface ChangeMode extends OfLease {
  readonly type: "mode";
  readonly mode: Mode;
  /** The lease's token before the change, by which a late duplicate of an earlier change is recognised. */
  readonly fencingToken: number;
}

/** Ends another caller's hold, named by its token. */
export interface Break {
  readonly type: "break";
  readonly key: string;
  readonly fencingToken: number;
  /** Absent: the holder keeps its lease but cannot renew it. Below its remaining time: by force. */
  readonly drainMs?: number;
}

/** Starts the work of an idempotency key under a new leaseId, repeats an earlier start, or returns the recorded outcome. */
export interface Start extends OfLease {
  readonly type: "start";
  readonly owner: string;
  readonly leaseMs: number;
  /** Fingerprint of the input; empty matches any. */
  readonly fingerprint: string;
  readonly keepResultMs: number;
  /** The most attempts; 0 for no limit. */
  readonly maxAttempts: number;
  /** Hash of the parameters above. */
  readonly requestHash: string;
}

/** Ends a run's attempt with its outcome. */
export interface Complete extends OfLease {
  readonly type: "complete";
  /** `retry`: failed, and the next caller may start at once. */
  readonly state: "succeeded" | "failed" | "retry";
  readonly payload?: Payload;
  readonly omitted?: true;
}

/** Deletes a run that is over: the next start is a first attempt. */
export interface Reset {
  readonly type: "reset";
  readonly key: string;
  /** The token of the run that was seen. Absent: whichever run is there. */
  readonly fencingToken?: number;
}

/** Every command that may change a record. */
export type Command = Acquire | Renew | Release | WaitForCondition | Notify | Transfer | Break | ChangeMode | Start | Complete | Reset;

/** A lease as its holder sees it. All times are durations, counted from the answer. */
export interface LeaseView extends Details {
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly mode: Mode;
  readonly permits: number;
  readonly holdCount: number;
  readonly fencingToken: number;
  /**
   * For a shared lease or a permit: the token of the latest grant that met no other holder. Resources compare it
   * instead of this lease's own token.
   */
  readonly fenceFloor?: number;
  readonly leaseMs: number;
  /** `min(expiresAt − latest clock, leaseMs)`: the time for which a client may treat the lease as held, counted from its send. */
  readonly remainingMs: number;
  readonly renewAfterMs: number;
  readonly version: number;
  /** The service's clock at the answer, for display and for making ids. Never compute durations from it. */
  readonly serverTimeMs: number;
}

/** The lease is held. `how` says what this request changed. */
export interface Held {
  readonly ok: true;
  readonly how: "granted" | "replayed" | "renewed" | "transferred" | "changed" | "checked";
  readonly lease: LeaseView;
  /** For a run: its checkpoint's own item must be kept until this later time, like the record. */
  readonly outlived?: ProlongedPayload;
}

/** The `retryAfterMs` by which a waiter is told to ask for the key itself, at once: its turn has come, and a poll only looks. */
export const ASK_NOW_MS = 0;

/** In the queue or offered the key. Nothing is held, and the lease's time has not begun. */
export interface Waiting {
  readonly ok: true;
  readonly state: "waiting";
  /** 1 is next. */
  readonly position: number;
  /** The earliest useful poll, in ms; {@link ASK_NOW_MS}: now, by an acquire. */
  readonly retryAfterMs: number;
  /** A waiter that polls later than this may lose its place. */
  readonly pollWithinMs: number;
  /** Set while it waits for a notify of this condition. Absent: it is in the queue. */
  readonly condition?: string;
  /** It sleeps, so it needs no poll: an agent claims the key for it. */
  readonly asleep?: true;
}

/** The number of waiters that a notify woke. */
export interface Notifying {
  readonly ok: true;
  readonly how: "notified" | "replayed";
  readonly notified: number;
}

/** The state that a release found: see `Lease-State` in the HTTP reference. */
export type LeaseState = "released" | "expired" | "lost" | "transferred" | "never" | "unknown";

/** The lease is over, now or since earlier. */
export interface Ended {
  readonly ok: true;
  readonly state: LeaseState;
}

/** The hold is over (0) or ends in `breakInMs`. */
export interface Breaking {
  readonly ok: true;
  readonly breakInMs: number;
}

/** This caller runs the work: its lease, and the number of the attempt. */
export interface Running extends Omit<Held, "how"> {
  readonly how: "granted" | "replayed";
  readonly state: "running";
  readonly attempt: number;
  readonly takeover: boolean;
  readonly checkpoint?: Payload;
}

/** The work was done before, with this outcome. */
export interface Finished {
  readonly ok: true;
  readonly state: "succeeded" | "failed";
  readonly attempt: number;
  readonly payload?: Payload;
  readonly omitted?: true;
}

/** The outcome is recorded, by this request or an earlier one. */
export interface Recorded {
  readonly ok: true;
  readonly how: "recorded" | "replayed";
}

/** The run is deleted. */
export interface WasReset {
  readonly ok: true;
}

/** The answers to each type of command, besides refusals. */
interface Answers {
  readonly acquire: Held | Waiting;
  readonly renew: Held;
  readonly transfer: Held;
  readonly mode: Held;
  readonly wait: Waiting;
  readonly notify: Notifying;
  readonly release: Ended;
  readonly break: Breaking;
  readonly start: Running | Finished;
  readonly complete: Recorded;
  readonly reset: WasReset;
}

export type AnswerTo<C extends Command> = Answers[C["type"]] | Refusal;

/** A change of holders, for the log: together the events show who held the key when. Renewals cause none. */
export interface LeaseEvent {
  readonly event:
    | ("waiting" | "queued" | "offered" | "skipped" | "granted" | "replayed")
    | ("transferred" | "changed" | "breaking" | "ended" | "recorded" | "reset");
  readonly leaseId: LeaseId;
  readonly owner: string;
  /** Digest of the lease's principal. */
  readonly principal: string;
  readonly fencingToken?: number;
  readonly heldMs?: number;
  /** For a hold whose lease was over before its end was seen: the time in between, in ms. It is a part of `heldMs`. */
  readonly lapsedMs?: number;
  readonly reason?: Ending;
  /** The mode after a change of mode. */
  readonly mode?: Mode;
  /** The condition that a lease waits for, or whose notify put it into the queue. */
  readonly condition?: string;
  /** The place of a waiter that joined the queue. */
  readonly position?: number;
  /** For a run: the number of the attempt, and its outcome. */
  readonly attempt?: number;
  readonly outcome?: Complete["state"];
  /** For a run that failed: the name of its error, if it has one. */
  readonly errorName?: string;
  /** It had happened before, and this request only repeated it. */
  readonly repeated?: true;
}

/** A waiter's keep-alive: a write to its queue entry alone, which leaves the record's version unchanged. */
export interface Touch {
  readonly waiter: Waiter;
  /** Its index in the queue or the wait set. */
  readonly index: number;
  /** Set if it is in the wait set. */
  readonly inWaitSet?: true;
  /** Epoch seconds to which it raises the record's `ttlAtSec`; absent if that is late enough. */
  readonly ttlAtSec?: number | undefined;
}

/** The decision on a command: the answer, the next record (absent: unchanged) and the events to log. */
export interface Decision<C extends Command = Command> {
  readonly answer: AnswerTo<C>;
  readonly next?: LockRecord;
  /** In place of `next`: a keep-alive is the only change. */
  readonly touch?: Touch;
  /** Set if the only change in `next` is this waiter at the end of the queue. */
  readonly behind?: Waiter;
  /**
   * Set if `next` changes only the caller's own part, and the same decision stays right whatever else of this kind is written first. A store
   * may then write it over a later version, if the core would decide the same there.
   */
  readonly commutes?: true;
  readonly events: readonly LeaseEvent[];
}
