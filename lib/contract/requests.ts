/**
 * The requests' bodies and queries, defined once: validation, types and the OpenAPI document all come from these schemas.
 * Unknown members are refused, by name. A function, here or in the service, checks a rule about several fields;
 * `v.metadata` expresses it as JSON Schema for the document.
 */
import * as v from "valibot";
import { JSON_DEPTH } from "../core/canonical.js";
import type { AcquireParameters, AcquireRequest as LeaseRequest, ConditionRequest, RenewRequest as Renewal } from "../core/api/locks.js";
import type { AcquireSetRequest as SetOfLocks } from "../core/api/sets.js";
import { DEFAULTS, LIMITS } from "../core/limits.js";
import { type Entries, described, integer, text } from "./fields.js";
import { condition, details, fencingToken, json, Key, LeaseId, leaseMs, mode, owner, runState } from "./fields.js";

const tokenRule = `must be 1 to ${LIMITS.taskTokenChars} printable characters`;
/** The token of a task, in a body or in the header {@link TASK_TOKEN_HEADER}. */
export const TaskToken = v.pipe(v.string(tokenRule), v.regex(/^[!-~]+$/, tokenRule), v.maxLength(LIMITS.taskTokenChars, tokenRule));
/** The header in which a task of Step Functions sends its token. */
export const TASK_TOKEN_HEADER = "Holdfast-Task-Token";
/** The headers of requests that have a rule. */
export const HEADERS: Readonly<Record<string, v.GenericSchema>> = { [TASK_TOKEN_HEADER]: TaskToken };
const callbackRule = `must be 1 to ${LIMITS.callbackIdChars} characters in base64`;
const CallbackId = v.pipe(
  v.string(callbackRule),
  v.regex(/^[A-Za-z0-9+/]+={0,2}$/, callbackRule),
  v.maxLength(LIMITS.callbackIdChars, callbackRule),
);
const WakeTarget = v.pipe(
  v.strictObject({ taskToken: v.optional(TaskToken), callbackId: v.optional(CallbackId) }, "must be an object"),
  v.check(
    ({ taskToken, callbackId }) => (taskToken === undefined) !== (callbackId === undefined),
    "needs a taskToken or a callbackId, and not both",
  ),
  v.description("Wait asleep, for the seconds of `Prefer: wait=N`: the service tells this task or callback when the lease has the key."),
  v.metadata({ minProperties: 1, maxProperties: 1 }),
);
const arnRule = `must be the ARN of an execution, standard or durable, of at most ${LIMITS.executionArnChars} characters`;
/** The names of a state machine and its executions may have letters beyond ASCII. */
const EXECUTION_ARN =
  /^arn:[\w-]+:(states:[\w-]+:\d+:execution:[!-9;-~\u00a1-\uffff]+:[!-9;-~\u00a1-\uffff]+|lambda:[\w-]+:\d+:function:[\w-]+:[\w$.-]+\/durable-execution\/[\w/-]+)$/;
const Tie = described(
  v.strictObject(
    { executionArn: v.pipe(v.string(arnRule), v.regex(EXECUTION_ARN, arnRule), v.maxLength(LIMITS.executionArnChars, arnRule)) },
    "must be an object",
  ),
  `Renew the lease while this runs, and release it after that; \`leaseMs\` of ${LIMITS.agentLeaseMinMs} at least.`,
);

const acquireFields = v.strictObject({
  leaseMs: v.optional(leaseMs, DEFAULTS.leaseMs),
  ...details,
  owner: v.optional(owner, ""),
  mode: v.optional(mode, "exclusive"),
  limit: v.optional(
    described(integer(1, LIMITS.permitsMax), "How many permits of the key are out at once; 1 is a mutex. A shared lease takes no permits."),
    1,
  ),
  permits: v.optional(described(integer(1, LIMITS.permitsMax), "How many of them this lease takes: at most `limit`."), 1),
  scope: v.optional(
    described(text(LIMITS.scopeMaxChars, LIMITS.scopeMinChars), "Makes acquires of one request reentrant: unguessable, never shown."),
  ),
  priority: v.optional(described(integer(0, LIMITS.priorityMax), "In the queue: higher ones first, then in the order of arrival."), 0),
  wake: v.optional(WakeTarget),
  tie: v.optional(Tie),
});

/** The fields of an acquire that is exclusive, and of one of several keys, which does not queue. */
const { mode: _mode, limit: _limit, permits: _permits, wake: _wake, tie: _tie, ...exclusive } = acquireFields.entries;
const { priority: _priority, ...ofSet } = exclusive;

