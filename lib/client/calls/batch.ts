/** Runs for Lambda events: requests with an idempotency key, and batches whose messages can be delivered again. */
import { key as keyOf } from "./key.js";
import { isA } from "../../core/brand.js";
import { InvalidRequestError, LimitExceededError } from "../wire/errors.js";
import { type InvocationContext, remainingMs } from "../wire/invocation.js";
import { type Checks, boolean, checkOptions, checkWork, refused } from "../wire/checks.js";
import { warnOfProcess } from "../wire/environment.js";
import { emitQuietly } from "../wire/events.js";
import type { LockClient } from "./lock-client.js";
import type { Run } from "./run/run-once.js";
import { type RunOptions, SERVED_RUN } from "./run/run-options.js";

/** The key in the header: 1 to 255 visible characters, in quotes with parameters behind, or bare. */
const QUOTED = /^"((?:[^"\\]|\\.)*)"\s*(?:;[^,]*)?$/s;
const VISIBLE = /^[\x21-\x7e]{1,255}$/;

/**
 * Returns the key in a request's `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header: a quoted string; bare text is
 * accepted too), converted to a valid name of a run. Routes read the header by the same rule.
 * @param headers as API Gateway, Node or `fetch` provides them, null for none; names in any case
 * @throws InvalidRequestError if there is no such header, or more than one, or if its text isn't 1 to 255 visible characters
 */
export function idempotencyKeyOf(headers: Readonly<Record<string, string | readonly string[] | undefined>> | Headers | null): string {
  return keyOf(keyInHeader(headerIn("idempotency-key", headers ?? {})));
}

/** Returns the header of this lower-case name; several of them as the list that proxies join them to. Undefined if there is none. */
export function headerIn(header: string, headers: NonNullable<Parameters<typeof idempotencyKeyOf>[0]>): string | undefined {
  const named = (headers instanceof Headers ? [...headers] : Object.entries(headers)).filter(([name]) => name.toLowerCase() === header);
  const values = named.flatMap(([, value]) => value ?? []);
  return values.length === 0 ? undefined : values.join(", ");
}

/**
 * Returns the key in the text of an `Idempotency-Key` header. A list is refused: proxies join a header that was sent twice, and the honest
 * retry sends it once. So a bare key has no comma and no quote.
 * @throws InvalidRequestError if it can't be a key
 */
