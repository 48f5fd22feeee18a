/**
 * Every message of the API, defined once: validation, types and the OpenAPI document all come from these schemas.
 * Unknown members are refused, by name. A function, here or in the service, checks a rule about several fields;
 * `v.metadata` expresses it as JSON Schema for the document.
 */
import * as v from "valibot";
import { ERRORS } from "../core/errors.js";
import { isShallow, JSON_DEPTH } from "../core/canonical.js";
import { DEFAULTS, LIMITS } from "../core/limits.js";
import { condition, durationMs, fencingToken, integer, jsonBytes, Key, LeaseId, leaseMs, mode, owner, text } from "./fields.js";
import { Holder, Inspection } from "./inspection.js";

export { Key, KEY_RULE, LeaseId } from "./fields.js";
export { Health, HealthQuery } from "./health.js";
export { Inspection } from "./inspection.js";

const metaRule = `must be an object of at most ${LIMITS.metaBytes} bytes as JSON`;
const meta = v.pipe(
  v.custom<Readonly<Record<string, unknown>>>((value) => typeof value === "object" && value !== null && !Array.isArray(value), metaRule),
  v.check((value) => jsonBytes(value) <= LIMITS.metaBytes, metaRule),
  v.description(`At most ${LIMITS.metaBytes} bytes as JSON.`),
);
const renewAfterMs = v.pipe(
  durationMs,
  v.description("When to renew: after a third of the lease; the larger the key's record, the later."),
);

const acquireFields = v.strictObject({
  leaseMs: v.optional(leaseMs, DEFAULTS.leaseMs),
  owner: v.optional(owner, ""),
  mode: v.optional(mode, "exclusive"),
  limit: v.optional(
    v.pipe(
      integer(1, LIMITS.permitsMax),
      v.description("How many permits of the key are out at once; 1 is a mutex. A shared lease takes no permits."),
    ),
    1,
  ),
  permits: v.optional(v.pipe(integer(1, LIMITS.permitsMax), v.description("How many of them this lease takes: at most `limit`.")), 1),
  scope: v.optional(
    v.pipe(
      text(LIMITS.scopeMaxChars, LIMITS.scopeMinChars),
      v.description("Makes acquires of one request reentrant: unguessable, never shown."),
    ),
  ),
  priority: v.optional(
    v.pipe(integer(0, LIMITS.priorityMax), v.description("In the queue: higher ones first, then in the order of arrival.")),
    0,
  ),
  meta: v.optional(meta),
});

/** `PUT /v1/locks/{key}/leases/{leaseId}`. JSON Schema can't compare two fields, so it only limits `permits` to 1 without a `limit` above 1. */
export const AcquireBody = v.pipe(
  acquireFields,
  v.metadata({
    allOf: [
      { if: { properties: { limit: { maximum: 1 } } }, then: { properties: { permits: { maximum: 1 } } } },
      { if: { required: ["mode"], properties: { mode: { const: "shared" } } }, then: { properties: { limit: { maximum: 1 } } } },
    ],
  }),
);

/** `POST …/renew` */
export const RenewBody = v.strictObject({ leaseMs: v.optional(leaseMs), meta: v.optional(meta) });

/** `POST …/mode` */
export const ModeBody = v.strictObject({ mode, fencingToken });

/** `POST …/transfer` */
export const TransferBody = v.strictObject({ leaseId: LeaseId, owner: v.optional(owner), leaseMs: v.optional(leaseMs) });

/** `POST …/wait` */
export const WaitBody = v.strictObject({
  condition,
  leaseId: v.pipe(LeaseId, v.description("A new id, under which the key is taken back.")),
  leaseMs: acquireFields.entries.leaseMs,
  owner: acquireFields.entries.owner,
  scope: acquireFields.entries.scope,
  priority: acquireFields.entries.priority,
  meta: acquireFields.entries.meta,
});

