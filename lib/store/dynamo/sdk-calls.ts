/** The operations through the AWS SDK's client, with everything that the client carries. It is the reference for the built-in transport. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type * as Lib from "@aws-sdk/lib-dynamodb";
import { closeIdle, type Connections } from "../../core/idle-connections.js";
import { type Clock, systemClock } from "../../core/time.js";
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

/** The time in ms after which a request is aborted: the longest time for which an attempt at a lease waits for its answer. */
const ABANDONED_MS = 3000;

/** Runs a request of `client`, and aborts it when nobody waits for it any more. Its handler then closes its idle connections. */
async function bounded<T>(
  client: DynamoDBClient,
  clock: Clock,
  send: (options: { readonly abortSignal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const abandoned = new AbortController();
  const timer = clock.after(ABANDONED_MS, () => abandoned.abort());
  try {
    return await send({ abortSignal: abandoned.signal });
  } catch (error) {
    if (!abandoned.signal.aborted) throw error;
    for (const agent of agentsOf(client)) closeIdle(agent);
    throw Object.assign(new Error(`no answer within ${ABANDONED_MS} ms`, { cause: error }), { name: "TimeoutError" });
  } finally {
    timer.cancel();
  }
}

/** Returns the agents of the client's own handler of Node; none if it has another one. */
function agentsOf({ config }: DynamoDBClient): readonly Connections[] {
  const handler = config.requestHandler as { readonly httpHandlerConfigs?: () => Readonly<Record<string, unknown>> };
  const { httpAgent, httpsAgent } = handler.httpHandlerConfigs?.() ?? {};
  return [httpAgent, httpsAgent].filter(isAgent);
}

function isAgent(value: unknown): value is Connections {
  return typeof value === "object" && value !== null && "freeSockets" in value;
}

/** Returns operations that send through `client`. */
export function sdkCalls(client: DynamoDBClient, documents: Documents, clock: Clock = systemClock): TableCalls {
  const { DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand, UpdateCommand } = documents;
  const sender = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  const contact = new Contact();
  /** Returns the answer, if it is one of DynamoDB's with the attributes that were asked for. */
  async function answerOf<Output extends Answer>(
    send: (options: { readonly abortSignal: AbortSignal }) => Promise<Output>,
    hasAll: (output: Output) => boolean = () => true,
  ): Promise<Output> {
    try {
      const output = await bounded(client, clock, send);
      const { requestId, httpStatusCode } = (output as Partial<Answer>).$metadata ?? {}; // A client in a test may have none.
      if (requestId === undefined || !hasAll(output)) throw new NotDynamo(httpStatusCode);
      contact.made();
      return output;
    } catch (error) {
      throw judged(error, "the endpoint of the given client", contact);
    }
  }
  return {
    updateItem(input) {
      const command = new UpdateCommand({ ...input, Key: { ...input.Key } });
      return answerOf(
        (options) => sender.send(command, options),
        (output) => HAS_ALL.updateItem(input, output),
      );
    },
    getItem: (input) => answerOf((options) => sender.send(new GetCommand({ ...input, Key: { ...input.Key } }), options)),
    query: (input) =>
      answerOf(
        (options) => sender.send(new QueryCommand(input), options),
        (output) => HAS_ALL.query(input, output),
      ),
    transactWriteItems({ ClientRequestToken, TransactItems }) {
      const items = TransactItems.map(({ Update }) => ({ Update: { ...Update, Key: { ...Update.Key } } }));
      return answerOf((options) => sender.send(new TransactWriteCommand({ ClientRequestToken, TransactItems: items }), options));
    },
  };
}
