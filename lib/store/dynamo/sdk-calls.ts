/** The operations through the AWS SDK's client, with everything that the client carries. It is the reference for the built-in transport. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type * as Lib from "@aws-sdk/lib-dynamodb";
import { Contact } from "../../core/what-came-back.js";
import type { TableCalls } from "./calls.js";
import { HAS_ALL, NotDynamo, judged } from "./contact.js";

/** The SDK's package for documents, as far as it is used. */
export type Documents = Pick<
  typeof Lib,
  "DynamoDBDocumentClient" | "GetCommand" | "QueryCommand" | "TransactWriteCommand" | "UpdateCommand"
>;

/** The part of every answer of the SDK by which it is known whose it is. */
interface Answer {
  readonly $metadata: { readonly requestId?: string | undefined; readonly httpStatusCode?: number | undefined };
}

/** Returns operations that send through `client`. */
export function sdkCalls(client: DynamoDBClient, documents: Documents): TableCalls {
  const { DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand, UpdateCommand } = documents;
  const sender = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  const contact = new Contact();
  /** Returns the answer, if it is one of DynamoDB's with the attributes that were asked for. */
  async function answerOf<Output extends Answer>(sent: Promise<Output>, hasAll: (output: Output) => boolean = () => true): Promise<Output> {
    try {
      const output = await sent;
      const { requestId, httpStatusCode } = (output as Partial<Answer>).$metadata ?? {}; // A client in a test may have none.
      if (requestId === undefined || !hasAll(output)) throw new NotDynamo(httpStatusCode);
      contact.made();
      return output;
    } catch (error) {
      throw judged(error, "the endpoint of the given client", contact);
    }
  }
  return {
    updateItem: (input) =>
      answerOf(sender.send(new UpdateCommand({ ...input, Key: { ...input.Key } })), (output) => HAS_ALL.updateItem(input, output)),
    getItem: (input) => answerOf(sender.send(new GetCommand({ ...input, Key: { ...input.Key } }))),
    query: (input) => answerOf(sender.send(new QueryCommand(input)), (output) => HAS_ALL.query(input, output)),
    transactWriteItems: ({ ClientRequestToken, TransactItems }) =>
      answerOf(
        sender.send(
          new TransactWriteCommand({
            ClientRequestToken,
            TransactItems: TransactItems.map(({ Update }) => ({ Update: { ...Update, Key: { ...Update.Key } } })),
          }),
        ),
      ),
  };
}
