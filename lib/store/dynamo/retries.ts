/**
 * Decides whether a request is retried, and after which pause: by a strategy of the AWS SDK's client, or by the same rules without the
 * SDK. Errors are classified here by the SDK's own lists.
 */
import type { Clock } from "../../core/time.js";
import type { ErrorMetadata } from "./service-error.js";
import { isThrottled } from "./unavailable.js";

/** The error types that the AWS SDK's strategies distinguish. */
export type ErrorType = "THROTTLING" | "TRANSIENT" | "SERVER_ERROR" | "CLIENT_ERROR";

/** Permission to send a request, and the number of retries so far. */
export interface RetryToken {
  getRetryCount(): number;
  /** The pause before sending, in ms, in addition to any pause that the strategy made itself. */
  getRetryDelay(): number;
}

/** A strategy with the AWS SDK's interface. It refuses a token if the request may not be retried. */
export interface RetryStrategy {
  acquireInitialRetryToken(scope: string): Promise<RetryToken>;
  refreshRetryTokenForRetry(token: RetryToken, info: { readonly error?: unknown; readonly errorType: ErrorType }): Promise<RetryToken>;
  recordSuccess(token: RetryToken): void;
}

const THROTTLING: ReadonlySet<string | undefined> = new Set([
  "BandwidthLimitExceeded",
  "EC2ThrottledException",
  "LimitExceededException",
  "PriorRequestNotComplete",
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "RequestThrottled",
  "RequestThrottledException",
  "SlowDown",
  "ThrottledException",
  "Throttling",
  "ThrottlingException",
  "TooManyRequestsException",
  "TransactionInProgressException",
]);
const TRANSIENT: ReadonlySet<string | undefined> = new Set(["TimeoutError", "RequestTimeout", "RequestTimeoutException"]);
const TRANSIENT_STATUS: ReadonlySet<number | undefined> = new Set([500, 502, 503, 504]);
const NETWORK: ReadonlySet<string | undefined> = new Set([
  ...["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT"],
  ...["EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN"],
]);

interface Failure {
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly cause?: unknown;
  readonly $metadata?: ErrorMetadata;
}

/** Returns the type of `error`. */
export function errorTypeOf(error: unknown): ErrorType {
  const { name, $metadata: { httpStatusCode } = {} } = error as Failure;
  if (httpStatusCode === 429 || THROTTLING.has(name)) return "THROTTLING";
  if (isTransient(error as Failure, 0)) return "TRANSIENT";
  return httpStatusCode !== undefined && httpStatusCode >= 500 && httpStatusCode <= 599 ? "SERVER_ERROR" : "CLIENT_ERROR";
}

const MAX_CAUSES = 10;

function isTransient({ name, message = "", code, cause, $metadata = {} }: Failure, depth: number): boolean {
  return (
    $metadata.clockSkewCorrected === true ||
    (name === "InvalidSignatureException" && message.includes("Signature expired")) ||
    TRANSIENT.has(name) ||
    NETWORK.has(code) ||
    TRANSIENT_STATUS.has($metadata.httpStatusCode) ||
    (typeof cause === "object" && cause !== null && depth < MAX_CAUSES && isTransient(cause, depth + 1))
  );
}

/** The retry budget of all requests of a process, and the cost of each retry. */
const BUDGET = 500;
const COST = { THROTTLING: 5, TRANSIENT: 14 } as const;
/** The upper bound of the first pause, in ms. It doubles before each further retry. */
const BASE_MS = { THROTTLING: 1000, TRANSIENT: 25 } as const;
const LONGEST_MS = 20_000;

interface Deps {
  readonly clock: Clock;
  readonly random: () => number;
}

/** The AWS SDK's standard mode, without the SDK: at most `maxAttempts` attempts. */
export function standardRetries(maxAttempts: number, { clock, random }: Deps): RetryStrategy {
  let budget = BUDGET;
  const tokenOf = (count: number, cost: number): RetryToken & { readonly cost: number } => ({
    cost,
    getRetryCount: () => count,
    getRetryDelay: () => 0,
  });
  return {
    acquireInitialRetryToken: () => Promise.resolve(tokenOf(0, 1)),
    async refreshRetryTokenForRetry(token, { errorType }) {
      const count = token.getRetryCount();
      const isRetried = errorType === "THROTTLING" || errorType === "TRANSIENT";
      if (!isRetried || count + 1 >= maxAttempts || budget < COST[errorType]) throw new Error("not sent again");
      budget -= COST[errorType];
      const pauseMs = random() * Math.min(BASE_MS[errorType] * 2 ** count, LONGEST_MS);
      await new Promise<void>((resolve) => clock.after(pauseMs, resolve));
      return tokenOf(count + 1, COST[errorType]);
    },
    recordSuccess(token) {
      budget = Math.min(BUDGET, budget + (token as RetryToken & { readonly cost: number }).cost);
    },
  };
}

/**
 * Sends until an attempt is answered, or `retries` allows no further one. The error has the number of attempts. A throttled request is not
 * sent again here: it certainly did nothing, and its caller paces what comes next by how urgent it is (decision 059).
 */
export async function sendUntilAnswered<Answer>(attempt: () => Promise<Answer>, retries: RetryStrategy, clock: Clock): Promise<Answer> {
  let token = await retries.acquireInitialRetryToken("");
  for (;;) {
    try {
      const answer = await attempt();
      retries.recordSuccess(token);
      return answer;
    } catch (error) {
      const sent = token.getRetryCount() + 1;
      if (isThrottled(error)) throw withAttempts(error, sent);
      try {
        token = await retries.refreshRetryTokenForRetry(token, { error, errorType: errorTypeOf(error) });
      } catch {
        throw withAttempts(error, sent);
      }
      const delayMs = token.getRetryDelay();
      if (delayMs > 0) await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    }
  }
}

/** Returns the error with the number of attempts, in the AWS SDK's form. */
function withAttempts(error: unknown, attempts: number): Error {
  const failure = (error instanceof Error ? error : new Error(String(error))) as Error & { $metadata?: ErrorMetadata };
  (failure.$metadata ??= {}).attempts = attempts;
  return failure;
}
