/**
 * The authorization matrix: every route, what its request asks for of an owner's leases, and the answer that each caller gets. A route has a
 * row for every way in which a caller might reach what is another's.
 */
import type { OperationName } from "../../lib/contract/routes.js";
import { ACQUIRE, RENEW_RUN, START, COMPLETE_RUN } from "../support/direct-service.js";
import type { EventParts } from "../support/http-event.js";
import { leaseIdAt } from "../support/lease-ids.js";
import type { Reply } from "../support/reply.js";

/** Everything that the owner has before the request: a lock, a set, a run and an ended run, and a lease that was handed over. */
export interface Owned {
  /** The owner's key: of the lock and of the run that is under way. */
  readonly key: string;
  readonly leaseId: string;
  readonly fencingToken: number;
  /** The secret that makes an acquire nest in the owner's lock. */
  readonly scope: string;
  readonly setId: string;
  readonly setKeys: readonly string[];
  readonly runId: string;
  /** The key of a run that has succeeded. */
  readonly endedKey: string;
  readonly endedRunId: string;
  /** A key whose lease was transferred to `handedId`, which nobody has used yet. */
  readonly handedKey: string;
  readonly handedId: string;
  /** An id that nobody has used. */
  readonly newId: string;
}

/** Sends a request of the owner. */
export type AskAsOwner = (routeKey: string, parts: Partial<EventParts>) => Promise<Reply>;

const SET = "PUT /v1/lock-sets/{leaseId}";
const TRANSFER = "POST /v1/locks/{key}/leases/{leaseId}/transfer";
/** The owner's requests about the lock and the run, which others send again. */
const lockBody = ({ scope }: Pick<Owned, "scope">) => ({ owner: "checkout-7", scope });
const TAKE_BODY = { rates: [{ count: 5, perMs: 60_000 }] };
const RUN_BODY = { owner: "billing-3", fingerprint: "the payload's fingerprint" };

/** Acquires what the owner has, under keys that begin with `key`. */
export async function own(ask: AskAsOwner, key: string, nowMs: number): Promise<Owned> {
  const newId = (): string => leaseIdAt(nowMs);
  const [leaseId, setId, runId, endedRunId, handedFrom, handedId] = [newId(), newId(), newId(), newId(), newId(), newId()];
  const [endedKey, handedKey, setKeys] = [`${key}.ended`, `${key}.handed`, [`${key}.a`, `${key}.b`]];
  const scope = `scope-of-${newId()}`;
  const [held] = await Promise.all([
    ask(ACQUIRE, { key, leaseId, body: lockBody({ scope }) }),
    ask("POST /v1/limits/{key}/takes", { key, body: TAKE_BODY }),
    ask(SET, { leaseId: setId, body: { keys: setKeys } }),
    ask(START, { key, leaseId: runId, body: RUN_BODY }).then(() =>
      ask(RENEW_RUN, { key, leaseId: runId, body: { checkpoint: "the owner's checkpoint" } }),
    ),
    ask(START, { key: endedKey, leaseId: endedRunId }).then(() =>
      ask(COMPLETE_RUN, { key: endedKey, leaseId: endedRunId, body: { state: "succeeded", result: "the owner's result" } }),
    ),
    ask(ACQUIRE, { key: handedKey, leaseId: handedFrom }).then(() =>
      ask(TRANSFER, { key: handedKey, leaseId: handedFrom, body: { leaseId: handedId } }),
    ),
  ]);
  const { fencingToken } = held.body as { fencingToken: number };
  const ids = { leaseId, setId, runId, endedRunId, handedId, newId: newId() };
  return { key, fencingToken, scope, setKeys, endedKey, handedKey, ...ids };
}

/** The callers of the matrix that have columns of their own. The others, with the same answer everywhere, have a rule each. */
export type Caller = "owner" | "peer" | "operator" | "tenant";

/** A request of a route, and its answer to each caller. `→ changed`: the owner's records are different afterwards. */
export interface Row extends Readonly<Record<Caller, string>> {
  readonly asks: string;
  readonly request: (of: Owned) => Partial<EventParts>;
}

/** IAM refuses the call, so it doesn't reach the function. */
export const AT_THE_GATEWAY = "403 at the gateway";
const FORBIDDEN = "403 forbidden";
/** A lease of which the caller's own namespace knows nothing. */
const LOST = "410 lease-lost";

