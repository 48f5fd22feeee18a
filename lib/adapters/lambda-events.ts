/**
 * Handlers of events that can be delivered twice: one run per message of an SQS queue whose event source has `ReportBatchItemFailures`, and
 * one per occurrence of a schedule, which is a rule of EventBridge or EventBridge Scheduler.
 */
import { InvalidRequestError, LockError } from "../client/errors.js";
import type { BatchOptions, BatchRecord } from "../client/events.js";
import { runBatch } from "../client/events.js";
import type { OccurrenceOptions } from "../client/jobs/occurrence.js";
import type { Tick, TickOptions, TickResult } from "../client/jobs/tick.js";
import { checkTick } from "../client/jobs/tick.js";
import type { LockClient } from "../client/lock-client.js";
import { checkKey, refused } from "../client/options.js";
import type { Run } from "../client/run/run-once.js";
import { invocationOf } from "./lambda.js";
import { checkClient, checkFunction, checkOptions } from "./once.js";

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
  checkOptions(options, ["keyFor", "payloadFor", "onFailure"]);
  checkFunction("work", work);

  return async ({ Records }, context) => {
    const failed = new Set<string>();
    const isFifo = Records[0]?.eventSourceARN?.endsWith(".fifo") === true;
    const waiting = isFifo ? groupsOf(Records) : [Records];
    const runGroups = async (): Promise<void> => {
      for (let group = waiting.shift(); group; group = waiting.shift()) {
        const event = { Records: group };
        const { batchItemFailures } = await runBatch(locks, event, invocationOf(context), { ...batch, inOrder: isFifo }, work);
        for (const { itemIdentifier } of batchItemFailures) failed.add(itemIdentifier);
      }
    };
    await Promise.all(Array.from({ length: GROUPS_AT_ONCE }, runGroups));
    return {
      batchItemFailures: Records.filter(({ messageId }) => failed.has(messageId)).map(({ messageId }) => ({ itemIdentifier: messageId })),
    };
  };
}

/** Returns the messages by group, each group in delivery order. */
function groupsOf<Message extends SqsMessage>(messages: readonly Message[]): (readonly Message[])[] {
  const groups = new Map<string, Message[]>();
  for (const message of messages) {
    const id = message.attributes?.MessageGroupId ?? "";
    groups.set(id, [...(groups.get(id) ?? []), message]);
  }
  return [...groups.values()];
}

/** An event of a schedule. */
export interface ScheduleEvent {
  /** From EventBridge Scheduler, with the target's input `{"scheduledTime": "<aws.scheduler.scheduled-time>"}`. */
  readonly scheduledTime?: string;
  /** From a rule of EventBridge. */
  readonly time?: string;
  /** From a rule: `Scheduled Event` for a schedule. */
  readonly "detail-type"?: string;
}

/** Options of a schedule's handler, in addition to those of a tick, whose occurrence the event names. */
export interface ScheduleHandlerOptions extends Omit<TickOptions, keyof OccurrenceOptions | "signal"> {
  /** The client, created once outside of the handler. */
  readonly locks: LockClient;
  /** The name of the schedule. Functions with the same name run an occurrence once between them. */
  readonly name: string;
}

/** The result of a schedule's handler. An occurrence that is running is an error there. */
export type ScheduleResult<T> = Exclude<TickResult<T>, { readonly how: "running" }>;

/** The detail type of a rule's event, if the rule has a schedule. */
const SCHEDULED = "Scheduled Event";

/**
 * Returns a handler that runs `work` once for each occurrence of its schedule, however often it is delivered. If `work` throws, so does the
 * handler: Lambda delivers the event again, and that is the next attempt. It throws as well while another delivery runs the occurrence: that
 * one may have died, and then a later delivery must take it over.
 * @throws InvalidRequestError naming the invalid option; the handler throws one if an event names no time
 */
export function scheduleHandler<T, Event extends ScheduleEvent = ScheduleEvent>(
  { locks, name, ...options }: ScheduleHandlerOptions,
  work: (tick: Tick, event: Event) => Promise<T> | T,
): (event: Event, context: unknown) => Promise<ScheduleResult<T>> {
  checkClient(locks);
  checkKey(name);
  checkTick({ ...options, occurrence: new Date(0) }); // Checked once here; otherwise every occurrence would fail.
  checkFunction("work", work);

  return async (event, context) => {
    const occurrence = timeOf(event);
    await using view = locks.forInvocation(invocationOf(context));
    const result = await view.tick(name, { ...options, occurrence }, (tick) => work(tick, event));
    if (result.how !== "running") return result;
    const message = `${name}: another delivery runs the occurrence of ${occurrence.toISOString()}, or died and has not been replaced yet`;
    throw new LockError(message, { code: "run-in-progress", definite: true, retry: "later" });
  };
}

/** Returns the time for which the schedule wanted the event. @throws InvalidRequestError if the event doesn't say it */
function timeOf(event: ScheduleEvent): Date {
  const { scheduledTime, time, "detail-type": type = SCHEDULED } = (event as ScheduleEvent | null | undefined) ?? {};
  const [field, given] = scheduledTime === undefined ? ["time", time] : ["scheduledTime", scheduledTime];
  if (given === undefined)
    throw new InvalidRequestError(
      'event: names no time of its schedule; a rule of EventBridge sends it as time, and EventBridge Scheduler with the input {"scheduledTime": "<aws.scheduler.scheduled-time>"}',
      "event",
    );
  if (scheduledTime === undefined && type !== SCHEDULED)
    throw refused("detail-type", type, `it must be ${JSON.stringify(SCHEDULED)}: other events of one second have the same time`);
  if (typeof given !== "string" || !/^\d{4}-\d\d-\d\dT/.test(given) || Number.isNaN(Date.parse(given)))
    throw refused(field, given, "it must be a time as 2027-01-01T03:00:00Z");
  return new Date(given);
}
