/** The answers of the service. The OpenAPI document and the client's checks of answers (checks.ts, a generated file) are made from them. */
import * as v from "valibot";
import type { LeaseView, Waiting as WaitingAnswer } from "../core/commands.js";
import { ERRORS } from "../core/errors.js";
import { LIMITS, POSITION_MAX } from "../core/limits.js";
import type { Inspection as InspectionView, RunView } from "../core/lock/views.js";
import { type Entries, described, durationMs, integer } from "./fields.js";
import { condition, details, fencingToken, json, Key, LeaseId, leaseMs, mode, owner, publicDetails, runState } from "./fields.js";

const renewAfterMs = described(durationMs, "When to renew: after a third of the lease; the larger the key's record, the later.");

/** A place in a key's queue, the offers included. */
const position = integer(1, POSITION_MAX);

/** A holder as a refusal shows it. */
const Holder = v.strictObject({
  ...publicDetails,
  mode,
  permits: integer(1, 1000),
  fencingToken,
  heldMs: durationMs,
  remainingMs: durationMs,
});
const InspectedHolder = v.strictObject({
  ...Holder.entries,
  leaseMs,
  breaking: v.optional(described(v.literal(true), "An operator broke the hold: it can't be renewed.")),
});
const ending = v.picklist(["released", "expired", "taken", "broken", "transferred", "cancelled", "unknown"]);
const lostReason = v.picklist(["expired", "taken", "broken", "released", "transferred", "never"]);
const leaseState = v.picklist(["released", "expired", "lost", "transferred", "never", "unknown"]);
const code = v.picklist(Object.keys(ERRORS) as [keyof typeof ERRORS]);

/** Everything that any caller of the namespace may see of a key. */
const Inspection = v.strictObject({
  key: Key,
  version: durationMs,
  mode,
  limit: v.optional(integer(1, LIMITS.permitsMax)),
  fencingToken,
  holders: v.array(InspectedHolder),
  waiters: v.array(
    v.strictObject({
      owner,
      mode,
      permits: v.optional(
        described(integer(1, LIMITS.permitsMax), "The permits of a semaphore that it waits for; absent: the key is none."),
      ),
      priority: integer(0, LIMITS.priorityMax),
      position,
      waitingMs: durationMs,
      offered: v.optional(described(v.literal(true), "The key is reserved for it, until it claims the key.")),
      asleep: v.optional(described(v.literal(true), "It doesn't poll: the service claims the key for it, and wakes it.")),
    }),
  ),
  waitSet: v.optional(
    described(v.array(v.strictObject({ owner, condition, waitingMs: durationMs })), "The leases that wait for a condition; absent: none."),
  ),
  recent: v.optional(
    described(
      v.array(v.strictObject({ askedAgoMs: durationMs, ending })),
      "The last leases of the key that ended, the latest end first; absent: none, and from lists.",
    ),
  ),
  lapsed: v.optional(
    described(
      v.array(v.strictObject({ owner, fencingToken, heldMs: durationMs, endedAgoMs: durationMs })),
      "The holds whose lease is over and that nobody has taken over since; absent: none, and from lists.",
    ),
  ),
  ifBroken: v.optional(
    described(
      v.array(v.strictObject({ fencingToken, breakInMs: durationMs, next: v.array(position) })),
      "What a break of each hold would do: when it is over without force, and the positions of those who get the key then; absent: nobody holds it, and from lists.",
    ),
  ),
});

/** A lease as its holder sees it. */
const Lease = v.strictObject({
  key: Key,
  leaseId: LeaseId,
  ...details,
  mode,
  permits: integer(1, LIMITS.permitsMax),
  holdCount: integer(1, LIMITS.leasesMax),
  fencingToken,
  fenceFloor: v.optional(described(durationMs, "Of a shared lease or a permit: the token that a resource compares in place of its own.")),
  leaseMs,
  remainingMs: described(durationMs, "Believe the lease this long, counted from when this request was sent."),
  renewAfterMs,
  version: durationMs,
  serverTimeMs: described(durationMs, "Epoch ms, for display only."),
});

