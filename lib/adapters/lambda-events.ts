/**
 * Handlers of events that can be delivered twice: one run per message of an SQS queue whose event source has `ReportBatchItemFailures`, and
 * one per occurrence of a schedule, which is a rule of EventBridge or EventBridge Scheduler.
 */
import { isA } from "../core/brand.js";
import { InvalidRequestError, LimitExceededError, LockError, LockUnavailableError } from "../client/wire/errors.js";
import { type BatchOptions, type BatchRecord, keyOfMessage, processBatch, recordsOf, runOf, warnOfFailure } from "../client/calls/batch.js";
import type { OccurrenceOptions } from "../client/calls/occurrence.js";
import { type Tick, type TickOptions, type TickResult, checkTick } from "../client/calls/tick.js";
import { type InvocationContext, capBudgetMs } from "../client/wire/invocation.js";
import { type Limiter, limitAll } from "../client/calls/limiter.js";
import type { LockClient } from "../client/calls/lock-client.js";
import { checkKey } from "../client/calls/options.js";
import { refused } from "../client/wire/checks.js";
import type { Run } from "../client/calls/run/run-once.js";
import { CALL_BUDGET_MS, sessionOf } from "../client/calls/session.js";
import { emitQuietly } from "../client/wire/events.js";
import { invocationOf } from "./lambda.js";
import { checkClient, checkFunction, checkRunnerOptions } from "./once.js";

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
  /**
   * Returns the limits from which a message takes before its run begins, the most specific first. A message without room is not waited for:
   * the queue delivers it again. In a FIFO queue the rest of its group comes after it. @default no limits
   */
  readonly limitsFor?: ((message: Message) => readonly Limiter[]) | undefined;
  /** Returns the amount that a message takes of each limit, at most the smallest burst; 0 takes nothing. @default 1 */
  readonly costFor?: ((message: Message) => number) | undefined;
  /**
   * Sets the time after which a message without room is delivered again, in whole seconds: a call of `ChangeMessageVisibility` with its
   * `receiptHandle`. At most 11 h, since SQS allows 12 h from the delivery. In a FIFO queue it is called for the rest of the group too. If
   * it fails, `onFailure` is told, and the message comes again after the queue's visibility timeout, as without it.
   */
  readonly changeVisibility?: ((message: Message, timeoutSec: number) => Promise<unknown>) | undefined;
}

/** The response to SQS, as in its own types. */
export interface SqsResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

const GROUPS_AT_ONCE = 10;
/** The longest visibility timeout that is set, in seconds. SQS counts its 12 h from the delivery, and refuses a longer time. */
const VISIBILITY_MAX_SEC = 11 * 3600;

/**
 * Runs `work` once per message, however often the queue delivers it. The event source needs `ReportBatchItemFailures` (in the CDK
 * `reportBatchItemFailures: true`): without it, SQS deletes the messages that failed. A message is delivered again if it fails, if another process works on
 * it, if its limits have no room, or if it could not be started in time. In a FIFO queue, the messages of a group are processed in order, and after a failure the rest
 * of the group is delivered again; other groups continue.
 * @throws InvalidRequestError naming the invalid option
 */
export function sqsHandler<Message extends SqsMessage>(
  options: SqsHandlerOptions<Message>,
  work: (message: Message, run: Run) => Promise<unknown>,
): (event: { readonly Records: readonly Message[] }, context: unknown) => Promise<SqsResponse> {
  const { locks, limitsFor, costFor, changeVisibility: _changeVisibility, ...batch } = options;
  checkRunnerOptions(options, ["keyFor", "payloadFor", "onFailure", "limitsFor", "costFor", "changeVisibility"]);
  checkFunction("work", work);

  /** Takes from the limits of a message. The limiters don't know the invocation, so this gives up before it ends. */
  async function take(message: Message, invocation: InvocationContext): Promise<void> {
    const cost = costFor?.(message) ?? 1;
    if (!limitsFor || cost === 0) return;
    const limiters = limitsFor(message);
    const giveUp = new AbortController();
    const leftMs = capBudgetMs(limiters.length * CALL_BUDGET_MS, invocation);
    const noAnswer = "take: there was no answer before the invocation ends";
    const details = { code: "unavailable", definite: false, retry: "later" } as const;
    const timer = sessionOf("locks", locks).deps.clock.after(leftMs, () => giveUp.abort(new LockUnavailableError(noAnswer, details)));
    try {
      await limitAll(limiters, { cost, signal: giveUp.signal });
    } finally {
      timer.cancel();
    }
  }

  return async (event, context) => {
    const invocation = invocationOf(event, context);
    const records = recordsOf<Message>(event);
    const failed = new Set<string>();
    const isFifo = records[0]?.eventSourceARN?.endsWith(".fifo") === true;
    const waiting = isFifo ? groupsOf(records) : [records];
    const run = runOf(locks.forInvocation(invocation), batch, work);
    const shared = { keyFor: batch.keyFor ?? keyOfMessage, turns: new Map<string, Promise<unknown>>(), inOrder: isFifo };
    const runGroups = async (): Promise<void> => {
      for (let group = waiting.shift(); group; group = waiting.shift()) {
        const { onFailure, postponed } = postponing(options, isFifo);
        const { batchItemFailures } = await processBatch(group, invocation, { ...shared, onFailure }, async (message, key) => {
          await take(message, invocation);
          await run(message, key);
        });
        await Promise.all(postponed);
        for (const { itemIdentifier } of batchItemFailures) failed.add(itemIdentifier);
      }
    };
    await Promise.all(Array.from({ length: GROUPS_AT_ONCE }, runGroups));
    return {
      batchItemFailures: records.filter(({ messageId }) => failed.has(messageId)).map(({ messageId }) => ({ itemIdentifier: messageId })),
    };
  };
}

