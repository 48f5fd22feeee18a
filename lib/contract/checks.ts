/**
 * The client's checks of answers. A generated file: change answers.ts, and make this one again by
 * `npx vitest run test/contract/checks -u`. rules.ts has its parts.
 */
import { type CheckOf, count, either, flag, listOf, mapOf, members, object, oneOf, optional, text } from "./rules.js";

export const isLease = members({
  key: text,
  leaseId: text,
  owner: text,
  meta: optional(object),
  mode: oneOf("exclusive", "shared"),
  permits: count,
  holdCount: count,
  fencingToken: count,
  fenceFloor: optional(count),
  leaseMs: count,
  remainingMs: count,
  renewAfterMs: count,
  version: count,
  serverTimeMs: count,
}) as CheckOf<"isLease">;
export const isStarted = members({
  state: oneOf("running"),
  attempt: count,
  takeover: flag,
  key: text,
  leaseId: text,
  owner: text,
  meta: optional(object),
  mode: oneOf("exclusive", "shared"),
  permits: count,
  holdCount: count,
  fencingToken: count,
  fenceFloor: optional(count),
  leaseMs: count,
  remainingMs: count,
  renewAfterMs: count,
  version: count,
  serverTimeMs: count,
}) as CheckOf<"isStarted">;
export const isReplayed = members({
  state: oneOf("succeeded", "failed"),
  attempt: count,
  resultOmitted: optional(oneOf(true)),
}) as CheckOf<"isReplayed">;
export const isWaiting = members({
  state: oneOf("waiting"),
  position: count,
  retryAfterMs: count,
  pollWithinMs: count,
  condition: optional(text),
}) as CheckOf<"isWaiting">;
export const isAsleep = members({ state: oneOf("asleep"), position: count }) as CheckOf<"isAsleep">;
export const isSet = members({
  leaseId: text,
  fencingTokens: mapOf(count),
  leaseMs: count,
  remainingMs: count,
  renewAfterMs: count,
  serverTimeMs: count,
}) as CheckOf<"isSet">;
export const isLeaseState = oneOf("released", "expired", "lost", "transferred", "never", "unknown") as CheckOf<"isLeaseState">;
export const isSetEnded = members({ states: mapOf(isLeaseState) }) as CheckOf<"isSetEnded">;
export const isRenewals = members({ results: listOf(object) }) as CheckOf<"isRenewals">;
export const isNotified = members({ notified: count }) as CheckOf<"isNotified">;
export const isBreaking = members({ breakInMs: count }) as CheckOf<"isBreaking">;
export const isRecorded = members({ recorded: oneOf(true) }) as CheckOf<"isRecorded">;
export const isReset = members({ reset: oneOf(true) }) as CheckOf<"isReset">;
export const isInspection = members({
  key: text,
  version: count,
  mode: oneOf("exclusive", "shared"),
  limit: optional(count),
  fencingToken: count,
  holders: listOf(
    members({
      owner: text,
      mode: oneOf("exclusive", "shared"),
      permits: count,
      fencingToken: count,
      heldMs: count,
      remainingMs: count,
      leaseMs: count,
      breaking: optional(oneOf(true)),
    }),
  ),
  waiters: listOf(
    members({
      owner: text,
      mode: oneOf("exclusive", "shared"),
      permits: optional(count),
      priority: count,
      position: count,
      waitingMs: count,
      offered: optional(oneOf(true)),
      asleep: optional(oneOf(true)),
    }),
  ),
  waitSet: optional(listOf(members({ owner: text, condition: text, waitingMs: count }))),
  recent: optional(listOf(members({ askedAgoMs: count, ending: text }))),
  lapsed: optional(listOf(members({ owner: text, fencingToken: count, heldMs: count, endedAgoMs: count }))),
  ifBroken: optional(listOf(members({ fencingToken: count, breakInMs: count, next: listOf(count) }))),
}) as CheckOf<"isInspection">;
export const isList = members({ namespace: text, items: listOf(isInspection), cursor: optional(text) }) as CheckOf<"isList">;
export const isRun = members({
  key: text,
  version: count,
  state: text,
  retryable: optional(flag),
  attempt: count,
  takeover: optional(oneOf(true)),
  fencingToken: count,
  owner: optional(text),
  heldMs: optional(count),
  remainingMs: optional(count),
  endedAgoMs: optional(count),
  tookMs: optional(count),
  keptForMs: optional(either(count, oneOf("forever"))),
  resultOmitted: optional(oneOf(true)),
  errorName: optional(text),
}) as CheckOf<"isRun">;
export const isRunList = members({ items: listOf(isRun), cursor: optional(text) }) as CheckOf<"isRunList">;
export const isTaken = members({ startInMs: count, remaining: listOf(count) }) as CheckOf<"isTaken">;
export const isLimit = members({
  key: text,
  rates: listOf(members({ count, perMs: count, burst: count })),
  remaining: listOf(count),
  nextInMs: optional(count),
  fullInMs: count,
}) as CheckOf<"isLimit">;
export const isLimitList = members({ items: listOf(isLimit), cursor: optional(text) }) as CheckOf<"isLimitList">;
export const isHealth = members({
  status: oneOf("ok"),
  version: text,
  serverTimeMs: count,
  caller: optional(members({ namespace: text, principal: text, format: count, clockErrorMs: count, retentionMs: count })),
  doors: optional(listOf(text)),
}) as CheckOf<"isHealth">;
export const isProblem = members({
  code: text,
  detail: text,
  instance: optional(text),
  definite: flag,
  retry: oneOf("same", "later", "new-lease", "never"),
  retryAfterMs: optional(count),
  holders: optional(
    listOf(
      members({ owner: text, mode: oneOf("exclusive", "shared"), permits: count, fencingToken: count, heldMs: count, remainingMs: count }),
    ),
  ),
  holdersOmitted: optional(count),
  reason: optional(text),
  blocking: optional(listOf(text)),
  lost: optional(listOf(text)),
  field: optional(text),
  serverTimeMs: optional(count),
  leaseIdAboveMs: optional(count),
}) as CheckOf<"isProblem">;
