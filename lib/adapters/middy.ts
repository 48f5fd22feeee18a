/**
 * The logic around a handler as a Middy middleware. Middy calls one function before the handler and another after it. `before` starts the
 * call under the lease, with a pending promise as its work. `after` and `onError` settle that promise with the handler's outcome and wait
 * for the rest. So wrapper and middleware share one code path for acquire, loss and release.
 *
 * Middy (6 and 7) calls neither `after` nor `onError` when a later middleware's `before` answers early, and no further `after` or `onError`
 * once one of those returned something. Its own time-out calls `onError` while the handler still works. Then the promise stays open, and the
 * lease ends by itself, at most 2 s after the invocation's time: nothing tells whether the handler runs, and a key under which it may run is
 * not given away.
 */
import type { Around } from "./lambda.js";
import { withHeaders } from "./lambda-http.js";
import type { CallOutcome } from "./once.js";
import type { HttpAnswer } from "./problem.js";

/** The context that Lambda passes to a function: the `Context` of `@types/aws-lambda`, written out because that package isn't always installed. */
export interface LambdaContext {
  callbackWaitsForEmptyEventLoop: boolean;
  functionName: string;
  functionVersion: string;
  invokedFunctionArn: string;
  memoryLimitInMB: string;
  awsRequestId: string;
  logGroupName: string;
  logStreamName: string;
  identity?: { cognitoIdentityId: string; cognitoIdentityPoolId: string } | undefined;
  clientContext?:
    | {
        client: { installationId: string; appTitle: string; appVersionName: string; appVersionCode: string; appPackageName: string };
        custom?: unknown;
        env: { platformVersion: string; platform: string; make: string; model: string; locale: string };
      }
    | undefined;
  tenantId?: string | undefined;
  /** The time left until Lambda stops the function, in ms. */
  getRemainingTimeInMillis(): number;
  /** @deprecated Return a promise. */
  done(error?: Error, result?: unknown): void;
  /** @deprecated Return a promise. */
  fail(error: Error | string): void;
  /** @deprecated Return a promise. */
  succeed(message: unknown, object?: unknown): void;
}

/** A request on its way through Middy, with only the fields used here, so that no Middy types are needed. */
export interface MiddlewareRequest<Event, Context, Added> {
  event: Event;
  context: Context;
  response: unknown;
  earlyResponse?: unknown;
  error: unknown;
  internal: Added;
}

/** A middleware for Middy's `use`. `Added` is the type of its additions to `request.context` and `request.internal`. */
export interface Middleware<Event, Context, Added> {
  before(request: MiddlewareRequest<Event, LambdaContext & Context & Added, Added>): Promise<void>;
  after(request: MiddlewareRequest<Event, LambdaContext & Context & Added, Added>): Promise<void>;
  onError(request: MiddlewareRequest<Event, LambdaContext & Context & Added, Added>): Promise<void>;
}

/** One request's passage through Middy, with the lease or run shown under `name` while its handler runs. */
class Passage<Under, Name extends string> {
  /** The answer to a refusal, which `onError` sets. */
  answer: HttpAnswer | undefined;
  readonly #name: Name;
  readonly #request: { readonly context: unknown; readonly internal: unknown };
  #finish: (result: unknown) => void = () => undefined;
  readonly #work = new Promise<unknown>((resolve) => (this.#finish = resolve));
  #outcome: Promise<CallOutcome<unknown>> | undefined;

  constructor(name: Name, request: { readonly context: unknown; readonly internal: unknown }) {
    this.#name = name;
    this.#request = request;
  }

  /** Begins the call. Resolves with its response if the handler must not be called. */
  async begin(
    around: (work: (under: Under) => Promise<unknown>) => Promise<CallOutcome<unknown>>,
  ): Promise<{ response: unknown } | undefined> {
    let enter: (none: undefined) => void = () => undefined;
    const entered = new Promise<undefined>((resolve) => (enter = resolve));
    const outcome = around((under) => {
      this.#show(under);
      enter(undefined);
      return this.#work;
    });
    const first = await Promise.race([entered, outcome]);
    if (first) return this.#responseOf(first);
    this.#outcome = outcome;
    return undefined;
  }

  /** Ends the call, if it has begun and not ended, with the handler's response or error. */
  async end(result: () => Promise<unknown>): Promise<void> {
    const outcome = this.#outcome;
    if (!outcome) return;
    this.#outcome = undefined;
    this.#finish(result());
    try {
      this.#responseOf(await outcome);
    } finally {
      this.#show(undefined);
    }
  }

  #show(under: Under | undefined): void {
    for (const place of [this.#request.context, this.#request.internal] as Partial<Record<Name, Under>>[]) {
      if (under === undefined) Reflect.deleteProperty(place, this.#name);
      else place[this.#name] = under;
    }
  }

  /** Throws a refusal, so that error handlers and loggers see it. */
  #responseOf(outcome: CallOutcome<unknown>): { response: unknown } {
    if (outcome.how === "answered") return outcome;
    this.answer = outcome.answer;
    throw outcome.error;
  }
}

/**
 * Returns `around` as a middleware that shows the lease or run under `name`.
 * @param isAnswer returns true if a response that another middleware made of an error counts as the outcome of the call
 */
export function middlewareOf<Event, Context, Under, Name extends string>(
  name: Name,
  around: Around<Event, Context, Under>,
  isAnswer: (response: unknown) => boolean = () => false,
): Middleware<Event, Context, Partial<Record<Name, Under>>> {
  const passages = new WeakMap<object, Passage<Under, Name>>();
  return {
    async before(request) {
      const passage = new Passage<Under, Name>(name, request);
      passages.set(request, passage);
      const early = await passage.begin((work) => around(request.event, request.context, work));
      if (early) request.earlyResponse = early.response;
    },

    async after(request) {
      await passages.get(request)?.end(async () => request.response);
    },

    async onError(request) {
      const passage = passages.get(request);
      const { response, error } = request;
      if (isTimeout(error)) return;
      try {
        await passage?.end(async () => {
          if (response === undefined || !isAnswer(response)) throw error;
          return response;
        });
      } catch (another) {
        // This is not the handler's error: the lease was lost, and the caller must know that.
        if (another !== error) Object.assign(request, { error: another, ...(!passage?.answer && { response: undefined }) });
      }
      // Keep what other middlewares added to the response, such as CORS headers.
      const answer = passage?.answer;
      if (answer) request.response = { ...answer, headers: withHeaders(request.response, answer.headers) };
    },
  };
}

/** True for the error by which Middy gives a handler up at `timeoutEarlyInMillis`, unless the application makes one of its own. */
function isTimeout(error: unknown): boolean {
  const { name, cause } = (error ?? {}) as { readonly name?: unknown; readonly cause?: { readonly package?: unknown } };
  return name === "TimeoutError" && cause?.package === "@middy/core";
}