/** `POST …/notify` */
export const NotifyBody = v.strictObject({
  condition,
  sequence: v.optional(
    v.pipe(
      integer(1, Number.MAX_SAFE_INTEGER),
      v.description(
        "1 for the lease's first notify, one more for each new one: a repeated request wakes no other. Without it, each request is a new notify.",
      ),
    ),
  ),
  all: v.optional(v.boolean("must be true or false"), false),
});

/** `POST /v1/locks/{key}/break` */
export const BreakBody = v.strictObject({
  reason: text(LIMITS.reasonChars, 1),
  fencingToken,
  drainMs: v.optional(integer(0, LIMITS.drainMaxMs)),
});

const page = {
  prefix: v.optional(v.pipe(v.string(), v.regex(/^[A-Za-z0-9._:~-]{0,200}$/, "must be the beginning of a key"))),
  max: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[0-9]{1,3}$/, `must be a whole number from 1 to ${LIMITS.listMax}`),
      v.transform(Number),
      integer(1, LIMITS.listMax),
      v.metadata({ default: DEFAULTS.listMax }),
    ),
  ),
  cursor: v.optional(v.pipe(v.string(), v.regex(/^[A-Za-z0-9._:~-]{1,200}$/, "must be the cursor of an earlier page"))),
};

const setKeysRule = `must be 1 to ${LIMITS.setKeys} keys`;
const setKeys = v.pipe(v.array(Key, setKeysRule), v.minLength(1, setKeysRule), v.maxLength(LIMITS.setKeys, setKeysRule));

/** `PUT /v1/lock-sets/{leaseId}` */
export const AcquireSetBody = v.pipe(
  v.strictObject({
    keys: v.optional(v.pipe(setKeys, v.description("Either these, each for itself alone, or `locks`."))),
    locks: v.optional(
      v.pipe(
        v.array(v.strictObject({ key: Key, mode: v.optional(mode, "exclusive") }), setKeysRule),
        v.minLength(1, setKeysRule),
        v.maxLength(LIMITS.setKeys, setKeysRule),
      ),
    ),
    leaseMs: acquireFields.entries.leaseMs,
    owner: acquireFields.entries.owner,
    scope: acquireFields.entries.scope,
    meta: acquireFields.entries.meta,
  }),
  v.forward(
    v.check(({ keys, locks }) => (keys === undefined) !== (locks === undefined), "is required, or locks in its place, and not both"),
    ["keys"],
  ),
  v.metadata({ oneOf: [{ required: ["keys"] }, { required: ["locks"] }] }),
);

/** `POST /v1/lock-sets/{leaseId}/renew` */
export const RenewSetBody = v.strictObject({ keys: setKeys, leaseMs: v.optional(leaseMs) });

/** `POST /v1/lock-sets/{leaseId}/release` */
export const ReleaseSetBody = v.strictObject({ keys: setKeys });

const renewalsRule = `must be 1 to ${LIMITS.renewalsMax} leases`;

/** `POST /v1/renewals` */
export const RenewalsBody = v.strictObject({
  leases: v.pipe(
    v.array(v.strictObject({ key: Key, leaseId: LeaseId, leaseMs: v.optional(leaseMs) }), renewalsRule),
    v.minLength(1, renewalsRule),
    v.maxLength(LIMITS.renewalsMax, renewalsRule),
  ),
});

/** The query of `GET /v1/locks`. */
export const ListQuery = v.strictObject({ ...page, owner: v.optional(owner) });

const json = v.pipe(
  v.unknown(),
  v.check((value) => isShallow(value), `must be JSON, nested at most ${JSON_DEPTH} deep`),
);

/** A stored value. The service counts its bytes. */
const kept = (maxBytes: number) => v.pipe(json, v.description(`At most ${maxBytes} bytes as JSON, nested at most ${JSON_DEPTH} deep.`));
const keepResultRule = `must be "forever" or a whole number from ${LIMITS.keepResultMinMs} to ${LIMITS.keepResultMaxMs}`;

