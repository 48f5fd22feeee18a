/**
 * The links of the OpenAPI document: the operations that an answer leads to, with their parameters. A link is named by its target. A
 * generator of requests follows them, so they are what a caller can rely on.
 */

/** A link. A request body with members is merged into the caller's. */
interface Link {
  readonly operationId: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly requestBody?: string | Readonly<Record<string, string>>;
}

const OF_KEY = { key: "$request.path.key" };
const OF_SET = { leaseId: "$request.path.leaseId" };
const OF_LEASE = { ...OF_KEY, ...OF_SET };
const ITS_TOKEN = { fencingToken: "$response.body#/fencingToken" };
const ITS_KEYS = { keys: "$request.body#/keys" };

const to = (operationId: string, description: string, parameters: Link["parameters"], requestBody?: Link["requestBody"]): Link => ({
  operationId,
  description,
  parameters,
  ...(requestBody !== undefined && { requestBody }),
});

/** Every link, by its name in `components`. */
export const LINKS: Readonly<Record<string, Link>> = {
  poll: to("acquire", "Ask again, to keep the place and to be granted the key", OF_LEASE, "$request.body"),
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
  resetRun: to("resetRun", "Forget the run as an operator", OF_KEY),
};

const HELD = ["check", "renew", "changeMode", "transfer", "release", "inspect", "break"];
const RUNNING = ["checkRun", "renewRun", "complete", "abandonRun", "run"];

/** The names of the links of an operation's answers, by the operation and the status. */
export const LEADS_TO: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  acquire: { 200: HELD, 201: HELD, 202: ["poll", "check", "release", "inspect"] },
  check: { 200: HELD, 202: ["check", "release"] },
  renew: { 200: HELD },
  changeMode: { 200: HELD },
  transfer: { 200: ["renewTransferred", "inspect", "check"] },
  release: { 204: ["check", "renew"] },
  acquireSet: { 200: ["renewSet", "releaseSet"], 201: ["renewSet", "releaseSet"] },
  renewSet: { 200: ["renewSet", "releaseSet"] },
  start: { 200: ["run", "checkRun"], 201: RUNNING },
  renewRun: { 200: RUNNING },
  complete: { 200: ["complete", "run", "resetRun", "checkRun"] },
  abandonRun: { 204: ["run", "checkRun"] },
};
