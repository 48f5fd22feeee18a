/**
 * Limits in front of a web framework's routes, for all frameworks: what a request takes, the answer to one without room, and the headers
 * `RateLimit` and `RateLimit-Policy` as draft-ietf-httpapi-ratelimit-headers-10 has them. A host says how headers are set and sent.
 */
import { unlessUnavailable } from "../client/calls/unavailable.js";
import { isA } from "../core/brand.js";
import { type TakeResult, checkLimiter, TIMEOUT } from "../client/calls/limiter.js";
import type { LockClient } from "../client/calls/lock-client.js";
import { type Checks, checkOptions, oneOf, unchecked, whole } from "../client/wire/checks.js";
import { sessionOf } from "../client/calls/session.js";
import { InvalidRequestError, LimitExceededError } from "../client/wire/errors.js";
import { type Rate, type RateWithBurst, costMaxOf, ratesText, withBurst } from "../core/rate.js";
import { checkClient, checkFunction } from "./once.js";
import { type HttpAnswer, problemAnswer, refusalBefore } from "./problem.js";
import { checkName, requestKeys } from "./request.js";

/**
 * Options of a limit in front of routes. A request without room is answered 429 before the route runs, as a problem with the code
 * `rate-limited` and Retry-After. Served and refused responses have the headers `RateLimit` and `RateLimit-Policy`. Several levels are
 * several of these, the most specific first: what a later one refuses stays taken from the earlier ones.
 */
export interface RateLimitOptions<Request> {
  /** The client, created once outside of the handler. */
  readonly locks: LockClient;
  /**
   * The name of the service whose requests these are, the first part of every key: one service's limit is never another's.
   * @default in Lambda the function's name (`AWS_LAMBDA_FUNCTION_NAME`); elsewhere it is required
   */
  readonly service?: string | undefined;
  /** The name of the limit within its service, and of its policy in the headers: 1 to 64 characters of `A-Z a-z 0-9 . _ : -`. */
  readonly name: string;
  /**
   * Names the caller, each of whom has a limit: the subject of a token, never the token, or an address. A caller without a name, and one
   * that looks like a credential, is an error, and the route does not run. `"none"`: one limit for all requests together.
   */
  readonly caller: ((request: Request) => string) | "none";
  /**
   * 1 to 4 rates, which a request must fit together: of `{ count: 100, perMs: 60_000 }` at most 100 in any minute, and 25 at once. They are
   * part of the key, so other rates begin with full limits.
   */
  readonly rates: readonly Rate[];
  /** The amount that a request takes of every rate, at most the smallest burst; 0: the request is not limited. @default 1 */
  readonly cost?: number | ((request: Request) => number) | undefined;
  /**
   * The behaviour if the locks can't be reached: `"throw"` answers 503 with Retry-After, and `"proceed"` runs the route without a limit,
   * which the client's `onEvent` reports. No route can be skipped: a request needs an answer.
   * @default "throw"
   */
  readonly whenUnavailable?: "throw" | "proceed" | undefined;
  /**
   * The longest time for which a request waits for an answer of the locks, in ms, 100 to 10 000. For 3 s after an outage, a route with
   * `"proceed"` runs at once, without asking.
   * @default 1000
   */
  readonly timeoutMs?: number | undefined;
}

/** The outcome for a request: headers to add to its response, and if the route must not run, why and the answer in its place. */
interface Limited {
  readonly headers: Readonly<Record<string, string>>;
  readonly refused?: { readonly error: unknown; readonly answer: HttpAnswer };
}

/** Takes from the limit for a request. Rejects with an error of the application's configuration. */
export type Limit<Request> = (request: Request) => Promise<Limited>;

const OPTIONS: Checks<RateLimitOptions<never>> = {
  locks: (_name, value) => checkClient(value),
  name: checkName,
  rates: (_name, value) => checkLimiter({ rates: value as readonly Rate[] }),
  whenUnavailable: oneOf("throw", "proceed"),
  timeoutMs: TIMEOUT,
  service: unchecked,
  caller: unchecked,
  cost: unchecked,
};
const UNLIMITED: Limited = { headers: {} };
/** The default time for an answer, in ms: a request is not held up for long by its limit. */
const TIMEOUT_MS = 1000;

