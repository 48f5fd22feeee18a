/** The meaning of an AWS SDK failure: whether a write may have happened, and whether to slow down, try later or give up. */
import { StoreNotConfigured, StoreUnavailable } from "../port.js";

const THROTTLED: ReadonlySet<string> = new Set(["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]);
/** The table does not exist, or AWS does not accept these credentials or does not let them use it. */
const NOT_CONFIGURED: ReadonlySet<string> = new Set([
  "ResourceNotFoundException",
  "AccessDeniedException",
  "UnrecognizedClientException",
  "ExpiredTokenException",
  "ExpiredToken",
  "InvalidSignatureException",
  "IncompleteSignatureException",
  "MissingAuthenticationTokenException",
]);
/** The AWS SDK says this instead of sending anything; its error for a missing or malformed region has no name. */
const NOT_SENT = /^(?:CredentialsProviderError|TokenProviderError): |^Error: Region /;
/** The engine says this, of one request or of a part of a transaction, when the table has other keys. */
const OTHER_KEYS = /key element does not match the schema|missed key schema element|the table has no sort key|Type mismatch for key/;
/** Refused before anything was written. */
const REFUSED = "ValidationException";

interface SdkError {
  readonly name?: string;
  readonly message?: string;
  /** One for each address of a host that was tried; then the message is empty. */
  readonly errors?: readonly Error[];
  /** One for each item of a cancelled transaction. */
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Message?: string }[];
  readonly $metadata?: { readonly attempts?: number };
}

/** A write or a transaction met another transaction on the same item: to be tried again, never reported as lost. */
export function isTransactionConflict(error: unknown): boolean {
  const { name, CancellationReasons = [] } = error as SdkError;
  return name === "TransactionConflictException" || CancellationReasons.some(({ Code }) => Code === "TransactionConflict");
}

/** `error` as the store's own: definite only if the SDK sent the request at most once and it was refused. */
export function storeUnavailable(error: unknown): StoreUnavailable {
  const { name = "Error", errors = [], message: whole = "", CancellationReasons = [], $metadata } = error as SdkError;
  const message = whole || errors.map((one) => one.message).join(", ");
  const throttled = THROTTLED.has(name) || isTransactionConflict(error);
  const sentOnce = ($metadata?.attempts ?? 1) === 1;
  const otherKeys = [message, ...CancellationReasons.map(({ Message = "" }) => Message)].find((text) => OTHER_KEYS.test(text));
  const said = `${name}: ${otherKeys ?? message}`;
  const notSent = NOT_SENT.test(said);
  if (notSent || NOT_CONFIGURED.has(name) || otherKeys !== undefined) {
    return new StoreNotConfigured(said, notSent || sentOnce, false, { cause: error });
  }
  return new StoreUnavailable(said, (throttled || name === REFUSED) && sentOnce, throttled, { cause: error });
}