/** In the queue: nothing is held yet. */
const Waiting = v.strictObject({
  state: v.literal("waiting"),
  position: described(position, "1 is next."),
  retryAfterMs: described(durationMs, "When it is worth to ask again; 0: by the same request, now."),
  pollWithinMs: described(durationMs, "Poll within this time to keep the place."),
  condition: v.optional(described(condition, "It waits for a notify of this condition; absent: it is in the queue.")),
});

/** In the queue, or offered the key: it needs no poll, since the service claims the key for it. */
const Asleep = v.strictObject({ state: v.literal("asleep"), position: Waiting.entries.position });

const Queued = v.variant("state", [Waiting, Asleep]);

const Notified = v.strictObject({ notified: integer(0, LIMITS.membersMax) });

const LeaseSet = v.strictObject({
  leaseId: LeaseId,
  fencingTokens: v.record(Key, fencingToken),
  leaseMs,
  remainingMs: described(durationMs, "Of the key that has least; counted from when this request was sent."),
  renewAfterMs,
  serverTimeMs: durationMs,
});

const SetStates = v.strictObject({ states: v.record(Key, leaseState) });

const attempt = described(integer(1, Number.MAX_SAFE_INTEGER), "1 for the first.");

/** This caller runs the work: a lease, and the number of the attempt. */
const Started = v.strictObject({
  state: v.literal("running"),
  attempt,
  takeover: described(v.boolean(), "The attempt before this one never said how it ended."),
  checkpoint: v.optional(json),
  ...Lease.entries,
});

const Replayed = v.strictObject({
  state: v.picklist(["succeeded", "failed"]),
  attempt,
  result: v.optional(json),
  error: v.optional(json),
  resultOmitted: v.optional(v.literal(true)),
});

/** The answer to a start that was carried out before: the caller runs already, or the outcome is recorded. */
const StartedOrReplayed = v.variant("state", [Started, Replayed]);

const Recorded = v.strictObject({ recorded: v.literal(true) });

/** Everything that any caller of the namespace may see of a run. */
const Run = v.strictObject({
  key: Key,
  version: durationMs,
  state: runState,
  retryable: v.optional(v.boolean()),
  attempt,
  takeover: v.optional(described(v.literal(true), "The attempt before this one ended without an outcome.")),
  fencingToken,
  owner: v.optional(owner),
  heldMs: v.optional(durationMs),
  remainingMs: v.optional(durationMs),
  endedAgoMs: v.optional(described(durationMs, "The time since the end of the latest attempt, or of its lease if it is interrupted.")),
  tookMs: v.optional(described(durationMs, "The time from the start of the latest attempt to its outcome.")),
  keptForMs: v.optional(v.union([durationMs, v.literal("forever")])),
  checkpoint: v.optional(json),
  result: v.optional(json),
  error: v.optional(json),
  resultOmitted: v.optional(v.literal(true)),
  errorName: v.optional(
    described(v.string(), "Of a failed run: the name of its error, also in lists; absent: none, or not in the record."),
  ),
});

const RunList = v.strictObject({ items: v.array(Run), cursor: v.optional(v.string()) });

const Reset = v.strictObject({ reset: v.literal(true) });

const rateCount = integer(1, LIMITS.rateCountMax);
const remaining = v.array(described(integer(0, LIMITS.rateCountMax), "What can be taken at once, of each rate."));

/** The take may start, now or in a while. */
const Taken = v.strictObject({ startInMs: described(durationMs, "Start after this time, counted from the answer; 0: now."), remaining });

const Limit = v.strictObject({
  key: Key,
  rates: v.pipe(
    v.array(v.strictObject({ count: rateCount, perMs: integer(LIMITS.ratePerMinMs, LIMITS.ratePerMaxMs), burst: rateCount })),
    v.description("Its buckets: `count` flow in in each `perMs`, `burst` start at once, and at most `burst + count - 1` in any `perMs`."),
  ),
  remaining,
  nextInMs: v.optional(described(durationMs, "The time until a take of 1 may start; 0: now.")),
  fullInMs: described(durationMs, "The time until all buckets are full."),
});

const LimitList = v.strictObject({ items: v.array(Limit), cursor: v.optional(v.string()) });

const List = v.strictObject({ namespace: v.string(), items: v.array(Inspection), cursor: v.optional(v.string()) });

