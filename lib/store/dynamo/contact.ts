/**
 * Tells DynamoDB's answers from anybody else's, for all that is sent to a table. An answer is DynamoDB's only if it has what DynamoDB always
 * sends: a grant is believed from nobody else. What else came back is told apart by the table that all ways share (core/what-came-back.ts).
 */
import type { Contact } from "../../core/what-came-back.js";
import { meaningOfFailure, meaningOfStatus } from "../../core/what-came-back.js";
import { StoreNotConfigured } from "../port.js";
import type { QueryInput, ScanInput, UpdateInput } from "./calls.js";

/** The header of all answers of DynamoDB, and of its engines. */
export const REQUEST_ID = "x-amzn-requestid";

/** An answer that is not DynamoDB's. */
export class NotDynamo extends Error {
  override readonly name = "NotDynamo";
  readonly $metadata: { readonly httpStatusCode: number };
  constructor(httpStatusCode = 200) {
    super("not an answer of DynamoDB");
    this.$metadata = { httpStatusCode };
  }
}

/** True if a success has the attributes that were asked for. */
export const HAS_ALL = {
  updateItem: ({ ReturnValues }: UpdateInput, { Attributes }: { readonly Attributes?: unknown }): boolean =>
    ReturnValues !== "ALL_NEW" || isMembers(Attributes),
  query: (_input: QueryInput | ScanInput, { Items }: { readonly Items?: unknown }): boolean => Array.isArray(Items),
};

function isMembers(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface Failure {
  readonly name?: string;
  readonly message?: string;
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string | undefined; readonly attempts?: number };
}

/** Returns the message of a refusal, after a colon; `""` if there is none, such as in a page. */
function saidIn({ name, message = "" }: Failure): string {
  const [first = ""] = message.split("\n", 1);
  return name === "SyntaxError" || message === "UnknownError" ? "" : `: ${first.slice(0, MESSAGE_CHARS)}`;
}

/** The codes of a connection that broke: the answer before that says nothing. */
const BROKEN = /^(?:E[A-Z_]+|UND_ERR_.*)$/;
/** The longest part of a message of others that is told. */
const MESSAGE_CHARS = 200;

/** True if the transport failed, also within an answer: what came says nothing then. */
function isBroken({ name, code }: Failure): boolean {
  return name === "TimeoutError" || (typeof code === "string" && BROKEN.test(code));
}

/** True if an error is DynamoDB's own, and whole. */
export function isDynamos(error: unknown): boolean {
  const { name, $metadata } = error as Failure;
  return $metadata?.requestId !== undefined && !isBroken(error as Failure) && name !== "NotDynamo";
}

/**
 * Returns what a failed operation of the table at `place` is to the store: the error as it is, if it is DynamoDB's or an outage; else
 * StoreNotConfigured, which no work proceeds past.
 */
export function judged(error: unknown, place: string, contact: Contact): unknown {
  if (isDynamos(error)) {
    contact.made();
    return error;
  }
  const { $metadata: { httpStatusCode: status, attempts = 1 } = {} } = error as Failure;
  const isFailure = status === undefined || isBroken(error as Failure);
  const { meaning, why } = isFailure ? meaningOfFailure(error) : { meaning: meaningOfStatus(status), why: String(status) };
  const notConfigured = (said: string, definite: boolean, isAskedAgain = false): StoreNotConfigured =>
    new StoreNotConfigured(said, definite && attempts === 1, { cause: error, isAskedAgain });
  switch (meaning) {
    case "outage":
    case "throttled":
      return error;
    case "untrusted":
      return notConfigured(`The certificate of ${place} is not trusted (${why})`, true);
    case "not-permitted":
      return notConfigured(`${place}: ${why}${saidIn(error as Failure)}`, true);
    case "refused":
      return notConfigured(`A proxy or a gateway answered ${why} before ${place}${saidIn(error as Failure)}`, true);
    case "nobody": {
      if (contact.wasMade) return error;
      const said = `no answer (${why}) from ${place}: is the endpoint right, and does it run?`;
      return notConfigured(said, true, !contact.missed());
    }
    case "stranger":
      return notConfigured(`What answers (${why}) at ${place} is not DynamoDB: is the endpoint right?`, false, !contact.missed());
  }
}
