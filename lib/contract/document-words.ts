/**
 * The summary of each operation, its headers and links, which only the document tells. They stand apart from the rows, so that the function
 * doesn't load them with every start.
 */
import { LIMITS } from "../core/limits.js";
import { given } from "../core/members.js";
import { TASK_TOKEN_HEADER } from "./requests.js";
import type { OperationName } from "./routes.js";

/**
 * A link. Members are put into the caller's body. The standard has them in `requestBody`, which generators of clients take only as text; so
 * they have a name of ours, which .ci/openapi-fuzz/hooks.py reads.
 */
interface Link {
  readonly operationId: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly requestBody?: string;
  readonly "x-members"?: Readonly<Record<string, string>>;
}

const OF_KEY = { key: "$request.path.key" };
const OF_SET = { leaseId: "$request.path.leaseId" };
const OF_LEASE = { ...OF_KEY, ...OF_SET };
const ITS_TOKEN = { fencingToken: "$response.body#/fencingToken" };
const ITS_KEYS = { keys: "$request.body#/keys" };

const to = (operationId: string, description: string, parameters: Link["parameters"], members?: Link["x-members"]): Link =>
  given({ operationId, description, parameters, "x-members": members });

/** Every link, by its name in `components`. */
export const LINKS = {
  poll: { ...to("acquire", "Ask again, to keep the place and to be granted the key", OF_LEASE), requestBody: "$request.body" },
  check: to("check", "Is it still held, or still waiting?", OF_LEASE),
  renew: to("renew", "Extend the lease", OF_LEASE),
  changeMode: to("changeMode", "Become the writer, or a reader", OF_LEASE, ITS_TOKEN),
  transfer: to("transfer", "Hand the hold to a new leaseId", OF_LEASE),
  renewTransferred: to("renew", "Extend the lease under its new id", { ...OF_KEY, leaseId: "$response.body#/leaseId" }),
  release: to("release", "Release the lease, or leave the queue", OF_LEASE),
  inspect: to("inspect", "See who holds the key", OF_KEY),
  break: to("break", "End the hold as an operator", OF_KEY, ITS_TOKEN),
  renewSet: to("renewSet", "Extend every lease of the set", OF_SET, ITS_KEYS),
  releaseSet: to("releaseSet", "Release the set", OF_SET, ITS_KEYS),
  checkRun: to("checkRun", "Is it still held?", OF_LEASE),
  renewRun: to("renewRun", "Extend the lease, and save how far the work got", OF_LEASE),
  complete: to("complete", "Record what came of the work", OF_LEASE),
  abandonRun: to("abandonRun", "Cancel the start", OF_LEASE),
  run: to("run", "See what is known of the run", OF_KEY),
  limit: to("limit", "See what is left of the limit", OF_KEY),
  resetRun: to("resetRun", "Forget the run as an operator", OF_KEY),
};

type LinkName = keyof typeof LINKS;
const HELD: readonly LinkName[] = ["check", "renew", "changeMode", "transfer", "release", "inspect", "break"];
const SET: readonly LinkName[] = ["renewSet", "releaseSet"];
const RUNNING: readonly LinkName[] = ["checkRun", "renewRun", "complete", "abandonRun", "run"];

/** A line on each operation. */
export const SUMMARIES: Readonly<Record<OperationName, string>> = {
  acquire: "Acquire the key under a leaseId of your own making, or ask again under it",
  check: "Still mine, or still in the queue?",
  release:
    "Release the lease, leave the queue, or cancel an acquire of unknown outcome; always safe to repeat. `Lease-State` says how it ended",
  renew: "Extend the lease; never shortens",
  changeMode: "Become the writer, if no other reader remains, or a reader, with a new token",
  transfer: "Hand the hold to a new leaseId, with a new token",
  wait: "Free the key and wait for a condition under a new leaseId, in one step; then acquire by that id, as any waiter. After a refusal, cancel the new id before you go on: a duplicate of the request could still free the key",
  notify: "Wake the first that waits for the condition, or all of them: each queues for the key",
  inspect: "Who holds the key, and who waits for it",
  break: "End somebody's hold, named by its token",
  list: "Held keys, in order; a page may be short, and is the last without a `cursor`",
  acquireSet: "Acquire all of these keys under one leaseId, or none",
  renewSet: "Extend every lease of the set; refused with the keys that are lost",
  releaseSet: "Release the set, or cancel one of unknown outcome; always safe to repeat",
  renewMany: "The heartbeats of many leases in one request; one result per lease, in the same order",
  start: "Run the work of an idempotency key, or get its outcome",
  checkRun: "Still mine?",
  abandonRun: "Cancel a start of unknown outcome: as if it had not been. Work that was begun ends with an outcome instead",
  renewRun: "Extend the lease of a run, and save how far it got",
  complete: "Record what came of the work, and end its lease: only while it still holds the run",
  run: "What is known of a run",
  resetRun: "Forget a run that is over or was given up: the next start is a first attempt",
  runs: "Runs in the order of their keys, without their values",
  take: "Take from every rate of the limit, or from none. A take that is sent twice is charged twice",
  shutLimit: "Let nothing start from the limit for a time; sent twice, for as long from the second",
  limit: "What is left of a limit, and when it is full again",
  resetLimit: "Make a limit full: the next take may bring other rates",
  limits: "Limits that are not full, in the order of their names",
  health: "Is the service up; ?deep=1 also reads the table, and ?caller=1 also says as whom it knows the caller",
  openapi: "This document",
};

