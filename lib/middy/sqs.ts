/** The handler of an SQS queue whose event source has `ReportBatchItemFailures`: one run per message, in order for FIFO queues. */
import type { BatchOptions, BatchRecord } from "../client/events.js";
import { runBatch } from "../client/events.js";
import type { LockClient } from "../client/lock-client.js";
import type { Run } from "../client/run/run-once.js";
import { checkRun } from "../client/run/run-options.js";
import { checkClient, checkFunction } from "../web/once.js";
import { invocationOf } from "./around.js";

/** A message as SQS passes it to a function. */
export interface SqsMessage extends BatchRecord {
  /** The queue's ARN: a FIFO queue's name ends in `.fifo`. */
  readonly eventSourceARN?: string;
  readonly attributes?: { readonly MessageGroupId?: string | undefined };
}

/** Options of a queue's handler, in addition to those of the runs. */
export interface SqsHandlerOptions<Message extends SqsMessage> extends Omit<BatchOptions<Message>, "inOrder"> {
  /** The client, created once outside of the handler. */
  readonly locks: LockClient;
}

/** The response to SQS, as in its own types. */
export interface SqsResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

/** The number of groups of a FIFO queue that are processed concurrently. */
const GROUPS_AT_ONCE = 10;

/**
 * Runs `work` once per message, however often the queue delivers it. A message is delivered again if it fails, if another process works on
 * it, or if it could not be started in time. In a FIFO queue, the messages of a group are processed in order, and after a failure the rest
 * of the group is delivered again; other groups continue.
 * @throws InvalidRequestError naming the invalid option
 */
export function sqsHandler<Message extends SqsMessage>(
  options: SqsHandlerOptions<Message>,
  work: (message: Message, run: Run) => Promise<unknown>,
): (event: { readonly Records: readonly Message[] }, context: unknown) => Promise<SqsResponse> {
  const { locks, ...batch } = options;
  const { keyFor, payloadFor, onFailure, ...run } = batch;
  checkClient(locks);
  checkRun(run); // Checked once here; otherwise every message would fail.
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

/** Returns the messages by group, each group in delivery order. */
function groupsOf<Message extends SqsMessage>(messages: readonly Message[]): ReadonlyMap<string, readonly Message[]> {
  const groups = new Map<string, Message[]>();
  for (const message of messages) {
    const id = message.attributes?.MessageGroupId ?? "";
    groups.set(id, [...(groups.get(id) ?? []), message]);
  }
  return groups;
}
