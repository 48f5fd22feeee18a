/** Runs for what Lambda is called with: requests that carry a key, batches whose messages come again. */
import { key as keyOf } from "../core/key.js";
import { InvalidRequestError } from "./errors.js";
import type { InvocationContext } from "./invocation.js";
import { tellQuietly } from "./tell.js";
import type { LockClient } from "./lock-client.js";
import type { Run } from "./run/run-once.js";
import type { RunOptions } from "./run/run-options.js";

/**
 * The key in a request's `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header: a quoted string;
 * bare text is taken too), made into one that may name a run.
 * @param headers as API Gateway or `fetch` gives them; names in any case
 * @throws InvalidRequestError when there is none
 */
export function idempotencyKeyOf(headers: Readonly<Record<string, string | undefined>> | Headers): string {
  const found =
    (headers instanceof Headers ? [...headers] : Object.entries(headers))
      .find(([name]) => name.toLowerCase() === "idempotency-key")?.[1]
      ?.trim() ?? "";
  const [, quoted] = /^"((?:[^"\\]|\\.)*)"\s*(?:;.*)?$/s.exec(found) ?? [];
  const text = quoted?.replaceAll(/\\(["\\])/g, "$1") ?? found;
  if (text === "") throw new InvalidRequestError("Idempotency-Key: the request has no such header, or an empty one", "Idempotency-Key");
  return keyOf(text);
}

/** A message of a batch, as SQS hands it to a function. */
export interface BatchRecord {
  readonly messageId: string;
  readonly body: string;
}

/** What a function answers whose event source has `ReportBatchItemFailures`. */
export interface BatchResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}

/** How a batch is worked through. */
export interface BatchOptions<R extends BatchRecord> extends Omit<RunOptions, "payload"> {
  /** The idempotency key of a message. @default `key("message", messageId)` */
  readonly keyFor?: (record: R) => string;
  /** What a message's run is about, where two messages may have one key. @default none: any payload matches */
  readonly payloadFor?: (record: R) => unknown;
  /** One after the other, and nothing after a failure: for a FIFO queue. @default false */
  readonly inOrder?: boolean;
  /** Told of every message that comes back, and why. What it throws is ignored. */
  readonly onFailure?: (record: R, error: unknown) => void;
}

/** How many messages of a batch are worked on at once. */
const AT_ONCE = 10;
/** A message is not begun when less than this is left of the invocation: its work could not even say how it ended. */
const TOO_LATE_MS = 1000;

/**
 * One run per message. Those that fail, are run by another just now, or could not be begun before the
 * invocation ends are reported in the partial batch response, and so come again; one whose work failed for
 * good does too, until its queue gives it up.
 */
export async function runBatch<R extends BatchRecord>(
  locks: LockClient,
  event: { readonly Records: readonly R[] },
  context: InvocationContext,
  options: BatchOptions<R>,
  work: (record: R, run: Run) => Promise<unknown>,
): Promise<BatchResponse> {
  const { keyFor = ({ messageId }: R) => keyOf("message", messageId), payloadFor, inOrder = false, onFailure, ...rest } = options;
  // By default not the wait for another's outcome: the queue brings the message again.
  const { waitMs = 0, ...runOptions } = rest;
  const view = locks.forInvocation(context);
  const waiting = [...event.Records];
  const failed = new Set<R>();

  async function runOne(record: R): Promise<void> {
    if (inOrder && failed.size > 0) throw new Error("a message before it failed");
    if (context.getRemainingTimeInMillis() < TOO_LATE_MS) throw new Error("the invocation ends");
    await view.runOnce(keyFor(record), { ...runOptions, waitMs, payload: payloadFor?.(record) }, (run) => work(record, run));
  }

  async function runNext(): Promise<void> {
    for (let record = waiting.shift(); record; record = waiting.shift()) {
      try {
        await runOne(record);
      } catch (error) {
        failed.add(record);
        void tellQuietly(onFailure, record, error);
      }
    }
  }

  await Promise.all(Array.from({ length: inOrder ? 1 : AT_ONCE }, runNext));
  return {
    batchItemFailures: event.Records.filter((record) => failed.has(record)).map(({ messageId }) => ({ itemIdentifier: messageId })),
  };
}
