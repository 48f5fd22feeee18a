/**
 * What can be asked of a key, and what can come of it: the vocabulary that the service, the stores
 * and the client share. Answers are data; an operation that was refused is an answer too.
 */
import type { Refusal } from "./errors.js";
import type { LeaseId } from "./lease-id.js";
import type { Checkpoint, Ending, LockRecord, Meta, Mode, Payload, Waiter } from "./record.js";

/** Ask for the key under a new leaseId, or ask again under one that may hold it. */
export interface Acquire {
  readonly type: "acquire";
  readonly key: string;
  readonly leaseId: LeaseId;
  /** Digest of the caller's principal, as in every command: the record has no other form of it. */
  readonly principal: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly mode: Mode;
  /** How many permits the key has: 1 but for a semaphore. */
  readonly limit: number;
  /** How many of them this lease takes. */
  readonly permits: number;
  /** Digest of the scope; absent: none. */
  readonly scope?: string;
  readonly meta?: Meta;
  /** In the queue: higher ones first. */
  readonly priority: number;
  /** Digest of the parameters above. */
  readonly requestHash: string;
  /** Queue for the key, if it can't be had now. */
  readonly wait?: true;
}

/** Extend a lease; without `leaseMs` by its own length. */
export interface Renew {
  readonly type: "renew";
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
  readonly leaseMs?: number;
  readonly meta?: Meta;
  /** Of a run: how far it got. */
  readonly checkpoint?: Checkpoint;
  /** Of a run: its checkpoint's own item was kept for longer. */
  readonly prolonged?: ProlongedPayload;
}

/** A large payload by its digest, and the later time, in epoch seconds, until which its own item is kept. */
export interface ProlongedPayload {
  readonly digest: string;
  readonly ttlAtSec: number;
}

/** Release a lease, or cancel an acquire whose outcome is unknown. */
export interface Release {
  readonly type: "release";
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
}

/** Hand the hold to a new leaseId, with a new token. */
export interface Transfer {
  readonly type: "transfer";
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
  readonly toLeaseId: LeaseId;
  readonly toOwner?: string;
  readonly leaseMs?: number;
}

/** Make a reader the writer, or the writer a reader. */
export interface ChangeMode {
  readonly type: "mode";
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
  readonly mode: Mode;
  /** The lease's token before: a late duplicate of an earlier change has another. */
  readonly fencingToken: number;
}

/** End somebody's hold, named by its token. */
export interface Break {
  readonly type: "break";
  readonly key: string;
  readonly fencingToken: number;
  /** Absent: the holder keeps its lease but cannot renew it. Below its remaining time: by force. */
  readonly drainMs?: number;
}

/** Ask to run the work of an idempotency key under a new leaseId, or ask again, or for what came of it. */
export interface Start {
  readonly type: "start";
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
  readonly owner: string;
  readonly leaseMs: number;
  /** Empty matches any. */
  readonly fingerprint: string;
  readonly keepResultMs: number;
  /** 0: no end. */
  readonly maxAttempts: number;
  /** Digest of the parameters above. */
  readonly requestHash: string;
}

/** End a run by saying what came of it. */
export interface Complete {
  readonly type: "complete";
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
  /** `retry`: failed, and the next caller may start at once. */
  readonly state: "succeeded" | "failed" | "retry";
  readonly payload?: Payload;
  readonly omitted?: true;
}

/** Forget a run that is over: the next start is a first attempt. */
export interface Reset {
  readonly type: "reset";
  readonly key: string;
}

/** Every command that may change a record. */
export type Command = Acquire | Renew | Release | Transfer | Break | ChangeMode | Start | Complete | Reset;

/** A lease as its holder sees it. All times are durations at the moment of the answer. */
export interface LeaseView {
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly owner: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly holdCount: number;
  readonly fencingToken: number;
  /** Of a shared lease or a permit: the token of the latest grant that met nobody else holding, which a resource compares in place of this lease's. */
  readonly fenceFloor?: number;
  readonly leaseMs: number;
  /** `min(expiresAt − later clock, leaseMs)`: what a client may believe, counted from its send. */
  readonly remainingMs: number;
  readonly renewAfterMs: number;
  readonly version: number;
  /** The service's clock at the answer, for display and for making ids; never to be subtracted from. */
  readonly serverTimeMs: number;
  readonly meta?: Meta;
}