/** Words on headers that several rows have. */
const TELLS = {
  versionTag: { ETag: '`"v<version>"`' },
  replayed: { "Idempotent-Replayed": "`true` when this request had been carried out before" },
  leaseState: { "Lease-State": "`released`, `expired`, `lost`, `transferred`, `never` or `unknown`" },
} as const;
const WAIT = { Prefer: `\`wait=N\`: wait up to N seconds, at most ${LIMITS.serverWaitMs / 1000}; a deployment may answer at once` };
/** Words on the headers of a request that may wait, and of a look that may wait for a change. */
const ASKS = { wait: WAIT, look: { "If-None-Match": "The `ETag` of an earlier look: 304 if nothing changed", ...WAIT } } as const;

interface HeadersAndLinks {
  /** Headers of its request, with their descriptions. */
  readonly asks?: Readonly<Record<string, string>>;
  /** Headers of its answer, with their descriptions. */
  readonly tells?: Readonly<Record<string, string>>;
  readonly leadsTo?: Readonly<Record<number, readonly LinkName[]>>;
}

/** The headers and links of the operations that have some. */
export const HEADERS_AND_LINKS: Readonly<Partial<Record<OperationName, HeadersAndLinks>>> = {
  acquire: {
    asks: {
      Prefer: `\`wait=N\`: queue for the key if it isn't free; any N. With a target to wake: sleep for up to N seconds, at most ${LIMITS.sleepMaxMs / 1000}`,
      [TASK_TOKEN_HEADER]: "The token of a task of Step Functions to wake, in place of `wake` in the body",
    },
    tells: { ...TELLS.versionTag, ...TELLS.replayed },
    leadsTo: { 200: HELD, 201: HELD, 202: ["poll", "check", "release", "inspect"] },
  },
  check: { tells: TELLS.versionTag, leadsTo: { 200: HELD, 202: ["check", "release"] } },
  release: { tells: TELLS.leaseState, leadsTo: { 204: ["check", "renew"] } },
  renew: { tells: TELLS.versionTag, leadsTo: { 200: HELD } },
  changeMode: { tells: { ...TELLS.versionTag, ...TELLS.replayed }, leadsTo: { 200: HELD } },
  transfer: { tells: { ...TELLS.versionTag, ...TELLS.replayed }, leadsTo: { 200: ["renewTransferred", "inspect", "check"] } },
  notify: { tells: TELLS.replayed },
  inspect: { asks: ASKS.look, tells: { ETag: "Over who holds and who waits; a renewal doesn't change it" } },
  acquireSet: { tells: TELLS.replayed, leadsTo: { 200: SET, 201: SET } },
  renewSet: { leadsTo: { 200: SET } },
  take: { leadsTo: { 200: ["limit"] } },
  shutLimit: { leadsTo: { 200: ["limit"] } },
  start: { asks: ASKS.wait, tells: { ...TELLS.versionTag, ...TELLS.replayed }, leadsTo: { 200: ["run", "checkRun"], 201: RUNNING } },
  checkRun: { tells: TELLS.versionTag },
  abandonRun: { tells: TELLS.leaseState, leadsTo: { 204: ["run", "checkRun"] } },
  renewRun: { tells: TELLS.versionTag, leadsTo: { 200: RUNNING } },
  complete: { tells: TELLS.replayed, leadsTo: { 200: ["complete", "run", "resetRun", "checkRun"] } },
  run: { asks: ASKS.look, tells: { ETag: "Over state, attempt and checkpoint; a renewal doesn't change it" } },
};
