/** Errors of DynamoDB, read from its answers as the AWS SDK reads them: by the same names, with the same fields. */
import type { Reply } from "./http-sender.js";
import type { CancellationReason, WireItem } from "./calls.js";

/** How a request came about that failed. */
export interface ErrorMetadata {
  httpStatusCode?: number;
  requestId?: string | undefined;
  /** How often it was sent. */
  attempts?: number;
  /** The clock that signs was set by this very answer. */
  clockSkewCorrected?: boolean;
}

/** A request that DynamoDB refused or failed to carry out. */
export class ServiceError extends Error {
  readonly $metadata: ErrorMetadata;
  readonly Item?: WireItem;
  readonly CancellationReasons?: readonly CancellationReason[];

  constructor(name: string, { message, Message, Item, CancellationReasons }: Body, metadata: ErrorMetadata) {
    super(textOr(message, textOr(Message, "UnknownError")));
    this.name = name;
    this.$metadata = metadata;
    if (Item) this.Item = Item;
    if (CancellationReasons) this.CancellationReasons = CancellationReasons;
  }
}

interface Body {
  readonly __type?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly Message?: unknown;
  readonly Item?: WireItem;
  readonly CancellationReasons?: readonly CancellationReason[];
}

/** The answer's body, or throws what the answer says instead. */
export function bodyOf({ status, headers, text }: Reply): Readonly<Record<string, unknown>> {
  const metadata = (): ErrorMetadata => ({ httpStatusCode: status, requestId: headers["x-amzn-requestid"] as string | undefined });
  let body: unknown;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw Object.assign(error as SyntaxError, { $metadata: metadata() });
  }
  const members = (typeof body === "object" && body !== null ? body : {}) as Body & Readonly<Record<string, unknown>>;
  if (status < 300) return members;
  const code = [members.__type, members.code, headers["x-amzn-errortype"]].find((one) => one !== undefined);
  throw new ServiceError(nameIn(code), members, metadata());
}

/** `com.amazonaws.dynamodb.v20120810#ThrottlingException:http://…` is a ThrottlingException. */
function nameIn(code: unknown): string {
  const [text = ""] = String(typeof code === "string" || typeof code === "number" ? code : "Unknown").split(/[,:]/, 1);
  return text.includes("#") ? (text.split("#")[1] ?? "") : text;
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