/** JSON Schema can't compare two fields, so it only limits `permits` to 1 without a `limit` above 1. */
const AcquireRequest = v.pipe(
  acquireFields,
  v.metadata({
    allOf: [
      { if: { properties: { limit: { maximum: 1 } } }, then: { properties: { permits: { maximum: 1 } } } },
      { if: { required: ["mode"], properties: { mode: { const: "shared" } } }, then: { properties: { limit: { maximum: 1 } } } },
      { if: { required: ["tie"] }, then: { required: ["leaseMs"], properties: { leaseMs: { minimum: LIMITS.agentLeaseMinMs } } } },
    ],
  }),
);

const RenewRequest = v.strictObject({ leaseMs: v.optional(leaseMs), meta: details.meta });

const ModeRequest = v.strictObject({ mode, fencingToken });

const TransferRequest = v.strictObject({ leaseId: LeaseId, owner: v.optional(owner), leaseMs: v.optional(leaseMs), meta: details.meta });

const WaitRequest = v.strictObject({
  condition,
  leaseId: described(LeaseId, "A new id, under which the key is taken back."),
  ...exclusive,
});

const NotifyRequest = v.strictObject({
  condition,
  sequence: v.optional(
    described(
      integer(1, Number.MAX_SAFE_INTEGER),
      "1 for the lease's first notify, one more for each new one: a repeated request wakes no other. Without it, each request is a new notify.",
    ),
  ),
  all: v.optional(v.boolean("must be true or false"), false),
});

