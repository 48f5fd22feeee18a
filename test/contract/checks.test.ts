/**
 * The client's checks of answers are those of the messages: for each message, each of its members in turn is left out, or has a value of
 * another type, and both must judge alike. Differences have a reason.
 */
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import * as answers from "../../lib/contract/checks.js";
import { ANSWERS } from "../../lib/contract/answers.js";

const ID = "01a2ce8b-d400-7145-b733-952723412670";
const HOLDER = { owner: "me", mode: "exclusive", permits: 1, fencingToken: 7, heldMs: 5, remainingMs: 6 };
const LEASE = {
  ...{ key: "k", leaseId: ID, owner: "", mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 7, fenceFloor: 6 },
  ...{ leaseMs: 3000, remainingMs: 2990, renewAfterMs: 1000, version: 4, serverTimeMs: 1, meta: { a: 1 } },
};
const INSPECTION = {
  ...{ key: "k", version: 4, mode: "shared", limit: 2, fencingToken: 7 },
  holders: [{ ...HOLDER, leaseMs: 3000, breaking: true }],
  waiters: [{ owner: "", mode: "shared", priority: 0, position: 1, waitingMs: 3, offered: true }],
  waitSet: [{ owner: "", condition: "ready", waitingMs: 3 }],
  recent: [{ askedAgoMs: 3, ending: "released" }],
};
const RUN = {
  ...{ key: "k", version: 4, state: "failed", retryable: false, attempt: 1, takeover: true, fencingToken: 7, owner: "" },
  ...{ heldMs: 1, remainingMs: 1, keptForMs: 1, checkpoint: 1, result: 1, error: 1, resultOmitted: true },
};
const LIMIT = { key: "k", rates: [{ count: 5, perMs: 1000, burst: 5 }], remaining: [4], fullInMs: 200 };

/** Each check, the schema of the same message, and a message with all of its members. */
const MESSAGES: Readonly<Record<keyof typeof answers, readonly [is: (value: unknown) => boolean, v.GenericSchema, whole: unknown]>> = {
  isLease: [answers.isLease, ANSWERS.Lease, LEASE],
  isStarted: [answers.isStarted, ANSWERS.Started, { ...LEASE, state: "running", attempt: 1, takeover: false, checkpoint: 1 }],
  isReplayed: [
    answers.isReplayed,
    ANSWERS.StartedOrReplayed.options[1],
    { state: "succeeded", attempt: 1, result: 1, error: 1, resultOmitted: true },
  ],
  isWaiting: [answers.isWaiting, ANSWERS.Waiting, { state: "waiting", position: 1, retryAfterMs: 1, pollWithinMs: 1, condition: "ready" }],
  isAsleep: [answers.isAsleep, ANSWERS.Queued.options[1], { state: "asleep", position: 1 }],
  isSet: [
    answers.isSet,
    ANSWERS.LeaseSet,
    { leaseId: ID, fencingTokens: { a: 1 }, leaseMs: 3000, remainingMs: 1, renewAfterMs: 1, serverTimeMs: 1 },
  ],
  isLeaseState: [answers.isLeaseState, ANSWERS.SetStates.entries.states.value, "expired"],
  isSetEnded: [answers.isSetEnded, ANSWERS.SetStates, { states: { a: "lost", b: "unknown" } }],
  isRenewals: [answers.isRenewals, ANSWERS.Renewals, { results: [{ status: 200, ...LEASE }] }],
  isNotified: [answers.isNotified, ANSWERS.Notified, { notified: 1 }],
  isBreaking: [answers.isBreaking, ANSWERS.Break, { breakInMs: 1 }],
  isRecorded: [answers.isRecorded, ANSWERS.Recorded, { recorded: true }],
  isReset: [answers.isReset, ANSWERS.Reset, { reset: true }],
  isInspection: [answers.isInspection, ANSWERS.Inspection, INSPECTION],
  isList: [answers.isList, ANSWERS.List, { namespace: "default", items: [INSPECTION], cursor: "k" }],
  isRun: [answers.isRun, ANSWERS.Run, RUN],
  isRunList: [answers.isRunList, ANSWERS.RunList, { items: [RUN], cursor: "k" }],
  isTaken: [answers.isTaken, ANSWERS.Taken, { startInMs: 1, remaining: [1] }],
  isLimit: [answers.isLimit, ANSWERS.Limit, LIMIT],
  isLimitList: [answers.isLimitList, ANSWERS.LimitList, { items: [LIMIT], cursor: "k" }],
  isHealth: [
    answers.isHealth,
    ANSWERS.Health,
    {
      ...{ status: "ok", version: "1", serverTimeMs: 1 },
      caller: { namespace: "n", principal: "p", format: 1, clockErrorMs: 1, retentionMs: 1 },
    },
  ],
  isProblem: [
    answers.isProblem,
    ANSWERS.Problem,
    {
      ...{ type: "/problems/locked", title: "", status: 423, code: "locked", detail: "", instance: "/v1/locks/k", definite: true },
      ...{ retry: "later", retryAfterMs: 1, holders: [HOLDER], holdersOmitted: 1, reason: "taken", blocking: ["a"], lost: ["a"] },
      ...{ field: "key", serverTimeMs: 1, leaseIdAboveMs: 1 },
    },
  ],
};