/** `PUT /v1/runs/{key}/leases/{leaseId}` */
export const StartBody = v.strictObject({
  fingerprint: v.optional(
    v.pipe(text(LIMITS.fingerprintChars, 1), v.description("What the run is about; another under the same key is refused.")),
  ),
  leaseMs: v.optional(leaseMs, DEFAULTS.leaseMs),
  keepResultMs: v.optional(
    v.pipe(
      v.union([v.literal("forever"), integer(LIMITS.keepResultMinMs, LIMITS.keepResultMaxMs, keepResultRule)], keepResultRule),
      v.description("How long the outcome is kept, in ms."),
    ),
    DEFAULTS.keepResultMs,
  ),
  maxAttempts: v.optional(v.pipe(integer(0, LIMITS.attemptsMax), v.description("0: no end.")), DEFAULTS.maxAttempts),
  owner: v.optional(owner, ""),
});

/** `POST …/renew` of a run */
export const RenewRunBody = v.strictObject({
  leaseMs: v.optional(leaseMs),
  checkpoint: v.optional(kept(LIMITS.checkpointBytes)),
  sequence: v.optional(
    v.pipe(
      integer(1, Number.MAX_SAFE_INTEGER),
      v.description("The checkpoint's place among those of this lease: a late duplicate does not undo a later one."),
    ),
  ),
});

/** `PUT …/outcome` */
export const OutcomeBody = v.variant(
  "state",
  [
    v.pipe(
      v.strictObject({
        state: v.literal("succeeded"),
        result: v.optional(kept(LIMITS.resultBytes)),
        resultOmitted: v.optional(v.pipe(v.literal(true, "must be true, or left out"), v.description("In place of a `result`."))),
      }),
      v.metadata({ not: { required: ["result", "resultOmitted"] } }),
    ),
    v.strictObject({ state: v.literal("failed"), error: kept(LIMITS.resultBytes), retryable: v.boolean("must be true or false") }),
  ],
  'must be "succeeded" or "failed"',
);

/** `POST /v1/runs/{key}/reset` */
export const ResetBody = v.strictObject({ reason: text(LIMITS.reasonChars, 1) });

const runState = v.picklist(["running", "interrupted", "succeeded", "failed"], "must be running, interrupted, succeeded or failed");

/** The query of `GET /v1/runs`. */
export const RunListQuery = v.strictObject({ ...page, state: v.optional(runState) });

/** A lease as its holder sees it. */
export const Lease = v.strictObject({
  key: Key,
  leaseId: LeaseId,
  owner,
  mode,
  permits: integer(1, LIMITS.permitsMax),
  holdCount: integer(1, LIMITS.leasesMax),
  fencingToken,
  fenceFloor: v.optional(
    v.pipe(durationMs, v.description("Of a shared lease or a permit: the token that a resource compares in place of its own.")),
  ),
  leaseMs,
  remainingMs: v.pipe(durationMs, v.description("Believe the lease this long, counted from when this request was sent.")),
  renewAfterMs,
  version: durationMs,
  serverTimeMs: v.pipe(durationMs, v.description("Epoch ms, for display only.")),
  meta: v.optional(meta),
});

/** In the queue: nothing is held yet. */
export const Waiting = v.strictObject({
  state: v.literal("waiting"),
  position: v.pipe(integer(1, 2 * LIMITS.waitersMax + LIMITS.leasesMax), v.description("1 is next.")),
  retryAfterMs: v.pipe(durationMs, v.description("When it is worth to ask again; 0: by the same request, now.")),
  pollWithinMs: v.pipe(durationMs, v.description("Poll within this time to keep the place.")),
  condition: v.optional(v.pipe(condition, v.description("It waits for a notify of this condition; absent: it is in the queue."))),
});

/** The number of leases that a notify woke. */
export const Notified = v.strictObject({ notified: integer(0, LIMITS.waitersMax) });

/** A set that is held. */
export const LeaseSet = v.strictObject({
  leaseId: LeaseId,
  fencingTokens: v.record(Key, fencingToken),
  leaseMs,
  remainingMs: v.pipe(durationMs, v.description("Of the key that has least; counted from when this request was sent.")),
  renewAfterMs,
  serverTimeMs: durationMs,
});