/** The lease is held. `how` says what this request did about it. */
export interface Held {
  readonly ok: true;
  readonly how: "granted" | "replayed" | "renewed" | "transferred" | "changed" | "checked";
  readonly lease: LeaseView;
  /** Of a run: its checkpoint's own item is to be kept until this later time, with the record. */
  readonly outlived?: ProlongedPayload;
}

/** In the queue, or next to be granted: nothing is held, and the lease's time has not begun. */
export interface Waiting {
  readonly ok: true;
  readonly state: "waiting";
  /** 1 is next. */
  readonly position: number;
  /** When it is worth a look; 0: now, by an acquire. */
  readonly retryAfterMs: number;
  /** Whoever comes later than this may lose its place. */
  readonly pollWithinMs: number;
}

/** What a release found: see `Lease-State` in the HTTP reference. */
export type LeaseState = "released" | "expired" | "lost" | "transferred" | "never" | "unknown";

/** The lease is over, now or since earlier. */
export interface Ended {
  readonly ok: true;
  readonly state: LeaseState;
}

/** The hold is over (0) or will be in `breakInMs`. */
export interface Breaking {
  readonly ok: true;
  readonly breakInMs: number;
}

/** You run: the lease, and which attempt it is. */
export interface Running extends Omit<Held, "how"> {
  readonly how: "granted" | "replayed";
  readonly state: "running";
  readonly attempt: number;
  readonly takeover: boolean;
  readonly checkpoint?: Payload;
}

/** It was run before, and this is what came of it. */
export interface Finished {
  readonly ok: true;
  readonly state: "succeeded" | "failed";
  readonly attempt: number;
  readonly payload?: Payload;
  readonly omitted?: true;
}

/** The outcome is recorded, now or by an earlier request. */
export interface Recorded {
  readonly ok: true;
  readonly how: "recorded" | "replayed";
}

/** The run is forgotten. */
export interface WasReset {
  readonly ok: true;
}

/** The answer that belongs to a command. */
export type AnswerTo<C extends Command> = C extends Acquire
  ? Held | Waiting | Refusal
  : C extends Renew | Transfer | ChangeMode
    ? Held | Refusal
    : C extends Release
      ? Ended | Refusal
      : C extends Break
        ? Breaking | Refusal
        : C extends Start
          ? Running | Finished | Refusal
          : C extends Complete
            ? Recorded | Refusal
            : C extends Reset
              ? WasReset | Refusal
              : never;

/** A change of who holds, for the log: together they tell who held what when. A renewal changes nobody. */
export interface LeaseEvent {
  readonly event:
    "queued" | "offered" | "skipped" | "granted" | "replayed" | "transferred" | "changed" | "breaking" | "ended" | "recorded" | "reset";
  readonly leaseId: LeaseId;
  readonly owner: string;
  /** Digest of the lease's principal. */
  readonly principal: string;
  readonly fencingToken?: number;
  readonly heldMs?: number;
  readonly reason?: Ending;
  /** What a change of mode made of it. */
  readonly mode?: Mode;
  /** The place of one that joined the queue. */
  readonly position?: number;
  /** Of a run: which attempt, and what came of it. */
  readonly attempt?: number;
  readonly outcome?: Complete["state"];
  /** It had happened before; this request only asked again. */
  readonly repeated?: true;
}

/** A waiter that is still there: written by itself, and the record stays at its version. */
export interface Touch {
  readonly waiter: Waiter;
  /** Its index in the queue. */
  readonly index: number;
}

/** What a command comes to: the answer, the record after it (absent: unchanged) and what to log. */
export interface Decision<C extends Command = Command> {
  readonly answer: AnswerTo<C>;
  readonly next?: LockRecord;
  /** In place of `next`: that a waiter was heard of is all that changes. */
  readonly touch?: Touch;
  /** That this waiter stands behind all others is all that `next` changes. */
  readonly behind?: Waiter;
  readonly events: readonly LeaseEvent[];
}
