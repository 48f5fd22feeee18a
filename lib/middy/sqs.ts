/** The handler of an SQS queue whose event source has `ReportBatchItemFailures`: one run per message, in order where the queue has one. */
import type { BatchOptions, BatchRecord } from "../client/events.js";
import { runBatch } from "../client/events.js";
import type { LockClient } from "../client/lock-client.js";
import type { Run } from "../client/run/run-once.js";
import { checkRun } from "../client/run/run-options.js";
import { checkClient, checkFunction, invocationOf } from "./around.js";

/** A message as SQS hands it to a function. */
export interface SqsMessage extends BatchRecord {
  /** The queue's ARN: a FIFO queue's name ends in `.fifo`. */
  readonly eventSourceARN?: string;
  readonly attributes?: { readonly MessageGroupId?: string | undefined };
}

/** Options of a queue's handler, beside those of the runs. */
export interface SqsHandlerOptions<Message extends SqsMessage> extends Omit<BatchOptions<Message>, "inOrder"> {
  /** The client, made once outside of the handler. */
  readonly locks: LockClient;
}

/** What SQS is answered, as its own types have it. */
export interface SqsResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

/** Groups of a FIFO queue that are worked on at once. */
const GROUPS_AT_ONCE = 10;

/**
 * `work` once per message, however often the queue delivers it. Messages that fail, that another works on just now,
 * or that could not be begun in time come again. Of a FIFO queue, the messages of a group are worked on one after the
 * other, and after one that failed the rest of its group comes again with it; other groups go on beside it.
 * @throws InvalidRequestError naming an option that is wrong
 */
export function sqsHandler<Message extends SqsMessage>(
  options: SqsHandlerOptions<Message>,
  work: (message: Message, run: Run) => Promise<unknown>,
): (event: { readonly Records: readonly Message[] }, context: unknown) => Promise<SqsResponse> {
  const { locks, ...batch } = options;
  const { keyFor, payloadFor, onFailure, ...run } = batch;
  checkClient(locks);
  checkRun(run); // Here, and not as the failure of every message.
  for (const [name, option] of Object.entries({ keyFor, payloadFor, onFailure })) if (option !== undefined) checkFunction(name, option);
  checkFunction("work", work);

  return async ({ Records }, context) => {
    const failed = new Set<string>();
    const workThrough = async (messages: readonly Message[], inOrder: boolean): Promise<void> => {
      const { batchItemFailures } = await runBatch(locks, { Records: messages }, invocationOf(context), { ...batch, inOrder }, work);
      for (const { itemIdentifier } of batchItemFailures) failed.add(itemIdentifier);
    };
    const runGroups = async (waiting: (readonly Message[])[]): Promise<void> => {
      for (let group = waiting.shift(); group; group = waiting.shift()) await workThrough(group, true);
    };
    if (Records[0]?.eventSourceARN?.endsWith(".fifo") === true) {
      const waiting = [...groupsOf(Records).values()];
      await Promise.all(Array.from({ length: GROUPS_AT_ONCE }, () => runGroups(waiting)));
    } else await workThrough(Records, false);
    return {
      batchItemFailures: Records.filter(({ messageId }) => failed.has(messageId)).map(({ messageId }) => ({ itemIdentifier: messageId })),
    };
  };
}

/** The messages by their group, each group in the order of its messages. */
function groupsOf<Message extends SqsMessage>(messages: readonly Message[]): ReadonlyMap<string, readonly Message[]> {
  const groups = new Map<string, Message[]>();
  for (const message of messages) {
    const id = message.attributes?.MessageGroupId ?? "";
    groups.set(id, [...(groups.get(id) ?? []), message]);
  }
  return groups;
}
