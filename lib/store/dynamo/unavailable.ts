/** Interprets AWS SDK errors: if a write may have happened, and if the caller should slow down, retry or give up. */
import { isA } from "../../core/brand.js";
import { meaningOfStatus } from "../../core/what-came-back.js";
import { KeyContended, StoreNotConfigured, StoreUnavailable, UnreadableRecord } from "../port.js";
import { isDynamos } from "./contact.js";
import { isWithoutCredentials } from "./found-credentials.js";
import { TABLE } from "./table.js";

const THROTTLED: ReadonlySet<string> = new Set(["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]);
/** The same, as reasons of a cancelled transaction. */
const THROTTLED_PARTS: ReadonlySet<string | undefined> = new Set(["ThrottlingError", "ProvisionedThroughputExceeded"]);
const CONFLICTS: ReadonlySet<string> = new Set(["TransactionConflictException", "ReplicatedWriteConflictException"]);
/** The table does not exist. */
const NO_TABLE = "ResourceNotFoundException";
/** The table does not exist, or AWS rejects the credentials or denies them access: by name, since the AWS SDK tells no status for some of them. */
const NOT_CONFIGURED: ReadonlySet<string> = new Set([
  NO_TABLE,
  "AccessDeniedException",
  "UnrecognizedClientException",
  "ExpiredTokenException",
  "ExpiredToken",
  "InvalidSignatureException",
  "IncompleteSignatureException",
  "MissingAuthenticationTokenException",
]);
/** Errors before anything is sent, beside those of a search for credentials. The AWS SDK's for a missing or malformed region has no name. */
const NOT_SENT = /^SdkNotFoundError: |^Error: Region /;
/** Engine messages about a request, or a part of a transaction, on a table with a different key schema. */
const OTHER_KEYS = /key element does not match the schema|missed key schema element|the table has no sort key|Type mismatch for key/;
/** Another sending of the same transaction is under way. */
const IN_PROGRESS = "TransactionInProgressException";

interface SdkError {
  readonly name?: string;
  readonly message?: string;
  /** One for each address of the host that was tried; the message is empty then. */
  readonly errors?: readonly Error[];
  /** One for each item of a cancelled transaction. */
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Message?: string }[];
  readonly $metadata?: { readonly attempts?: number; readonly httpStatusCode?: number };
}

/**
 * True if a write or a transaction met another one on the same item, in this Region or in another one of a global table, and nothing else is
 * the matter: a transaction with a throttled part is throttled. It was not carried out. The caller must retry, never report a loss.
 */
export function isWriteConflict(error: unknown): boolean {
  const { name = "", CancellationReasons = [] } = error as SdkError;
  return CONFLICTS.has(name) || (CancellationReasons.some(({ Code }) => Code === "TransactionConflict") && !isThrottled(error));
}

/** True if the table, or a proxy before it, asked for fewer requests. This attempt was certainly not carried out. */
export function isThrottled(error: unknown): boolean {
  const { name = "", CancellationReasons = [], $metadata } = error as SdkError;
  return THROTTLED.has(name) || $metadata?.httpStatusCode === 429 || CancellationReasons.some(({ Code }) => THROTTLED_PARTS.has(Code));
}

/**
 * True if DynamoDB answered that it doesn't carry out such a request, whoever sends it again: a table without transactions, as in a strongly
 * consistent global table, or a request that is wrong itself. It is there, so this is no outage.
 */
function isRefused(error: unknown): boolean {
  const { name, $metadata: { httpStatusCode: status = 0 } = {} } = error as SdkError;
  return isDynamos(error) && status >= 400 && meaningOfStatus(status) !== "outage" && name !== IN_PROGRESS;
}

/** The table of a store, and its Region as far as known. */
export interface TablePlace {
  readonly tableName: string;
  readonly region?: (() => Promise<string | undefined>) | undefined;
}

/** Says which table lacks what, where the engine names neither. */
async function whatIsMissing({ tableName, region }: TablePlace, hasOtherKeys: boolean): Promise<string> {
  if (hasOtherKeys)
    return ` (the table ${tableName} must have the partition key "${TABLE.partitionKey}" and the sort key "${TABLE.sortKey}", both strings)`;
  const found = await region?.().catch(() => undefined);
  return ` (there is no table ${tableName} in ${found ?? "the Region"} of these credentials' account)`;
}

/** Converts `error` as {@link storeUnavailable} does, and names the table if it is missing or has other keys. A record that can't be read is no outage. */
export async function tableUnavailable(error: unknown, place: TablePlace): Promise<StoreUnavailable | UnreadableRecord> {
  if (isA(error, UnreadableRecord)) return error;
  const told = storeUnavailable(error);
  const hasOtherKeys = OTHER_KEYS.test(told.message);
  if (!isA(told, StoreNotConfigured) || (!hasOtherKeys && (error as SdkError).name !== NO_TABLE)) return told;
  return new StoreNotConfigured(told.message + (await whatIsMissing(place, hasOtherKeys)), told.definite, { cause: error });
}

/** Reads from the table. @throws StoreUnavailable or UnreadableRecord */
export async function readFrom<T>(place: TablePlace, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw await tableUnavailable(error, place);
  }
}

/** Converts `error` to the store's own, unless it is one already (contact.ts): definite only if the SDK sent the request at most once and it was refused. */
export function storeUnavailable(error: unknown): StoreUnavailable {
  if (isA(error, StoreUnavailable)) return error;
  const { name = "Error", errors = [], message: whole = "", CancellationReasons = [], $metadata } = error as SdkError;
  const message = whole || errors.map((one) => one.message).join(", ");
  const isConflict = isWriteConflict(error);
  const throttled = isThrottled(error) || isConflict;
  const sentOnce = ($metadata?.attempts ?? 1) === 1;
  const otherKeys = [message, ...CancellationReasons.map(({ Message = "" }) => Message)].find((text) => OTHER_KEYS.test(text));
  const said = `${name}: ${otherKeys ?? message}`;
  const notSent = NOT_SENT.test(said) || isWithoutCredentials(error);
  if (notSent || NOT_CONFIGURED.has(name) || otherKeys !== undefined || (isRefused(error) && !throttled)) {
    return new StoreNotConfigured(said, notSent || sentOnce, { cause: error });
  }
  if (isConflict && sentOnce) return new KeyContended(said, { cause: error });
  return new StoreUnavailable(said, throttled && sentOnce, throttled, { cause: error });
}