/** The state of each key of a set after its release. */
export const SetStates = v.strictObject({
  states: v.record(Key, v.picklist(["released", "expired", "lost", "transferred", "never", "unknown"])),
});

const attempt = v.pipe(integer(1, Number.MAX_SAFE_INTEGER), v.description("1 for the first."));

/** This caller runs the work: a lease, and the number of the attempt. */
export const Started = v.strictObject({
  state: v.literal("running"),
  attempt,
  takeover: v.pipe(v.boolean(), v.description("The attempt before this one never said how it ended.")),
  checkpoint: v.optional(json),
  ...Lease.entries,
});

/** The recorded outcome of the work. */
export const Replayed = v.strictObject({
  state: v.picklist(["succeeded", "failed"]),
  attempt,
  result: v.optional(json),
  error: v.optional(json),
  resultOmitted: v.optional(v.literal(true)),
});

/** The answer to a start that was carried out before: the caller runs already, or the outcome is recorded. */
export const StartedOrReplayed = v.variant("state", [Started, Replayed]);

/** The outcome is recorded. */
export const Recorded = v.strictObject({ recorded: v.literal(true) });

/** Everything that any caller of the namespace may see of a run. */
export const Run = v.strictObject({
  key: Key,
  version: durationMs,
  state: runState,
  retryable: v.optional(v.boolean()),
  attempt,
  takeover: v.optional(v.pipe(v.literal(true), v.description("The attempt before this one ended without an outcome."))),
  fencingToken,
  owner: v.optional(owner),
  heldMs: v.optional(durationMs),
  remainingMs: v.optional(durationMs),
  endedAgoMs: v.optional(v.pipe(durationMs, v.description("For an interrupted run: the time since the end of its lease."))),
  keptForMs: v.optional(v.union([durationMs, v.literal("forever")])),
  checkpoint: v.optional(json),
  result: v.optional(json),
  error: v.optional(json),
  resultOmitted: v.optional(v.literal(true)),
});

/** A page of runs. */
export const RunList = v.strictObject({ items: v.array(Run), cursor: v.optional(v.string()) });

/** The run is deleted. */
export const Reset = v.strictObject({ reset: v.literal(true) });

/** A page of held keys. */
export const List = v.strictObject({ namespace: v.string(), items: v.array(Inspection), cursor: v.optional(v.string()) });

/** The answer to a break: over now, or in `breakInMs`. */
export const Break = v.strictObject({ breakInMs: durationMs });

/** `application/problem+json`, RFC 9457. */
export const Problem = v.strictObject({
  type: v.string(),
  title: v.string(),
  status: integer(400, 599),
  code: v.picklist(Object.keys(ERRORS) as [keyof typeof ERRORS]),
  detail: v.string(),
  instance: v.optional(v.string()),
  definite: v.pipe(v.boolean(), v.description("The operation certainly did not happen.")),
  retry: v.picklist(["same", "later", "new-lease", "never"]),
  retryAfterMs: v.optional(durationMs),
  holders: v.optional(v.array(Holder)),
  holdersOmitted: v.optional(v.pipe(integer(1, LIMITS.leasesMax), v.description("How many more hold the key than `holders` names."))),
  reason: v.optional(v.picklist(["expired", "taken", "broken", "released", "transferred", "never"])),
  blocking: v.optional(v.array(Key)),
  lost: v.optional(v.array(Key)),
  field: v.optional(v.string()),
  serverTimeMs: v.optional(durationMs),
  leaseIdAboveMs: v.optional(durationMs),
});

/** One answer per heartbeat: a lease or a problem, each with its key and status. */
export const Renewals = v.strictObject({
  results: v.array(
    v.union([v.strictObject({ status: v.literal(200), ...Lease.entries }), v.strictObject({ key: Key, ...Problem.entries })]),
  ),
});

/** The body of a problem document. */
export type ProblemBody = v.InferOutput<typeof Problem>;
