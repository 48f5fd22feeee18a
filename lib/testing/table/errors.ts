/** Errors of the table in memory, with DynamoDB's names, fields and messages. */
import type { CancellationReason, WireItem } from "../../store/dynamo/calls.js";
import { ServiceError } from "../../store/dynamo/service-error.js";

/** An error of the service, with its own fields in `more`. `httpStatusCode` says if the request may be sent again. */
export function serviceError(name: string, message: string, httpStatusCode = 400, more: object = {}): Error {
  return new ServiceError(name, { message, ...more }, { attempts: 1, httpStatusCode, requestId: "R1" });
}

/** The request is invalid, regardless of the table's content. */
export function validationError(message: string): Error {
  return serviceError("ValidationException", message);
}

/** The condition was false for `item`, which is returned in wire form if the request asked for it. */
export function conditionFailed(item: WireItem | undefined): Error {
  return serviceError("ConditionalCheckFailedException", "The conditional request failed", 400, item && { Item: item });
}

/** The transaction did not happen, for these reasons, one for each of its writes. */
export function transactionCanceled(CancellationReasons: readonly CancellationReason[]): Error {
  const codes = CancellationReasons.map(({ Code }) => Code).join(", ");
  const message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`;
  return serviceError("TransactionCanceledException", message, 400, { CancellationReasons });
}
