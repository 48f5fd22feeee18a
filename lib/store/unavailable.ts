/** What an AWS SDK failure means: whether a write may have happened, and whether to slow down. */
import { StoreUnavailable } from "./lock-store.js";

const THROTTLED: ReadonlySet<string> = new Set(["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]);
/** Refused before anything was written: a wrong table, a missing right, an expression the engine rejects. */
const REFUSED: ReadonlySet<string> = new Set([
  "ResourceNotFoundException",
  "ValidationException",
  "AccessDeniedException",
  "UnrecognizedClientException",
]);
/** What the AWS SDK says instead of sending anything; of a missing region it has no name for its error. */
const NOT_SENT = /^(?:CredentialsProviderError|TokenProviderError): |^Error: Region is missing/;

interface SdkError {
  readonly name?: string;
  readonly message?: string;
  /** Of a cancelled transaction, item by item. */
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
  readonly $metadata?: { readonly attempts?: number };
}

/** A write or a transaction met another transaction on the same item: to be tried again, never reported as lost. */
export function isTransactionConflict(error: unknown): boolean {
  const { name, CancellationReasons = [] } = error as SdkError;
  return name === "TransactionConflictException" || CancellationReasons.some(({ Code }) => Code === "TransactionConflict");
}

/** `error` as the store's own: definite only if the SDK sent the request once and it was refused. */
export function storeUnavailable(error: unknown): StoreUnavailable {
  const { name = "Error", message = "", $metadata } = error as SdkError;
  const throttled = THROTTLED.has(name) || isTransactionConflict(error);
  const sentOnce = ($metadata?.attempts ?? 1) === 1;
  const said = `${name}: ${message}`;
  return new StoreUnavailable(said, ((throttled || REFUSED.has(name)) && sentOnce) || NOT_SENT.test(said), throttled, { cause: error });
}
