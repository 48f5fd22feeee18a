/**
 * The oracle's view of the network. It sees each request as it reaches a handler, since only requested changes may happen, and each answer
 * of a handler, since every answer must be true.
 */
import { type HttpResult, secondsToWait } from "../../../lambda/http.js";
import { LIMITS } from "../../../lib/core/limits.js";
import type { Mode } from "../../../lib/core/record.js";
import type { Oracle } from "./oracle.js";
import type { Told } from "./queue-oracle.js";
import type { Body } from "./run-requests.js";

/** A request as it reaches a handler. */
export interface Delivered {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  /** The `Prefer` header: the time for which the client would wait. */
  readonly prefer?: string | undefined;
  readonly atMs: number;
  /** True if the network duplicated a request that the client sent once. No client gets the answer to the duplicate. */
  readonly isDuplicate: boolean;
}

/** Reports a request to the oracle. Returns a function that takes the answer. */
export function check(oracle: Oracle, request: Delivered): (result: HttpResult) => void {
  const [, , kind, key = "", what, leaseId = "", verb] = request.path.split("/");
  const { asked } = oracle;
  if (kind === "renewals") return heartbeats(oracle, request);
  if (kind === "lock-sets") return checkSet(oracle, request, key, what);
  if (kind === "runs" && what === "reset") {
    const done = oracle.runs.asked.reset(key);
    // A failed one may still take effect.
    return ({ statusCode }) => (statusCode < 500 ? done() : undefined);
  }
  if (kind === "limits" && what === "takes") return checkTake(oracle, request, key);
  if (kind === "limits" && what === "shut") return checkShut(oracle, request, key);
  if (leaseId === "") return notJudged;
  const { method, isDuplicate } = request;
  if (method === "DELETE" || verb === "outcome") asked.add("release", leaseId);
  else if (verb === "renew") asked.add("renew", leaseId);
  else if (verb === "transfer") {
    asked.add("transfer", leaseId);
    asked.handOn(parsed(request.body)["leaseId"] as string);
  } else if (method === "PUT") {
    asked.add("acquire", leaseId);
    if (isDuplicate) oracle.duplicateAcquire(kind === "runs" ? "runs" : "locks", key, leaseId);
  }
  return (kind === "runs" ? checkRun : checkLock)(oracle, request, { key, leaseId, verb });
}

/** The subject of a request. */
interface About {
  readonly key: string;
  readonly leaseId: string;
  readonly verb: string | undefined;
}

function checkLock(oracle: Oracle, request: Delivered, { key, leaseId, verb }: About): (result: HttpResult) => void {
  const { method, body, prefer, isDuplicate } = request;
  if (verb === "mode") {
    const { mode, fencingToken } = parsed(body);
    oracle.asked.change(leaseId, mode as Mode, fencingToken as number);
  }
  if (verb === "renew") return ({ statusCode }) => (statusCode === 200 ? oracle.toldHeld(key, leaseId, request.atMs) : undefined);
  if (verb !== undefined || (method !== "PUT" && method !== "GET")) return notJudged;
  if (method === "PUT") oracle.queues.asked(leaseId, (parsed(body)["priority"] ?? 0) as number);
  const waitMs = 1000 * (secondsToWait(prefer) ?? 0);
  if (method === "PUT" && parsed(body)["wake"] !== undefined) oracle.queues.asleep(leaseId, waitMs);
  const keepMs = Math.min(waitMs, LIMITS.serverWaitMs);
  const visited = isDuplicate ? undefined : oracle.queues.visiting(leaseId, keepMs);
  return ({ statusCode, body: text }) => {
    const answer = statusCode < 300 ? parsed(text) : {};
    visited?.(
      statusCode === 202 && answer["state"] !== "asleep" ? ({ ...answer, byLook: method === "GET" } as unknown as Told) : undefined,
    );
    if (statusCode === 200) oracle.toldHeld(key, leaseId, request.atMs);
    if (statusCode < 202) oracle.toldCount(key, answer as unknown as Parameters<Oracle["toldCount"]>[1]);
  };
}

function checkRun(
  { runs }: Oracle,
  { method, body, atMs, isDuplicate }: Delivered,
  { key, leaseId, verb }: About,
): (result: HttpResult) => void {
  const asked = parsed(body);
  if (verb === "renew" && asked["checkpoint"] !== undefined) runs.asked.save(leaseId, asked["checkpoint"]);
  if (verb === "outcome") {
    const said = runs.asked.outcome(leaseId, asked);
    return ({ statusCode }) => runs.answeredOutcome(key, leaseId, said, statusCode, isDuplicate);
  }
  if (method !== "PUT") return notJudged;
  runs.asked.start(leaseId, asked);
  return ({ statusCode, body: text }) => runs.answeredStart(key, leaseId, { atMs, statusCode, answer: parsed(text) });
}

function checkSet(
  { asked, coverage }: Oracle,
  { method, body }: Delivered,
  leaseId: string,
  verb: string | undefined,
): (result: HttpResult) => void {
  if (verb === "renew") asked.add("renew", leaseId);
  else if (verb === "release") asked.add("release", leaseId);
  else if (method === "PUT") {
    const { keys, locks = [] } = parsed(body) as {
      readonly keys?: readonly string[];
      readonly locks?: readonly { readonly key: string }[];
    };
    asked.set(leaseId, keys ?? locks.map(({ key }) => key));
    return ({ statusCode }) => void (coverage.setsBlocked += statusCode === 423 ? 1 : 0);
  }
  return notJudged;
}

function checkTake({ limits }: Oracle, { body }: Delivered, key: string): (result: HttpResult) => void {
  const { cost = 1 } = parsed(body) as { readonly cost?: number };
  return ({ statusCode, body: text }) => {
    if (statusCode === 200) limits.granted(key, cost, parsed(text)["startInMs"] as number);
    if (statusCode === 429) limits.refused();
  };
}

function checkShut({ limits }: Oracle, { body }: Delivered, key: string): (result: HttpResult) => void {
  const { forMs } = parsed(body) as { readonly forMs: number };
  return ({ statusCode }) => (statusCode === 200 ? limits.shut(key, forMs) : undefined);
}

/** Reports a request that renews many leases. */
function heartbeats({ asked }: Oracle, { body }: Delivered): (result: HttpResult) => void {
  for (const { leaseId } of parsed(body)["leases"] as readonly { readonly leaseId: string }[]) asked.add("renew", leaseId);
  return notJudged;
}

function parsed(text: string | undefined): Body {
  return JSON.parse(text === undefined || text === "" ? "{}" : text) as Body;
}

function notJudged(): void {
  // Answers to a lock's holder are checked by what its client does with them.
}
