/** Errors of the in-memory table: the AWS SDK's own classes and names, with DynamoDB's messages. */
import { ConditionalCheckFailedException, DynamoDBServiceException, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import type { AttributeValue, CancellationReason } from "@aws-sdk/client-dynamodb";

/** The reason why one write of a transaction did not happen. */
export type Reason = Pick<CancellationReason, "Code" | "Message" | "Item">;

/** An error of the service without fields of its own. `httpStatusCode` tells the SDK if it may retry. */
export function serviceError(name: string, message: string, httpStatusCode = 400): Error {
  const $fault = httpStatusCode >= 500 ? "server" : "client";
  return new DynamoDBServiceException({ name, message, $fault, $metadata: { attempts: 1, httpStatusCode } });
}

/** The request is invalid, regardless of the table's content. */
export function validationError(message: string): Error {
  return serviceError("ValidationException", message);
}

/** The condition was false for `item`, which is returned in wire form if the request asked for it. */
export function conditionFailed(item: Record<string, AttributeValue> | undefined): Error {
  const $metadata = { attempts: 1, httpStatusCode: 400 };
  return new ConditionalCheckFailedException({
    message: "The conditional request failed",
    $metadata,
    ...(item && { Item: item }),
  });
}

/** The transaction did not happen, for these reasons, one for each of its writes. */
export function transactionCanceled(reasons: readonly Reason[]): Error {
  const codes = reasons.map(({ Code }) => Code).join(", ");
  return new TransactionCanceledException({
    message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    $metadata: { attempts: 1, httpStatusCode: 400 },
    CancellationReasons: [...reasons],
  });
}