/** The values that take the place of a member. */
const OTHERS: readonly unknown[] = [undefined, null, "soon", -1, 1.5, 2 ** 60, true, {}, [null]];

/** Differences: the path of a member, or its end, and the reason. */
const LENIENT: readonly (readonly [path: RegExp, reason: string])[] = [
  [/(?:^|\.)(?:key|leaseId)$/, "compared with the request, which is checked"],
  [/(?:^|\.)(?:state|ending|code|reason)$/, "a newer service may have further words"],
  [/^(?:type|title|status)$|\.(?:breaking|offered)$/, "not read, or only to be shown"],
  [/^results\./, "checked one by one, by the result's own status"],
  [/(?:^|\.)(?:permits|holdCount|attempt|position|leaseMs|limit|holdersOmitted)$/, "bounds are the service's"],
  [/(?:^|\.)(?:takeover|resultOmitted|retryable)$/, "false is as good as absent"],
];

/** Returns each path of a member, those of items included. */
function pathsOf(value: unknown, before: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null || before.at(-1) === "meta") return [];
  return Object.entries(value).flatMap(([name, member]) => [[...before, name], ...pathsOf(member, [...before, name])]);
}

/** Returns `value` with `other` at `path`. Undefined removes the member. */
function replaced(value: unknown, [name = "", ...rest]: readonly string[], other: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown, at) => (String(at) === name ? inside(item) : item));
  const { [name]: member, ...others } = value as Readonly<Record<string, unknown>>;
  const next = inside(member);
  return next === undefined ? others : { ...others, [name]: next };

  function inside(member: unknown): unknown {
    return rest.length === 0 ? other : replaced(member, rest, other);
  }
}

describe.each(Object.entries(MESSAGES))("%s", (_name, [is, schema, whole]) => {
  it("accepts the whole message, and each that the schema accepts", () => {
    expect([v.safeParse(schema, whole).success, is(whole)]).toEqual([true, true]);
    for (const path of pathsOf(whole))
      for (const other of OTHERS) {
        const changed = replaced(whole, path, other);
        if (v.safeParse(schema, changed).success) expect(is(changed), `${path.join(".")} ${JSON.stringify(other)}`).toBe(true);
      }
  });

  it("refuses what the schema refuses, with few exceptions", () => {
    for (const path of pathsOf(whole))
      for (const other of OTHERS) {
        const [changed, name] = [replaced(whole, path, other), path.join(".")];
        if (v.safeParse(schema, changed).success || LENIENT.some(([lenient]) => lenient.test(name))) continue;
        expect(is(changed), `${name} ${JSON.stringify(other)}`).toBe(false);
      }
  });

  it("refuses what is no message, and accepts members that it doesn't know", () => {
    for (const other of [undefined, null, "", 1, [], {}]) expect(is(other), JSON.stringify(other)).toBe(false);
    if (typeof whole === "object") expect(is({ ...whole, later: 1 })).toBe(true);
  });
});

it("a lease is refused if a time or a token is none, whatever it is instead", () => {
  for (const name of ["fencingToken", "leaseMs", "remainingMs", "renewAfterMs", "version", "serverTimeMs"])
    for (const other of [undefined, null, "soon", "1000", -1, 1.5, Number.NaN, true, {}])
      expect(answers.isLease({ ...LEASE, [name]: other }), `${name} ${JSON.stringify(other)}`).toBe(false);
});