export function keyInHeader(header = ""): string {
  const sent = header.trim();
  const quoted = QUOTED.exec(sent)?.[1]?.replaceAll(/\\(["\\])/g, "$1");
  const text = quoted ?? (/[",]/.test(sent) ? "" : sent);
  if (VISIBLE.test(text)) return text;
  throw new InvalidRequestError(
    "Idempotency-Key: the request needs this header once, with 1 to 255 visible characters; bare, they are without comma and quote",
    "Idempotency-Key",
  );
}

/** A message of a batch, as SQS passes it to a function. */
export interface BatchRecord {
  readonly messageId: string;
  readonly body: string;
}

/** The response of a function whose event source has `ReportBatchItemFailures`. */
export interface BatchResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}

/** Options for processing a batch. */
export interface BatchOptions<R extends BatchRecord> extends Omit<RunOptions, "payload" | "waitMs" | "largeResult" | "maxAttempts"> {
  /**
   * The idempotency key of a message, with the client's prefix before it; of two with one key, the second waits for the first. A caller that
   * is granted keys of a prefix needs this, or a client with that prefix. @default `key("message", messageId)`
   */
  readonly keyFor?: ((record: R) => string) | undefined;
  /** The payload of a message's run, in case two messages can have the same key. @default none: any payload matches */
  readonly payloadFor?: ((record: R) => unknown) | undefined;
  /** The time to wait if another process works on the message, in ms. @default 0: the queue delivers it again */
  readonly waitMs?: number | undefined;
  /** The largest number of times that a message's work is started. @default 0, no limit: the queue's `maxReceiveCount` is the limit */
  readonly maxAttempts?: number | undefined;
  /** `"throw"`: a message whose work returned a value that can't be kept counts as failed. @default "omit": nobody gets the value */
  readonly largeResult?: RunOptions["largeResult"];
  /** True to process the messages one by one and stop after a failure: for a FIFO queue. @default false */
  readonly inOrder?: boolean | undefined;
  /**
   * Called for every message that will be delivered again, with the reason. Errors of the listener are ignored. Without it, each is a warning
   * of the process, which is a line in the log of a function; but not a message without room under a limit, nor one that only follows.
   * @default `process.emitWarning`
   */
  readonly onFailure?: ((record: R, error: unknown) => void) | undefined;
}

const { isFinal: func } = SERVED_RUN;
const OPTIONS: Checks<BatchOptions<never>> = { ...SERVED_RUN, keyFor: func, payloadFor: func, onFailure: func, inOrder: boolean };

/** The reason of a message that only follows one which failed. */
const FOLLOWS = "a message before it failed";

/** Tells a failure that nobody listens for as a warning of the process, since the response to SQS says nothing of the reason. */
export function warnOfFailure({ messageId }: BatchRecord, error: unknown): void {
  if (isA(error, LimitExceededError) || (error as Partial<Error> | undefined)?.message === FOLLOWS) return;
  warnOfProcess(`message ${messageId} failed, and comes again: ${String(error)}`);
}

/** The number of messages of a batch that are processed concurrently. */
const AT_ONCE = 10;
/** No message is started if less than this is left of the invocation: its outcome could not be recorded in time. */
const TOO_LATE_MS = 1000;

/**
 * Processes each message as one run, for an event source with `ReportBatchItemFailures`: without it, SQS deletes the messages that failed.
 * The partial batch response reports the messages that failed, that another process works on, or that
 * could not be started before the invocation ends; the queue delivers them again. That includes messages whose work failed for good, until
 * the queue gives them up.
 * @throws InvalidRequestError naming what is invalid of event, options and work; no message is processed then.
 */
export async function runBatch<R extends BatchRecord>(
  locks: LockClient,
  event: { readonly Records: readonly R[] },
  context: InvocationContext,
  options: BatchOptions<R>,
  work: (record: R, run: Run) => Promise<unknown>,
): Promise<BatchResponse> {
  const records = recordsOf<R>(event);
  checkOptions("runBatch", options, OPTIONS);
  checkWork("runBatch", "work", work);
  const batch = { ...options, keyFor: options.keyFor ?? keyOfMessage, turns: new Map() };
  return processBatch(records, context, batch, runOf(locks.forInvocation(context), options, work));
}

/** Returns the messages of an event of SQS. @throws InvalidRequestError if it is none, such as an event of SNS, which has Records too */
export function recordsOf<R extends BatchRecord>(event: { readonly Records: readonly R[] } | undefined): readonly R[] {
  const records: unknown = event?.Records;
  if (!Array.isArray(records)) throw refused("event", event, "it must have Records, as SQS passes them to a function");
  for (const [at, record] of (records as readonly unknown[]).entries()) {
    const { messageId, body } = (record ?? {}) as Partial<BatchRecord>;
    if (typeof messageId === "string" && typeof body === "string") continue;
    const { eventSource, EventSource = eventSource } = (record ?? {}) as { readonly eventSource?: unknown; readonly EventSource?: unknown };
    const whose = typeof EventSource === "string" ? `is a record of ${EventSource}` : "is no message";
    throw new InvalidRequestError(`event: Records[${at}] ${whose}; one of SQS has a messageId and a body`, "event");
  }
  return records as readonly R[];
}

/** The key of a message whose sender named nothing. */
export function keyOfMessage({ messageId }: BatchRecord): string {
  return keyOf("message", messageId);
}

/** Returns the function that processes a message of a batch as the run `key`. */
export function runOf<R extends BatchRecord>(
  locks: LockClient,
  options: BatchOptions<R>,
  work: (record: R, run: Run) => Promise<unknown>,
): (record: R, key: string) => Promise<unknown> {
  const { keyFor: _keyFor, payloadFor, inOrder: _inOrder, onFailure: _onFailure, ...rest } = options;
  const { waitMs = 0, largeResult = "omit", maxAttempts = 0, ...others } = rest;
  const runOptions = { ...others, waitMs, largeResult, maxAttempts };
  return (record, key) => locks.runOnce(key, { ...runOptions, payload: payloadFor?.(record) }, (run) => work(record, run));
}

interface Batch<R> {
  readonly keyFor: (record: R) => string;
  /** The last message of each key that is processed, for all batches of one event. */
  readonly turns: Map<string, Promise<unknown>>;
  readonly inOrder?: boolean | undefined;
  readonly onFailure?: ((record: R, error: unknown) => unknown) | undefined;
}

/**
 * Processes each message by itself, and returns the partial batch response. Of two messages with one key, the second waits for the first:
 * asked at once, it would find the key in use, and fail.
 */
export async function processBatch<R extends BatchRecord>(
  records: readonly R[],
  context: InvocationContext,
  { keyFor, turns, inOrder = false, onFailure = warnOfFailure }: Batch<R>,
  process: (record: R, key: string) => Promise<unknown>,
): Promise<BatchResponse> {
  const waiting = [...records];
  const failed = new Set<R>();

  async function inTurn(record: R): Promise<void> {
    const key = keyFor(record);
    const before = turns.get(key);
    const turn = (async () => {
      await before?.catch(() => undefined);
      if (inOrder && failed.size > 0) throw new Error(FOLLOWS);
      if (remainingMs(context) < TOO_LATE_MS) throw new Error("the invocation ends");
      await process(record, key);
    })();
    turns.set(key, turn);
    await turn;
  }

  async function processNext(): Promise<void> {
    for (let record = waiting.shift(); record; record = waiting.shift()) {
      try {
        await inTurn(record);
      } catch (error) {
        failed.add(record);
        void emitQuietly(onFailure, record, error);
      }
    }
  }

  await Promise.all(Array.from({ length: inOrder ? 1 : AT_ONCE }, processNext));
  return {
    batchItemFailures: records.filter((record) => failed.has(record)).map(({ messageId }) => ({ itemIdentifier: messageId })),
  };
}
