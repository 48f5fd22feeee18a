/**
 * Checks of answers, for clients: what answers.ts defines, in rows that weigh a fraction of its schemas in a bundle. test/contract/checks
 * compares both, member by member. Members and words that this version doesn't know are accepted: a newer service may send them.
 */
import type { Breaking, LeaseState, LeaseView, Notifying, Waiting } from "../core/commands.js";
import type { Health, Listed } from "../core/api/locks.js";
import type { Replayed, RunsListed, Started } from "../core/api/runs.js";
import type { SetEnded, SetHeld } from "../core/api/sets.js";
import type { Details, PublicDetails } from "../core/details.js";
import type { Refusal, RetryAdvice } from "../core/errors.js";
import type { LimitsListed } from "../core/api/limits.js";
import type { LimitView, Taken } from "../core/rate.js";
import type { Inspection, RunView } from "../core/lock/views.js";

/** True if the value is a `T`, as far as its members are known. */
export type Check<T> = (value: unknown) => value is T;

type Rule = (value: unknown) => boolean;
type Rules = Readonly<Record<string, Rule>>;
type Body<Answer> = Omit<Answer, "ok" | "how">;

const isText: Rule = (value) => typeof value === "string";
const isFlag: Rule = (value) => typeof value === "boolean";
const isCount: Rule = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const oneOf =
  (...words: readonly unknown[]): Rule =>
  (value) =>
    words.includes(value);
const orNone =
  (rule: Rule): Rule =>
  (value) =>
    value === undefined || rule(value);
const listOf =
  (rule: Rule): Rule =>
  (value) =>
    Array.isArray(value) && value.every((item) => rule(item));
const mapOf =
  (rule: Rule): Rule =>
  (value) =>
    isObject(value) && listOf(rule)(Object.values(value));

/** Returns the rules of members that have the same one. */
const members = (names: string, rule: Rule): Rules => Object.fromEntries(names.split(" ").map((name) => [name, rule]));

/** Returns a check of these members. */
function row<T>(rules: Rules): Check<T> {
  return (value): value is T => isObject(value) && Object.entries(rules).every(([name, rule]) => rule(value[name]));
}

const mode = oneOf("exclusive", "shared");
const cursor = orNone(isText);
const times = members("leaseMs remainingMs renewAfterMs serverTimeMs", isCount);
const publicDetails: Record<keyof PublicDetails, Rule> = { owner: isText };
const details: Record<keyof Details, Rule> = { ...publicDetails, meta: orNone(isObject) };
const lease = {
  ...members("key leaseId", isText),
  ...members("permits holdCount fencingToken version", isCount),
  ...times,
  ...{ ...details, mode, fenceFloor: orNone(isCount) },
};
const attempt = isCount;
const holder = { ...members("permits fencingToken heldMs remainingMs", isCount), ...publicDetails, mode };
const advice: readonly RetryAdvice[] = ["same", "later", "new-lease", "never"];

export const isLease = row<LeaseView>(lease);
/** A run that the caller runs. */
export const isStarted = row<Pick<Started, "state" | "attempt" | "takeover" | "checkpoint"> & LeaseView>({
  ...lease,
  ...{ state: oneOf("running"), attempt, takeover: isFlag },
});
/** The outcome of a run. */
export const isReplayed = row<Body<Replayed>>({ state: oneOf("succeeded", "failed"), attempt, resultOmitted: orNone(oneOf(true)) });
/** A place in the queue, or in the wait set of a condition. */
export const isWaiting = row<Body<Waiting>>({
  ...members("position retryAfterMs pollWithinMs", isCount),
  ...{ state: oneOf("waiting"), condition: orNone(isText) },
});
/** A place in the queue of a caller that sleeps. */
export const isAsleep = row<Pick<Waiting, "position">>({ state: oneOf("asleep"), position: isCount });
/** A set that is held. */
export const isSet = row<Body<SetHeld>>({ ...times, leaseId: isText, fencingTokens: mapOf(isCount) });
/** The state of a lease that ended. */
export const isLeaseState = oneOf("released", "expired", "lost", "transferred", "never", "unknown") as Check<LeaseState>;
/** The states of the leases of a set that ended. */
export const isSetEnded = row<Body<SetEnded>>({ states: mapOf(isLeaseState) });
/** One answer per heartbeat, each with its key and its own status. */
export const isRenewals = row<{ readonly results: readonly { readonly key?: string; readonly status: number }[] }>({
  results: listOf(row({ key: isText, status: isCount })),
});
/** The number of waiters that a notify woke. */
export const isNotified = row<Body<Notifying>>({ notified: isCount });
/** The time until the end of a hold. */
export const isBreaking = row<Body<Breaking>>({ breakInMs: isCount });
/** The outcome is recorded. */
export const isRecorded = row<object>({ recorded: oneOf(true) });
/** The run is deleted. */
export const isReset = row<object>({ reset: oneOf(true) });
/** A key. */
export const isInspection = row<Inspection>({
  ...members("version fencingToken", isCount),
  ...{ key: isText, mode, limit: orNone(isCount) },
  holders: listOf(row({ ...holder, leaseMs: isCount })),
  waiters: listOf(row({ ...members("priority position waitingMs", isCount), owner: isText, mode, permits: orNone(isCount) })),
  waitSet: orNone(listOf(row({ ...members("owner condition", isText), waitingMs: isCount }))),
  recent: orNone(listOf(row({ askedAgoMs: isCount, ending: isText }))),
  lapsed: orNone(listOf(row({ ...members("fencingToken heldMs endedAgoMs", isCount), owner: isText }))),
});
/** A page of keys. */
export const isList = row<Body<Listed>>({ items: listOf(isInspection), cursor, namespace: isText });
/** A run, as anybody sees it. */
export const isRun = row<RunView>({
  ...members("key state", isText),
  ...members("version attempt fencingToken", isCount),
  ...members("heldMs remainingMs endedAgoMs tookMs", orNone(isCount)),
  ...members("retryable takeover resultOmitted", orNone(isFlag)),
  ...{ owner: orNone(isText), keptForMs: orNone((value) => value === "forever" || isCount(value)) },
});
/** A page of runs. */
export const isRunList = row<Body<RunsListed>>({ items: listOf(isRun), cursor });
const counts = listOf(isCount);
/** A take that may start. */
export const isTaken = row<Body<Taken>>({ startInMs: isCount, remaining: counts });
export const isLimit = row<LimitView>({
  ...{ key: isText, remaining: counts, fullInMs: isCount },
  rates: listOf(row(members("count perMs burst", isCount))),
});
/** A page of limits. */
export const isLimitList = row<Body<LimitsListed>>({ items: listOf(isLimit), cursor });
/** The state of the service. */
export const isHealth = row<Body<Health>>({
  ...{ status: oneOf("ok"), version: isText, serverTimeMs: isCount },
  caller: orNone(row({ ...members("namespace principal", isText), ...members("format clockErrorMs retentionMs", isCount) })),
});
/** A problem document. */
export const isProblem = row<Body<Refusal>>({
  ...members("code detail", isText),
  ...members("instance reason field", orNone(isText)),
  ...members("retryAfterMs holdersOmitted serverTimeMs leaseIdAboveMs", orNone(isCount)),
  ...members("blocking lost", orNone(listOf(isText))),
  ...{ definite: isFlag, retry: oneOf(...advice), holders: orNone(listOf(row(holder))) },
});
