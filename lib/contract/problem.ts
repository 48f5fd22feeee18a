/** A refusal as a problem document (RFC 9457), and back. */
import { type Refusal, ERRORS, refuseLocally } from "../core/errors.js";
import { given } from "../core/members.js";
import { GATEWAY_REFUSALS } from "../core/what-came-back.js";
import type { ProblemBody } from "./answers.js";
import { isProblem } from "./checks.js";
import type { FromJson } from "./rules.js";

/** The media type of every error. */
export const PROBLEM_TYPE = "application/problem+json";

/** Converts `refusal` to its problem document; `instance` is the key's path, never the leaseId. */
export function toProblem({ ok: _ok, code, ...refusal }: Refusal, instance: string | undefined): FromJson<ProblemBody> {
  const { status, title } = ERRORS[code];
  const { detail, definite, retry, holders, blocking, lost, ...details } = refusal;
  return {
    type: `/problems/${code}`,
    title,
    status,
    code,
    detail,
    ...given({ instance }),
    definite,
    retry,
    ...details,
    ...given({ holders, blocking, lost }),
  };
}

/**
 * Returns the refusal in an error response. An unknown code still carries its own `definite` and `retry`. A gateway's
 * own errors have no problem body. 401, 403, 404, 407, 413 and 429 came before the service, so they are definite. Anything
 * else may have happened, and the result is undefined. The gateway's own message goes into the detail.
 * @param askAbout a question about the client's options, for the errors that these can cause
 */
export function fromProblem(status: number, body: unknown, askAbout?: string): Refusal | undefined {
  if (isProblem(body)) {
    const { type: _type, title: _title, status: _status, instance: _instance, ...refusal } = body as ProblemBody;
    return { ...refusal, ok: false } as Refusal;
  }
  const message = messageOf(body);
  const code = CREDENTIALS.test(message) && status === 403 ? "not-configured" : GATEWAY_REFUSALS[status];
  const detail = `The gateway answered ${status} before the service was reached${message && `: ${message}`}${askAbout !== undefined && MISDIRECTED.includes(status) ? ` (${askAbout})` : ""}`;
  return code && refuseLocally(code, { detail, undecided: true, ...(code === "not-found" && { field: "url" }) });
}

/** A wrong URL and a missing signature get these. */
const MISDIRECTED: readonly number[] = [403, 404];

/** AWS gateways use these words for a request that they can't authenticate. A caller without the right gets "Forbidden". */
const CREDENTIALS = /security token|authentication token|signature|credential|expired/i;
const MESSAGE_CHARS = 200;
/** Stands in a message for a secret that was removed. */
export const STRUCK = "…";
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/** Returns `text` without the leaseIds in it, which a path contains. */
export function withoutIds(text: string): string {
  return text.replace(UUID, STRUCK);
}

/** Returns the first line of the gateway's own message, with leaseIds from the path removed; `""` without a message. */
function messageOf(body: unknown): string {
  const { message, Message = message } = (body ?? {}) as { readonly message?: unknown; readonly Message?: unknown };
  if (typeof Message !== "string") return "";
  return withoutIds((Message.split("\n", 1)[0] ?? "").trim()).slice(0, MESSAGE_CHARS);
}
