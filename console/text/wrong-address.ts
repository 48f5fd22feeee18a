/** Tells from an error's words that the address is wrong. The SDK's code says as much of a wrong URL as of wrong credentials. */
import type { LockError } from "../../lib/index.js";

/** A 404 from a gateway, from another server, or from the service for an unknown path: the path of the URL is wrong. */
const NO_SUCH_PATH = /before the service was reached|The API has no such path/;
/** Nobody answers there, or something else than the service or DynamoDB. */
export const NOT_THE_SERVICE =
  /no answer \(\w+\)|answer.* (?:not )?one to |not from the service|is not DynamoDB|^\S.* answered \d+ before http/;

/** True if nobody answered there, or something else than holdfast or its table. */
export function isWrongAddress({ code, message }: Pick<LockError, "code" | "message">): boolean {
  if (code === "not-found") return NO_SUCH_PATH.test(message);
  return code === "not-configured" && NOT_THE_SERVICE.test(message);
}
