/** Tells from an error with which HTTP status a service or a gateway answered. The SDK's code says as much of silence as of an answer of 500. */
import type { LockError } from "../../lib/index.js";

/** The words with which the SDK tells a gateway's status. */
const GATEWAYS = /\b(?:the answer was|The gateway answered) ([45]\d\d)\b/;
/** The service's refusals that a client makes only of a gateway's status, or never. */
const SERVICES: Readonly<Record<string, number>> = { forbidden: 403, throttled: 429, internal: 500 };
/** The service's refusal while its table doesn't answer. A client that gets no answer has the same code, and other words. */
const TABLE_SILENT = "The table could not be reached";

/** Returns the status of the answer over HTTP from which an error came; undefined if nothing answered, or the error doesn't tell. */
export function answeredStatus({ code, message }: Pick<LockError, "code" | "message">): number | undefined {
  const [, told] = GATEWAYS.exec(message) ?? [];
  if (told !== undefined) return Number(told);
  return code === "unavailable" && message.endsWith(TABLE_SILENT) ? 503 : SERVICES[code];
}
