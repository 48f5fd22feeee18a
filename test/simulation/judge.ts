/**
 * The oracle's ears on the network: what clients asked for as it reaches a handler, for only that may
 * happen, and what the handler answered, for all of that must be true.
 */
import type { HttpResult } from "../../lambda/http.js";
import type { Oracle } from "./oracle.js";
import type { Body } from "./run-requests.js";

/** A request as it reaches a handler. */
export interface Delivered {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly atMs: number;
  /** The network made another of what a client sent once; nobody hears its answer. */
  readonly isDuplicate: boolean;
}

/** Tells the oracle of a request; what it returns is to be told the answer. */
export function judge(oracle: Oracle, request: Delivered): (result: HttpResult) => void {
  const [, , kind, key = "", what, leaseId = "", verb] = request.path.split("/");
  if (kind === "runs" && what === "reset") return oracle.runs.asked.reset(key);
  if (leaseId === "") return notJudged;
  const { method, isDuplicate } = request;
  if (method === "DELETE" || verb === "outcome") oracle.asked("release", leaseId);
  else if (verb === "renew") oracle.asked("renew", leaseId);
  else if (verb === "transfer") oracle.asked("transfer", leaseId);
  else if (method === "PUT" && isDuplicate) oracle.duplicateAcquire(kind === "runs" ? "runs" : "locks", key, leaseId);
  return kind === "runs" ? judgeRun(oracle, request, { key, leaseId, verb }) : notJudged;
}

function judgeRun(
  { runs }: Oracle,
  { method, body, atMs, isDuplicate }: Delivered,
  { key, leaseId, verb }: { readonly key: string; readonly leaseId: string; readonly verb: string | undefined },
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

function parsed(text: string | undefined): Body {
  return JSON.parse(text ?? "{}") as Body;
}

function notJudged(): void {
  // What a lock's holder was told is judged by what its client makes of it.
}
