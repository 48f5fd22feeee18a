/**
 * Tells the targets of sleepers: tasks of Step Functions, and callbacks of durable functions. Each is one signed request to AWS, which is
 * never repeated here: a repeat of one that arrived would be told that nobody waits. No error has the target in it, a secret of its caller.
 */
import type { Clock } from "../lib/core/time.js";
import type { Outcome, Tell } from "../lib/service/agent.js";
import { LOST_PLACE } from "../lib/service/agent.js";
import { domainOf } from "../lib/store/dynamo/environment-settings.js";
import type { Reply } from "../lib/store/dynamo/http-sender.js";
import { connections, endpointAt, post } from "../lib/store/dynamo/http-sender.js";
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
const CAUSE = "The lease lost its place in the queue, or was cancelled";

/** A request to a service of AWS. */
interface Message {
  readonly service: "states" | "lambda";
  /** The operation, for a protocol that has it in a header. */
  readonly target: string;
  readonly path: string;
  readonly body: object;
}

/** Returns a teller that sends to the Region and with the credentials of `env`. `AWS_ENDPOINT_URL_SFN` and `…_LAMBDA` name other places. */
export function awsTell(env: Environment, clock: Clock): Tell {
  const agents = connections();
  return async (target, outcome) => {
    const message = messageOf(target, outcome);
    const { service, path, body } = message;
    const region = env["AWS_REGION"] ?? "";
    const named = env[service === "states" ? "AWS_ENDPOINT_URL_SFN" : "AWS_ENDPOINT_URL_LAMBDA"];
    const url = new URL(named || env["AWS_ENDPOINT_URL"] || `https://${service}.${region}.${domainOf(region) ?? ""}`);
    const at = endpointAt(url, agents);
    const endpoint = { ...at, path: at.path + path };
    const { AWS_ACCESS_KEY_ID: accessKeyId = "", AWS_SECRET_ACCESS_KEY: secretAccessKey = "", AWS_SESSION_TOKEN: token } = env;
    const credentials = { accessKeyId, secretAccessKey, sessionToken: token === "" ? undefined : token };
    const text = JSON.stringify(body);
    const headers = signer(credentials, { host: url.host, path: endpoint.path, region, service })(message.target, text, clock.wallMs());
    const reply = await post(endpoint, headers, text, BOUNDS, clock).catch((error: unknown) => {
      const { code, name } = error as NodeJS.ErrnoException;
      throw new Error(`${service}: no answer (${code ?? name})`);
    });
    const refusal = refusalIn(reply);
    if (refusal !== undefined && !GONE.has(refusal)) throw new Error(`${service}: ${refusal}`);
    return refusal === undefined ? "told" : "gone";
  };
}

function messageOf({ taskToken, callbackId = "" }: Parameters<Tell>[0], outcome: Outcome): Message {
  const isLost = outcome === LOST_PLACE;
  if (taskToken !== undefined) {
    const target = `AWSStepFunctions.SendTask${isLost ? "Failure" : "Success"}`;
    const body = isLost ? { taskToken, error: outcome, cause: CAUSE } : { taskToken, output: JSON.stringify(outcome) };
    return { service: "states", target, path: "", body };
  }
  const path = `2025-12-01/durable-execution-callbacks/${encodeURIComponent(callbackId)}/${isLost ? "fail" : "succeed"}`;
  return { service: "lambda", target: "", path, body: isLost ? { ErrorType: outcome, ErrorMessage: CAUSE } : outcome };
}

/** Returns the name of the error in an answer; undefined if there is none. */
function refusalIn(reply: Reply): string | undefined {
  try {
    bodyOf({ ...reply, ...(reply.status < 300 && { text: "" }) });
    return undefined;
  } catch (error) {
    return (error as Error).name;
  }
}