const BreakRequest = v.strictObject({
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

const setKeysRule = `must be 1 to ${LIMITS.setKeys} different keys`;
/** JSON Schema can't say that a repeated key counts once, so the document has no `maxItems`. */
const isSetSize = (keys: string[]): boolean => keys.length > 0 && new Set(keys).size <= LIMITS.setKeys;
const setKeysWords = `At most ${LIMITS.setKeys} different ones.`;
const setKeys = v.pipe(v.array(Key, setKeysRule), v.check(isSetSize, setKeysRule), v.metadata({ minItems: 1 }));
const setKeysAlone = described(setKeys, setKeysWords);

const AcquireSetRequest = v.pipe(
  v.strictObject({
    keys: v.optional(described(setKeys, `Either these, each for itself alone, or \`locks\`. ${setKeysWords}`)),
    locks: v.optional(
      v.pipe(
        v.array(v.strictObject({ key: Key, mode: v.optional(mode, "exclusive") }), setKeysRule),
        v.check((locks) => isSetSize(locks.map(({ key }) => key)), setKeysRule),
        v.metadata({ minItems: 1 }),
        v.description(setKeysWords),
      ),
    ),
    ...ofSet,
  }),
  v.forward(
    v.check(({ keys, locks }) => (keys === undefined) !== (locks === undefined), "is required, or locks in its place, and not both"),
    ["keys"],
  ),
  v.metadata({ oneOf: [{ required: ["keys"] }, { required: ["locks"] }] }),
);

const RenewSetRequest = v.strictObject({ keys: setKeysAlone, leaseMs: v.optional(leaseMs) });

const ReleaseSetRequest = v.strictObject({ keys: setKeysAlone });

const renewalsRule = `must be 1 to ${LIMITS.renewalsMax} leases`;

const RenewalsRequest = v.strictObject({
  leases: v.pipe(
    v.array(v.strictObject({ key: Key, leaseId: LeaseId, leaseMs: v.optional(leaseMs) }), renewalsRule),
    v.minLength(1, renewalsRule),
    v.maxLength(LIMITS.renewalsMax, renewalsRule),
  ),
});

/** The query of `GET /v1/locks`. */
export const ListQuery = v.strictObject({ ...page, owner: v.optional(owner) });

/** A stored value. The service counts its bytes. */
const stored = (maxBytes: number) => described(json, `At most ${maxBytes} bytes as JSON, nested at most ${JSON_DEPTH} deep.`);
const keepResultRule = `must be "forever" or a whole number from ${LIMITS.keepResultMinMs} to ${LIMITS.keepResultMaxMs}`;

const StartRequest = v.strictObject({
  fingerprint: v.optional(described(text(LIMITS.fingerprintChars, 1), "What the run is about; another under the same key is refused.")),
  leaseMs: v.optional(leaseMs, DEFAULTS.leaseMs),
  keepResultMs: v.optional(
    described(
      v.union([v.literal("forever"), integer(LIMITS.keepResultMinMs, LIMITS.keepResultMaxMs, keepResultRule)], keepResultRule),
      "How long the outcome is kept, in ms.",
    ),
    DEFAULTS.keepResultMs,
  ),
  maxAttempts: v.optional(described(integer(0, LIMITS.attemptsMax), "0: no end."), DEFAULTS.maxAttempts),
  owner: v.optional(owner, ""),
});

const RenewRunRequest = v.strictObject({
  leaseMs: v.optional(leaseMs),
  checkpoint: v.optional(stored(LIMITS.checkpointBytes)),
  sequence: v.optional(
    described(
      integer(1, Number.MAX_SAFE_INTEGER),
      "The checkpoint's place among those of this lease: a late duplicate does not undo a later one.",
    ),
  ),
});

const Succeeded = v.pipe(
  v.strictObject({
    state: v.literal("succeeded"),
    result: v.optional(stored(LIMITS.resultBytes)),
    resultOmitted: v.optional(described(v.literal(true, "must be true, or left out"), "In place of a `result`.")),
  }),
  v.metadata({ not: { required: ["result", "resultOmitted"] } }),
);

const Failed = v.strictObject({
  state: v.literal("failed"),
  error: stored(LIMITS.resultBytes),
  retryable: v.boolean("must be true or false"),
});

const OutcomeRequest = v.variant("state", [Succeeded, Failed], 'must be "succeeded" or "failed"');

const ResetRequest = v.strictObject({ reason: text(LIMITS.reasonChars, 1) });

const ResetRunRequest = v.strictObject({
  ...ResetRequest.entries,
  fencingToken: v.optional(described(fencingToken, "The token of the run that was seen: one that began since isn't forgotten.")),
});

/** The query of `GET /v1/runs`. */
export const RunListQuery = v.strictObject({ ...page, state: v.optional(runState) });

const ratesRule = `must be 1 to ${LIMITS.ratesMax} rates`;
const rateCount = integer(1, LIMITS.rateCountMax);

const Rate = v.strictObject({
  count: described(rateCount, "The most that starts in any `perMs`; with a `burst`, how much flows in in each."),
  perMs: integer(LIMITS.ratePerMinMs, LIMITS.ratePerMaxMs),
  burst: v.optional(
    described(rateCount, "How much at once. By default a quarter of `count`, rounded up; then `count - burst + 1` flow in."),
  ),
});

const rates = v.pipe(
  v.array(Rate, ratesRule),
  v.minLength(1, ratesRule),
  v.maxLength(LIMITS.ratesMax, ratesRule),
  v.description("How much, per how long. All users of the limit give the same."),
);

const TakeRequest = v.strictObject({
  rates,
  cost: v.optional(described(rateCount, "At most the burst of every rate."), 1),
  waitMs: v.optional(
    described(integer(0, LIMITS.takeWaitMaxMs), "A start in the future is granted if it is that near; 0: now or not at all."),
    0,
  ),
});

const ShutRequest = v.strictObject({
  rates,
  forMs: described(integer(1, LIMITS.takeWaitMaxMs), "Nothing starts for so long. A limit that is shut for longer stays so."),
  ...ResetRequest.entries,
});

/** The query of `GET /v1/limits`. */
export const LimitListQuery = v.strictObject(page);

const flag = v.optional(v.picklist(["0", "1"], "must be 0 or 1"), "0");

/** The query of `GET /v1/health`. */
export const HealthQuery = v.strictObject({ deep: flag, caller: flag });

/** The bodies, by their names in the OpenAPI document. The compiler asks for each parameter of an acquire. */
export const REQUESTS = {
  AcquireRequest,
  RenewRequest,
  ModeRequest,
  TransferRequest,
  WaitRequest,
  NotifyRequest,
  BreakRequest,
  AcquireSetRequest,
  RenewSetRequest,
  ReleaseSetRequest,
  RenewalsRequest,
  StartRequest,
  RenewRunRequest,
  OutcomeRequest,
  ResetRequest,
  ResetRunRequest,
  TakeRequest,
  ShutRequest,
} as const satisfies Record<string, v.GenericSchema<unknown, object>> & {
  readonly AcquireRequest: Entries<AcquireParameters & Pick<LeaseRequest, "wake">>;
  readonly RenewRequest: Entries<Pick<Renewal, "leaseMs" | "meta">>;
  readonly WaitRequest: Entries<ConditionRequest["to"]>;
  readonly AcquireSetRequest: Entries<Omit<SetOfLocks, "leaseId">>;
};

/** Parts of bodies that have a name in the OpenAPI document. */
export const REQUEST_PARTS = { Succeeded, Failed, Rate } as const;