/** The answer to a break: over now, or in `breakInMs`. */
const Break = v.strictObject({ breakInMs: durationMs });

/** A problem, as far as a client reads it. Its own refusals have no more. */
const Refused = v.strictObject({
  code,
  detail: v.string(),
  instance: v.optional(v.string()),
  definite: described(v.boolean(), "The operation certainly did not happen."),
  retry: v.picklist(["same", "later", "new-lease", "never"]),
  retryAfterMs: v.optional(durationMs),
  holders: v.optional(v.array(Holder)),
  holdersOmitted: v.optional(described(integer(1, LIMITS.leasesMax), "How many more hold the key than `holders` names.")),
  reason: v.optional(lostReason),
  blocking: v.optional(v.array(Key)),
  lost: v.optional(v.array(Key)),
  field: v.optional(v.string()),
  serverTimeMs: v.optional(durationMs),
  leaseIdAboveMs: v.optional(durationMs),
});

/** `application/problem+json`, RFC 9457. */
const Problem = v.strictObject({ type: v.string(), title: v.string(), status: integer(400, 599), ...Refused.entries });

const Renewed = v.strictObject({ status: v.literal(200), ...Lease.entries });
const NotRenewed = v.strictObject({ key: Key, ...Problem.entries });

/** One answer per heartbeat: a lease or a problem, each with its key and status. */
const Renewals = v.strictObject({ results: v.array(v.union([Renewed, NotRenewed])) });

export type ProblemBody = v.InferOutput<typeof Problem>;

/** The caller as the service knows it, and the parameters of the records. */
const Caller = v.strictObject({
  namespace: v.string(),
  principal: described(v.string(), "Who the gateway authenticated: leases answer to this principal."),
  format: described(integer(0, Number.MAX_SAFE_INTEGER), "The version of the records' format."),
  clockErrorMs: durationMs,
  retentionMs: durationMs,
});

const Health = v.strictObject({
  status: v.literal("ok"),
  version: v.string(),
  serverTimeMs: durationMs,
  caller: v.optional(Caller),
  doors: v.optional(
    described(v.array(v.string()), "With `caller`: the URLs of the services that use the same table, as far as they were told them."),
  ),
});

/** The error of a gateway that answers in place of the service. */
const GatewayAnswer = v.object({ message: v.string() });

/** The answers, by their names in the OpenAPI document. The compiler asks for each member that the core shows. */
export const ANSWERS = {
  Lease,
  Waiting,
  Queued,
  Notified,
  Inspection,
  List,
  Break,
  LeaseSet,
  SetStates,
  Renewals,
  Started,
  StartedOrReplayed,
  Recorded,
  Run,
  RunList,
  Reset,
  Taken,
  Limit,
  LimitList,
  Health,
  Problem,
  GatewayAnswer,
} as const satisfies Record<string, v.GenericSchema> & {
  readonly Lease: Entries<LeaseView>;
  readonly Waiting: Entries<Omit<WaitingAnswer, "ok" | "asleep">>;
  readonly Inspection: Entries<InspectionView>;
  readonly Run: Entries<RunView>;
};

/** Parts of answers that have a name in the OpenAPI document. */
export const ANSWER_PARTS = { Holder, InspectedHolder, Asleep, Replayed, Renewed, NotRenewed, Caller } as const;

/** The answers that clients check, by the names of the checks. One that is a part of another comes before it. */
export const CHECKED = {
  isLease: Lease,
  isStarted: Started,
  isReplayed: Replayed,
  isWaiting: Waiting,
  isAsleep: Asleep,
  isSet: LeaseSet,
  isLeaseState: leaseState,
  isSetEnded: SetStates,
  isRenewals: Renewals,
  isNotified: Notified,
  isBreaking: Break,
  isRecorded: Recorded,
  isReset: Reset,
  isInspection: Inspection,
  isList: List,
  isRun: Run,
  isRunList: RunList,
  isTaken: Taken,
  isLimit: Limit,
  isLimitList: LimitList,
  isHealth: Health,
  isProblem: Refused,
} as const satisfies Record<string, v.GenericSchema>;

/** The words that a newer service may add to. No decision of a client depends on them, so it accepts any text there. */
export const GROWING: readonly v.GenericSchema[] = [ending, lostReason, code, runState];
