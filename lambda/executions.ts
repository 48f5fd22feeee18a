/**
 * Tells the targets of sleepers: tasks of Step Functions, and callbacks of durable functions. That is one signed request to AWS, which is never
 * repeated here: a repeat of a telling that arrived would hear that nobody waits. No error has the target in it, a secret of its caller. Asks
 * whether executions of both still run, and again if AWS says that it was asked too fast.
 */
import { type Backoff, backoffMs } from "../lib/core/backoff.js";
import type { Clock } from "../lib/core/time.js";
import { type IsRunning, type WakeMessage, type Tell, LOST_PLACE } from "../lib/service/agent.js";
import { domainOf } from "../lib/store/dynamo/environment-settings.js";
import { type Reply, connections, endpointAt, send as sendTo } from "../lib/store/dynamo/http-sender.js";
import { bodyOf } from "../lib/store/dynamo/service-error.js";
import { signer } from "../lib/store/dynamo/signature.js";
import type { Environment } from "./compose.js";

/** All of an attempt ends well within the time in which an agent may take the answer for a death. */
const BOUNDS = { connectMs: 1000, answerMs: 5000 };
/** Nobody waits under this token or id, or it was told before. */
const GONE: ReadonlySet<string> = new Set([
  ...["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"],
  ...["CallbackTimeoutException", "ResourceNotFoundException", "InvalidParameterValueException"],
]);
/** The execution ended so long ago that nothing of it is kept, or its function was deleted. */
const NO_EXECUTION: ReadonlySet<string> = new Set(["ExecutionDoesNotExist", "ResourceNotFoundException"]);
/** An execution in another state is over. */
const RUNNING: ReadonlySet<unknown> = new Set(["RUNNING", "PENDING_REDRIVE"]);
const OVER: ReadonlySet<unknown> = new Set(["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED", "STOPPED"]);
/** The errors of a question that comes too fast. Both services count all who ask in an account, by the second. */
const TOO_FAST: ReadonlySet<unknown> = new Set(["ThrottlingException", "TooManyRequestsException"]);
/** The longest pauses before it is asked again. A sweep asks about many at once, and in the same order each time. */
const ASK_AGAIN: Backoff = { firstMs: 1000, longestMs: 8000 };
const ASKS_MAX = 5;
const CAUSE = "The lease lost its place in the queue, or was cancelled";

/** A request to a service of AWS. */
interface Message {
  readonly service: "states" | "lambda";
  /** The operation, for a protocol that has it in a header. */
  readonly target: string;
  readonly path: string;
  /** Without it, the request is a GET. */
  readonly body?: object;
  readonly query?: string;
  /** @default the Region of the agent */
  readonly region?: string | undefined;
}

/** Sends a message and returns the answer's body, or the name of the error in it. @throws Error if there is no answer */
export type Send = (message: Message) => Promise<Readonly<Record<string, unknown>> | string>;

/** Returns a teller that sends with the credentials of `env`, and by default to its Region. `AWS_ENDPOINT_URL_SFN` and `…_LAMBDA` name other places. */
export function awsTell(env: Environment, clock: Clock): Tell {
  const send = senderTo(env, clock);
  return async (target, outcome, region) => {
    const message = messageOf(target, outcome);
    const answer = await send({ ...message, region });
    if (typeof answer === "object") return "told";
    if (!GONE.has(answer)) throw new Error(`${message.service}${region === undefined ? "" : ` in ${region}`}: ${answer}`);
    return "gone";
  };
}

/**
 * Returns what asks about executions, with the same credentials and each in its own Region: elsewhere, one that runs would be unknown, and so
 * count as over.
 */