/**
 * Returns the listener of failures that sets when a message without room is delivered again, and the calls that it began. SQS delivers
 * nothing of a FIFO queue's group while any of its messages is invisible, so the rest of the group gets the same time.
 */
function postponing<Message extends SqsMessage>(
  { changeVisibility, onFailure }: SqsHandlerOptions<Message>,
  isFifo: boolean,
): { readonly onFailure: (message: Message, error: unknown) => unknown; readonly postponed: readonly Promise<void>[] } {
  const tell: (message: Message, error: unknown) => unknown = onFailure ?? warnOfFailure;
  const postponed: Promise<void>[] = [];
  let groupWaitMs: number | undefined;

  async function postpone(message: Message, waitMs: number): Promise<void> {
    try {
      await changeVisibility?.(message, Math.min(Math.ceil(waitMs / 1000), VISIBILITY_MAX_SEC));
    } catch (error) {
      void emitQuietly(tell, message, error);
    }
  }

  return {
    onFailure(message, error) {
      const waitMs = isA(error, LimitExceededError) ? error.retryAfterMs : groupWaitMs;
      if (isFifo) groupWaitMs = waitMs;
      if (waitMs !== undefined) postponed.push(postpone(message, waitMs));
      return tell(message, error);
    },
    postponed,
  };
}

function groupsOf<Message extends SqsMessage>(messages: readonly Message[]): (readonly Message[])[] {
  const groups = new Map<string, Message[]>();
  for (const message of messages) {
    const id = message.attributes?.MessageGroupId ?? "";
    groups.set(id, [...(groups.get(id) ?? []), message]);
  }
  return [...groups.values()];
}

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
  checkTick({ ...options, occurrence: new Date(0) });
  checkFunction("work", work);

  return async (event, context) => {
    const invocation = invocationOf(event, context);
    const occurrence = timeOf(event);
    await using view = locks.forInvocation(invocation);
    const result = await view.tick(name, { ...options, occurrence }, (tick) => work(tick, event));
    if (result.how !== "running") return result;
    const message = `${name}: another delivery runs the occurrence of ${occurrence.toISOString()}, or died and has not been replaced yet`;
    throw new LockError(message, { code: "run-in-progress", definite: true, retry: "later" });
  };
}

/** Returns the time for which the schedule wanted the event. @throws InvalidRequestError if the event doesn't say it */
function timeOf(event: ScheduleEvent): Date {
  const { scheduledTime, time, "detail-type": type = SCHEDULED } = (event as ScheduleEvent | null | undefined) ?? {};
  const [field, value] = scheduledTime === undefined ? ["time", time] : ["scheduledTime", scheduledTime];
  if (value === undefined)
    throw new InvalidRequestError(
      'event: names no time of its schedule; a rule of EventBridge sends it as time, and EventBridge Scheduler with the input {"scheduledTime": "<aws.scheduler.scheduled-time>"}',
      "event",
    );
  if (scheduledTime === undefined && type !== SCHEDULED)
    throw refused("detail-type", type, `it must be ${JSON.stringify(SCHEDULED)}: other events of one second have the same time`);
  if (typeof value !== "string" || !isTime(value)) throw refused(field, value, "it must be a time in UTC as 2027-01-01T03:00:00Z");
  return new Date(value);
}

/** True for a time in UTC, as AWS sends it. Without a zone it would be of this machine's, and a day that isn't would be of the next month. */
function isTime(text: string): boolean {
  const seconds = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?Z$/.exec(text)?.[1];
  const atMs = Date.parse(text);
  return seconds !== undefined && !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(seconds);
}