/** @throws InvalidRequestError naming the option that is invalid, or required and missing. */
export function checkLimit(options: Partial<RateLimitOptions<never>>, ...required: readonly (keyof RateLimitOptions<never>)[]): void {
  checkOptions("rateLimit", options, OPTIONS, "name", "rates", ...required);
  const { cost, rates = [] } = options;
  if (typeof cost === "function") checkFunction("cost", cost);
  else if (cost !== undefined) whole(0, costMaxOf(rates.map(withBurst)))("cost", cost);
}

/**
 * Returns the function that takes from the limit of these options.
 * @throws InvalidRequestError naming the invalid option
 */
export function limitRequests<Request>(options: RateLimitOptions<Request>): Limit<Request> {
  checkLimit(options, "locks");
  const { locks, name, cost = 1, whenUnavailable, timeoutMs = TIMEOUT_MS } = options;
  const rates = options.rates.map(withBurst);
  const session = sessionOf("locks", locks);
  const keys = requestKeys<readonly [Request]>(options);
  const policies = policiesOf(name, options.rates, rates);
  const costMax = costMaxOf(rates);
  const isCost = (units: unknown): boolean => Number.isSafeInteger(units) && (units as number) >= 1 && (units as number) <= costMax;
  const rateNames = ratesText(rates).replaceAll("/", ":").replaceAll(",", "-");

  return async (request) => {
    const units = typeof cost === "function" ? cost(request) : cost;
    if (units === 0) return UNLIMITED;
    // A cost comes from the request, so a wrong one is the caller's mistake.
    if (!isCost(units)) {
      const error = new InvalidRequestError(
        `cost: must be a whole number from 0 to ${costMax}, the smallest burst: ${String(units)} given`,
        "cost",
      );
      return { headers: {}, refused: { error, answer: problemAnswer("invalid-request", { detail: error.message }) } };
    }
    const key = keys.ofLimit([request], name, rateNames);
    try {
      const taken = await unlessUnavailable(session, { whenUnavailable, timeoutMs }, session.keyOf(key), {
        acquire: () => locks.limiter(key, { rates }).take({ cost: units, timeoutMs }),
        under: async (granted): Promise<TakeResult | undefined> => granted,
        alone: () => undefined,
      });
      return taken ? { headers: headersOf(policies, (at) => [taken.remaining[at] ?? 0, policies[at]?.unitSec ?? 0]) } : UNLIMITED;
    } catch (error) {
      const answer = refusalBefore(error, "unavailable");
      if (!answer) throw error;
      if (!isA(error, LimitExceededError)) return { headers: {}, refused: { error, answer } };
      const waitSec = Number(answer.headers["retry-after"]);
      return { headers: headersOf(policies, () => [0, waitSec]), refused: { error, answer } };
    }
  };
}

interface Policy {
  /** Its name, as a string of structured fields (RFC 9651). */
  readonly name: string;
  /** The amount and the time of the rate, whose seconds are whole. */
  readonly parameters: string;
  /** The time in which at least one unit more can be taken, in seconds. */
  readonly unitSec: number;
}

/** @param given the rates as the application gave them, which its callers are told; `rates` says when there is more */
function policiesOf(name: string, given: readonly Rate[], rates: readonly RateWithBurst[]): readonly Policy[] {
  return given.map(({ count, perMs }, at) => {
    const windowSec = Math.ceil(perMs / 1000);
    return {
      name: `"${name}${given.length > 1 ? `-${at + 1}` : ""}"`,
      parameters: `q=${Math.floor((count * windowSec * 1000) / perMs)};w=${windowSec}`,
      unitSec: Math.ceil(perMs / (rates[at]?.count ?? count) / 1000),
    };
  });
}

/**
 * Returns the headers. Of a refused request, no rate's remaining amount is known, and so they tell 0 of each for the time until it has room.
 * @param stateOf returns the remaining amount of a rate, and the time in seconds until it is more
 */
function headersOf(policies: readonly Policy[], stateOf: (at: number) => readonly [remaining: number, resetSec: number]) {
  const states = policies.map(({ name }, at) => {
    const [remaining, resetSec] = stateOf(at);
    return `${name};r=${remaining};t=${resetSec}`;
  });
  return { "RateLimit-Policy": policies.map(({ name, parameters }) => `${name};${parameters}`).join(", "), RateLimit: states.join(", ") };
}