const lockLease = ({ key, leaseId }: Owned) => ({ key, leaseId });
const runLease = ({ key, runId }: Owned) => ({ key, leaseId: runId });

/** The callers' answers, in the order owner, peer, operator, tenant. */
type Answers = readonly [string, string, string, string];
/** A change that its owner alone may make. */
const CHANGES: Answers = ["200 → changed", FORBIDDEN, FORBIDDEN, LOST];
/** The same answer to all callers of the namespace. Another tenant meets a free key, which it is granted. */
const toAll = (answer: string): Answers => [answer, answer, answer, "201"];
/** An answer to operators alone, and the answer to another tenant's operator. */
const toOperators = (answer: string, tenant: string): Answers => [answer, AT_THE_GATEWAY, answer, tenant];

function row(asks: string, request: Row["request"], [owner, peer, operator, tenant]: Answers): Row {
  return { asks, request, owner, peer, operator, tenant };
}

/** The rows of each route. A route without any doesn't compile, and fails the test that compares them with the routes. */
export const MATRIX: Readonly<Record<OperationName, readonly Row[]>> = {
  acquire: [
    row("the owner's lease", (of) => ({ ...lockLease(of), body: lockBody(of) }), ["200", FORBIDDEN, FORBIDDEN, "201"]),
    row("a lease of its own", ({ key, newId }) => ({ key, leaseId: newId }), toAll("423 locked")),
    row(
      "a place in the owner's queue",
      ({ key, newId }) => ({ key, leaseId: newId, headers: { prefer: "wait=0" } }),
      toAll("202 → changed"),
    ),
    // The scope is a secret that its callers share on purpose.
    row("a lease within the owner's scope", ({ key, newId, scope }) => ({ key, leaseId: newId, body: { scope } }), toAll("201 → changed")),
    // A transferred lease belongs to its first caller, so until then its id alone gives it.
    row("a lease that was handed over", ({ handedKey, handedId }) => ({ key: handedKey, leaseId: handedId }), toAll("200 → changed")),
  ],
  check: [row("the owner's lease", lockLease, ["200", FORBIDDEN, FORBIDDEN, LOST])],
  release: [row("the owner's lease", lockLease, ["204 released → changed", FORBIDDEN, FORBIDDEN, "204 never"])],
  renew: [row("the owner's lease", lockLease, CHANGES)],
  changeMode: [row("the owner's lease", (of) => ({ ...lockLease(of), body: { mode: "shared", fencingToken: of.fencingToken } }), CHANGES)],
  transfer: [row("the owner's lease", (of) => ({ ...lockLease(of), body: { leaseId: of.newId } }), CHANGES)],
  wait: [
    row("the owner's lease", (of) => ({ ...lockLease(of), body: { condition: "ready", leaseId: of.newId } }), [
      "202 → changed",
      FORBIDDEN,
      FORBIDDEN,
      LOST,
    ]),
  ],
  notify: [
    // Nobody waits, so nothing changes.
    row("the owner's lease", (of) => ({ ...lockLease(of), body: { condition: "ready" } }), ["200", FORBIDDEN, FORBIDDEN, LOST]),
  ],
  inspect: [row("the owner's key", ({ key }) => ({ key }), ["200 of 1", "200 of 1", "200 of 1", "200 of 0"])],
  break: [
    row(
      "the owner's hold",
      ({ key, fencingToken }) => ({ key, body: { reason: "stuck", fencingToken } }),
      toOperators("202 → changed", "404 not-found"),
    ),
  ],
  list: [row("the owner's key", ({ key }) => ({ query: { prefix: key } }), toOperators("200 of 4", "200 of 0"))],
  acquireSet: [
    row("the owner's set", ({ setId, setKeys }) => ({ leaseId: setId, body: { keys: setKeys } }), ["200", FORBIDDEN, FORBIDDEN, "201"]),
    row("the owner's keys", ({ newId, setKeys }) => ({ leaseId: newId, body: { keys: setKeys } }), toAll("423 locked")),
  ],
  renewSet: [row("the owner's set", ({ setId, setKeys }) => ({ leaseId: setId, body: { keys: setKeys } }), CHANGES)],
  releaseSet: [
    row("the owner's set", ({ setId, setKeys }) => ({ leaseId: setId, body: { keys: setKeys } }), [
      "200 released,released → changed",
      FORBIDDEN,
      FORBIDDEN,
      "200 never,never",
    ]),
  ],
  renewMany: [
    row("the owner's lease", ({ key, leaseId }) => ({ body: { leases: [{ key, leaseId }] } }), [
      "200 with 200 → changed",
      "200 with 403",
      "200 with 403",
      "200 with 410",
    ]),
  ],
  start: [
    row("the owner's run", (of) => ({ ...runLease(of), body: RUN_BODY }), ["200", FORBIDDEN, FORBIDDEN, "201"]),
    row("a run of its own", ({ key, newId }) => ({ key, leaseId: newId }), toAll("409 run-in-progress")),
    // A run's result is for every caller of the namespace that starts it again.
    row("an ended run", ({ endedKey, newId }) => ({ key: endedKey, leaseId: newId }), toAll("200")),
  ],
  checkRun: [row("the owner's run", runLease, ["200", FORBIDDEN, FORBIDDEN, LOST])],
  abandonRun: [row("the owner's run", runLease, ["204 released → changed", FORBIDDEN, FORBIDDEN, "204 never"])],
  renewRun: [row("the owner's run", (of) => ({ ...runLease(of), body: { checkpoint: "another's" } }), CHANGES)],
  complete: [
    row("the owner's run", (of) => ({ ...runLease(of), body: { state: "succeeded", result: "another's" } }), CHANGES),
    row(
      "the owner's run, with a large result",
      (of) => ({ ...runLease(of), body: { state: "succeeded", result: "another's".repeat(500) } }),
      CHANGES,
    ),
    row(
      "an ended run",
      ({ endedKey, endedRunId }) => ({ key: endedKey, leaseId: endedRunId, body: { state: "succeeded", result: "another's" } }),
      ["409 outcome-differs", FORBIDDEN, FORBIDDEN, LOST],
    ),
  ],
  run: [row("the owner's run", ({ key }) => ({ key }), ["200", "200", "200", "404 not-found"])],
  resetRun: [
    row("an ended run", ({ endedKey }) => ({ key: endedKey, body: { reason: "stuck" } }), toOperators("200 → changed", "404 not-found")),
  ],
  runs: [row("the owner's runs", ({ key }) => ({ query: { prefix: key } }), toOperators("200 of 2", "200 of 0"))],
  // A limit belongs to its namespace: whoever may acquire may take.
  take: [
    row("the owner's limit", ({ key }) => ({ key, body: TAKE_BODY }), ["200 → changed", "200 → changed", "200 → changed", "200"]),
    row("the owner's limit, at other rates", ({ key }) => ({ key, body: { rates: [{ count: 9, perMs: 9000 }] } }), [
      "409 limit-mismatch",
      "409 limit-mismatch",
      "409 limit-mismatch",
      "200",
    ]),
  ],
  shutLimit: [
    row("the owner's limit", ({ key }) => ({ key, body: { ...TAKE_BODY, forMs: 1000, reason: "stuck" } }), [
      ...(["200 → changed", "200 → changed", "200 → changed", "200"] as const),
    ]),
  ],
  resetLimit: [row("the owner's limit", ({ key }) => ({ key, body: { reason: "stuck" } }), toOperators("200 → changed", "404 not-found"))],
  limit: [row("the owner's limit", ({ key }) => ({ key }), ["200", "200", "200", "404 not-found"])],
  limits: [row("the owner's limit", ({ key }) => ({ query: { prefix: key } }), toOperators("200 of 1", "200 of 0"))],
  health: [
    row("the service", () => ({ query: { deep: "1" } }), ["200", "200", "200", "200"]),
    row("the service, and the caller's own identity", () => ({ query: { caller: "1" } }), ["200", "200", "200", "200"]),
  ],
  openapi: [row("the service", () => ({}), ["200", "200", "200", "200"])],
};

/** Returns an answer as the matrix writes it: its status, then its code, its lease states, or how many holders or items it shows. */
export function answerOf({ status, headers, body }: Reply): string {
  const { code, holders, items, results, states } = (body ?? {}) as {
    readonly code?: string;
    readonly holders?: readonly unknown[];
    readonly items?: readonly unknown[];
    readonly results?: readonly { readonly status: number }[];
    readonly states?: Readonly<Record<string, string>>;
  };
  const shown = holders ?? items;
  const more =
    code ??
    headers["lease-state"] ??
    (results && `with ${results.map((result) => result.status).join()}`) ??
    (states && Object.values(states).join()) ??
    (shown && `of ${shown.length}`);
  return more === undefined ? String(status) : `${status} ${more}`;
}
