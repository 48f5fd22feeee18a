/**
 * The logic around a handler as a Middy middleware. Middy calls one function before the handler and another after it. `before` starts the
 * call under the lease, with a pending promise as its work. `after` and `onError` settle that promise with the handler's outcome and wait
 * for the rest. So wrapper and middleware share one code path for acquire, loss and release.
 *
 * Middy (6 and 7) calls neither `after` nor `onError` when a later middleware's `before` answers early, and no further `after` or `onError`
 * once one of those returned something. Then the promise stays open, and the lease ends half a second before the invocation does.
 */
import type { Around, Outcome } from "./around.js";
import type { HttpAnswer } from "../web/problem.js";
import { withHeaders } from "./http.js";
import type { LambdaContext } from "./lambda-context.js";

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

/** A call whose handler is running. */
interface Begun {
  readonly finish: (response: unknown) => void;
  readonly fail: (error: unknown) => void;
  readonly outcome: Promise<Outcome>;
}

/**
 * Returns `around` as a middleware that shows the lease or run under `name`.
 * @param isAnswer returns true if a response that another middleware made of an error counts as the outcome of the call
 */
// Over 60 lines: the three phases of a middleware share what they know of a request.
export function middlewareOf<Event, Context, Under, Name extends string>(
  name: Name,
  around: Around<Event, Context, Under>,
  isAnswer: (response: unknown) => boolean = () => false,
): Middleware<Event, Context, Partial<Record<Name, Under>>> {
  type Added = Partial<Record<Name, Under>>;
  type Request = MiddlewareRequest<Event, LambdaContext & Context & Added, Added>;
  const begun = new WeakMap<Request, Begun>();
  const owed = new WeakMap<Request, HttpAnswer>();

  /** Throws the refusal, so that error handlers and loggers see it; `onError` then sets the answer. */
  function refuse(request: Request, outcome: Outcome): void {
    if (outcome.how === "answered") return;
    owed.set(request, outcome.answer);
    throw outcome.error;
  }

  async function end(request: Request, settle: (call: Begun) => void): Promise<void> {
    const call = begun.get(request);
    if (!call) return;
    begun.delete(request);
    settle(call);
    try {
      refuse(request, await call.outcome);
    } finally {
      show(request, undefined);
    }
  }

  function show({ context, internal }: Request, under: Under | undefined): void {
    for (const place of [context, internal] as Added[]) {
      if (under === undefined) Reflect.deleteProperty(place, name);
      else place[name] = under;
    }
  }

  return {
    async before(request) {
      const { promise: work, resolve: finish, reject: fail } = promised<unknown>();
      const { promise: entered, resolve: enter } = promised<undefined>();
      const outcome = around(request.event, request.context, (under) => {
        show(request, under);
        enter(undefined);
        return work;
      });
      const first = await Promise.race([entered, outcome]);
      if (!first) return void begun.set(request, { finish, fail, outcome });
      refuse(request, first);
      if (first.how === "answered") request.earlyResponse = first.response;
    },

    after: (request) => end(request, ({ finish }) => finish(request.response)),

    async onError(request) {
      try {
        const answered = request.response !== undefined && isAnswer(request.response);
        await end(request, ({ finish, fail }) => (answered ? finish(request.response) : fail(request.error)));
      } catch (error) {
        // This is not the handler's error: the lease was lost, and the caller must know that.
        if (error !== request.error) {
          request.error = error;
          if (!owed.has(request)) request.response = undefined;
        }
      }
      const answer = owed.get(request);
      // Keep what other middlewares added to the response, such as CORS headers.
      if (answer) request.response = { ...answer, headers: withHeaders(request.response, answer.headers) };
    },
  };
}

function promised<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void; readonly reject: (error: unknown) => void } {
  let [resolve, reject]: [(value: T) => void, (error: unknown) => void] = [() => undefined, () => undefined];
  const promise = new Promise<T>((...settlers) => ([resolve, reject] = settlers));
  return { promise, resolve, reject };
}