export function awsIsRunning(env: Environment, clock: Clock, random: () => number, send = senderTo(env, clock)): IsRunning {
  return async (executionArn) => {
    const message = questionOf(executionArn);
    let answer = await send(message);
    for (let asks = 1; TOO_FAST.has(answer) && asks < ASKS_MAX; asks++) {
      const pauseMs = random() * backoffMs(ASK_AGAIN, asks - 1);
      await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
      answer = await send(message);
    }
    if (TOO_FAST.has(answer)) return undefined;
    if (typeof answer === "string" && NO_EXECUTION.has(answer)) return false;
    const status = typeof answer === "string" ? answer : (answer["status"] ?? answer["Status"]);
    if (!RUNNING.has(status) && !OVER.has(status)) throw new Error(`${message.service}: ${String(status)}`);
    return RUNNING.has(status);
  };
}

function senderTo(env: Environment, clock: Clock): Send {
  const agents = connections();
  return async ({ service, target, path, body, query, region = env["AWS_REGION"] ?? "" }) => {
    const named = env[service === "states" ? "AWS_ENDPOINT_URL_SFN" : "AWS_ENDPOINT_URL_LAMBDA"] || env["AWS_ENDPOINT_URL"];
    const domain = domainOf(region);
    // A caller names the Region, and "https://states.com." would be somebody else's host.
    if (!named && domain === undefined) throw new Error(`${service}: the endpoint of ${region} is not known`);
    const url = new URL(named || `https://${service}.${region}.${domain ?? ""}`);
    const at = endpointAt(url, agents);
    const signed = { host: url.host, path: at.path + path, region, service, method: body ? undefined : ("GET" as const), query };
    const endpoint = { ...at, method: signed.method, path: query === undefined ? signed.path : `${signed.path}?${query}` };
    const { AWS_ACCESS_KEY_ID: accessKeyId = "", AWS_SECRET_ACCESS_KEY: secretAccessKey = "", AWS_SESSION_TOKEN: token } = env;
    const credentials = { accessKeyId, secretAccessKey, sessionToken: token === "" ? undefined : token };
    const text = body ? JSON.stringify(body) : "";
    const headers = signer(credentials, signed)(target, text, clock.wallMs());
    const reply = await sendTo(endpoint, headers, text, BOUNDS, clock).catch((error: unknown) => {
      const { code, name } = error as NodeJS.ErrnoException;
      throw new Error(`${service} in ${region}: no answer (${code ?? name})`);
    });
    return answerIn(reply);
  };
}

/** Neither answer has the execution's input and output. */
function questionOf(executionArn: string): Message {
  const [, , service, region] = executionArn.split(":");
  if (service === "states") {
    const body = { executionArn, includedData: "METADATA_ONLY" };
    return { service, region, target: "AWSStepFunctions.DescribeExecution", path: "", body };
  }
  const path = `2025-12-01/durable-executions/${encodeURIComponent(executionArn)}`;
  return { service: "lambda", region, target: "", path, query: "IncludeExecutionData=false" };
}

function messageOf({ taskToken, callbackId = "" }: Parameters<Tell>[0], outcome: WakeMessage): Message {
  const isLost = outcome === LOST_PLACE;
  if (taskToken !== undefined) {
    const target = `AWSStepFunctions.SendTask${isLost ? "Failure" : "Success"}`;
    const body = isLost ? { taskToken, error: outcome, cause: CAUSE } : { taskToken, output: JSON.stringify(outcome) };
    return { service: "states", target, path: "", body };
  }
  const path = `2025-12-01/durable-execution-callbacks/${encodeURIComponent(callbackId)}/${isLost ? "fail" : "succeed"}`;
  return { service: "lambda", target: "", path, body: isLost ? { ErrorType: outcome, ErrorMessage: CAUSE } : outcome };
}

/** Returns the body of an answer, or the name of the error in it. An answer that is no JSON says no more than that it succeeded. */
function answerIn(reply: Reply): Readonly<Record<string, unknown>> | string {
  try {
    return bodyOf(reply);
  } catch (error) {
    return reply.status < 300 ? {} : (error as Error).name;
  }
}
