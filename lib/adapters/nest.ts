/**
 * A module for Nest 11 and 12, on Express or Fastify: idempotent routes, limits in front of routes, locked methods, and refusals as problems. Nest is not imported,
 * because Nest 12 is an ES module only: its decorators keep metadata with the global `Reflect`, and its providers are plain objects.
 */
import type { ServerResponse } from "node:http";
import { InvalidRequestError } from "../client/wire/errors.js";
import { ENDLESS } from "../client/wire/invocation.js";
import { withDefaults } from "../client/calls/options.js";
import { type LockedOptions, locked } from "../client/calls/wrap/locked.js";
import type { AsyncMethod } from "../client/calls/wrap/wrap-method.js";
import { type Callable, handlersOf, inPlaceOf, metadata, watched, workOfRun } from "./nest-method.js";
import { type NodeRequest, partsOf, serveBuffered } from "./node-http.js";
import { isCovered, onceRunner } from "./once.js";
import { type HttpAnswer, problemAnswer, problemOf } from "./problem.js";
import { type Limit, type RateLimitOptions, checkLimit, limitRequests } from "./rate-limit.js";
import { type SentHeaders, addHeaders, carry, headersOfReply } from "./response.js";
import { type IdempotentOptions, type Serve, serveOnce } from "./route.js";

/** The token of the client: `@Inject(LOCKS) readonly locks: LockClient`. */
export const LOCKS = Symbol.for("holdfast.locks");
const OPTIONS = Symbol.for("holdfast.options");
const IDEMPOTENT = Symbol.for("holdfast.idempotent");
const LIMITS = Symbol.for("holdfast.limits");

/** Nest's own names for metadata and tokens. They are the same in Nest 11 and 12. */
const NEST = { catches: "__filterCatchExceptions__", args: "__routeArguments__", passthrough: "__responsePassthrough__" };
/** The numbers of `@Res()` and `@Next()` in the metadata of a route's arguments. */
const OWN_RESPONSE = /^[12]:/;

/** The part of Nest's execution context that is used here. */
export interface NestContext {
  getType(): string;
  getHandler(): Callable;
  getClass(): object;
  getArgs(): readonly unknown[];
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown };
}

/** A module with providers, as Nest takes it among a module's `imports`. */
export interface NestModule {
  readonly module: typeof HoldfastModule;
  readonly global: true;
  readonly imports: any[]; // eslint-disable-line @typescript-eslint/no-explicit-any -- Nest's modules
  readonly providers: NestProvider[];
  readonly exports: symbol[];
}

export interface NestProvider {
  readonly provide: string | symbol;
  readonly useFactory: (...args: any[]) => unknown; // eslint-disable-line @typescript-eslint/no-explicit-any -- what is injected
  readonly inject: any[]; // eslint-disable-line @typescript-eslint/no-explicit-any -- Nest's tokens
}

/** Options that a factory makes of injected values. */
export interface NestAsyncOptions<Request> {
  readonly imports?: any[] | undefined; // eslint-disable-line @typescript-eslint/no-explicit-any -- Nest's modules
  readonly inject?: any[] | undefined; // eslint-disable-line @typescript-eslint/no-explicit-any -- Nest's tokens
  readonly useFactory: (...args: any[]) => IdempotentOptions<Request> | Promise<IdempotentOptions<Request>>; // eslint-disable-line @typescript-eslint/no-explicit-any -- what is injected
}

/**
 * The module, imported once by the application's root module. It provides the client as {@link LOCKS} everywhere, makes `@Idempotent()`
 * routes run once per key, limits those with `@RateLimit()`, and answers refusals of locks, runs and limits.
 */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- as every module of Nest
export class HoldfastModule {
  /** Returns the module with these options for all idempotent routes. @throws InvalidRequestError naming the invalid option */
  static forRoot<Request extends NodeRequest = NodeRequest>(options: IdempotentOptions<Request>): NestModule {
    serveOnce(options);
    return HoldfastModule.forRootAsync({ useFactory: () => options });
  }

  /** Returns the module with options that a factory makes of injected values. */
  static forRootAsync<Request extends NodeRequest = NodeRequest>({
    imports = [],
    inject = [],
    useFactory,
  }: NestAsyncOptions<Request>): NestModule {
    const made = (provide: string | symbol, make: (options: IdempotentOptions<Request>) => unknown): NestProvider => {
      return { provide, useFactory: make, inject: [OPTIONS] };
    };
    return {
      module: HoldfastModule,
      global: true,
      imports,
      providers: [
        { provide: OPTIONS, useFactory, inject },
        made(LOCKS, ({ locks }) => locks),
        made("APP_INTERCEPTOR", (options) => new RateLimitInterceptor(options)),
        made("APP_INTERCEPTOR", (options) => new IdempotencyInterceptor(options)),
        made("APP_FILTER", () => new LockErrorFilter()),
      ],
      exports: [LOCKS],
    };
  }
}

/**
 * Makes a route, or all routes of a controller, run once per `Idempotency-Key`, as {@link IdempotentOptions} says. Guards come before, so
 * a request that they refuse gets nothing. A route with `@Res()` without `passthrough` is refused. So are handlers of messages and of
 * WebSockets, which have no request. A resolver of GraphQL has the request as `req` of its context: each field runs once per key, its
 * arguments are compared, and its value is replayed, which therefore is a plain object; a refusal has the problem as its `extensions`. A
 * field that is in an operation twice is refused under a key, at both places, before either begins.
 * @param options replace the module's for these routes
 */
export function Idempotent<Request extends NodeRequest = NodeRequest>(
  options: Partial<IdempotentOptions<Request>> = {},
): (target: object, name?: string | symbol, descriptor?: PropertyDescriptor) => void {
  return (target, _name, descriptor) => {
    metadata.defineMetadata(IDEMPOTENT, options, (descriptor?.value as object | undefined) ?? target);
    // The watched method has the metadata of its original, which is protected too where a caller keeps the descriptor to itself.
    if (descriptor) descriptor.value = watched(descriptor.value as Callable);
    else for (const handler of handlersOf((target as { readonly prototype: object }).prototype)) Object.defineProperty(...handler);
  };
}

/** A call of a handler, over HTTP or as the field of a GraphQL operation. */
interface NestCall<Request> {
  readonly request: Request;
  /** Undefined if a GraphQL context has none. */
  readonly response: (NestResponse & ServerResponse & { readonly raw?: ServerResponse }) | undefined;
  /** The resolved field, its place in the response, and its arguments. */
  readonly resolved?: { readonly field: string; readonly at: unknown; readonly args: unknown; readonly isAlone: boolean };
}

/** The field of a resolver, and the operation that it is in, as GraphQL tells them. */
interface GraphInfo {
  readonly fieldName: string;
  readonly path: { readonly key: unknown };
  readonly operation?: Selected;
  readonly fragments?: Readonly<Record<string, Selected>>;
}

/** A part of an operation: a field with its alias, a fragment, or the operation itself. */
interface Selected {
  readonly kind?: string;
  readonly name?: { readonly value: string };
  readonly alias?: { readonly value: string };
  readonly selectionSet?: { readonly selections: readonly Selected[] };
}

/** Returns the places in the response at which a part of an operation, and all below it, has the field. */
function placesOf(field: string, { kind, name, alias, selectionSet }: Selected, fragments: GraphInfo["fragments"]): readonly unknown[] {
  const own = kind === "Field" && name?.value === field ? [(alias ?? name).value] : [];
  const spread = kind === "FragmentSpread" ? fragments?.[name?.value ?? ""] : undefined;
  const below = [...(selectionSet?.selections ?? []), ...(spread ? [spread] : [])];
  return [...own, ...below.flatMap((one) => placesOf(field, one, fragments))];
}

/** Returns the call that a context describes. @throws InvalidRequestError if it has no request */
function callOf<Request>(context: NestContext, decorator: string): NestCall<Request> {
  const type = context.getType();
  if (type === "http") {
    const http = context.switchToHttp();
    return { request: http.getRequest() as Request, response: http.getResponse() as NestCall<Request>["response"] };
  }
  const [, args, graph, info] = context.getArgs();
  const { req, res } = (graph ?? {}) as { readonly req?: Request; readonly res?: NestCall<Request>["response"] };
  if (type === "graphql" && req !== undefined) {
    const { fieldName, path, operation = {}, fragments } = info as GraphInfo;
    const isAlone = placesOf(fieldName, operation, fragments).every((place) => place === path.key);
    return { request: req, response: res, resolved: { field: fieldName, at: path.key, args, isAlone } };
  }
  const why =
    type === "graphql"
      ? "needs the request as `req` of GraphQL's context"
      : `has no request in a context of ${type}; use runOnce, or a limiter`;
  throw new InvalidRequestError(`${decorator} on ${context.getHandler().name}: ${why}`, "context");
}

/** Returns a refusal for clients of GraphQL, which get message and `extensions` of an error. */
function graphError({ body }: HttpAnswer): Error {
  const problem = JSON.parse(body) as { readonly title: string };
  return Object.assign(new Error(problem.title), { extensions: problem });
}

function valueOf(observable: unknown): Promise<unknown> {
  const source = observable as { subscribe(observer: object): void };
  return new Promise((resolve, reject) => {
    let last: unknown;
    source.subscribe({ next: (value: unknown) => void (last = value), error: reject, complete: () => resolve(last) });
  });
}

/** A limit of `@RateLimit()`. Client, service and caller are the module's, unless it has its own. */
export type NestRateLimit<Request> = Pick<RateLimitOptions<Request>, "name" | "rates"> & Partial<RateLimitOptions<Request>>;

/**
 * Limits the requests of a route, or of all routes of a controller together, as {@link RateLimitOptions} says. Guards come before. Several
 * take from the top one first, and from those of the route before those of its controller.
 * @throws InvalidRequestError naming the invalid option
 */
export function RateLimit<Request extends NodeRequest = NodeRequest>(
  options: NestRateLimit<Request>,
): (target: object, name?: string | symbol, descriptor?: PropertyDescriptor) => void {
  checkLimit(options);
  return (target, _name, descriptor) => {
    const on = (descriptor?.value as object | undefined) ?? target;
    metadata.defineMetadata(LIMITS, [options, ...limitsOf(on)], on);
  };
}

function limitsOf<Request>(target: object): readonly NestRateLimit<Request>[] {
  return (metadata.getMetadata(LIMITS, target) ?? []) as readonly NestRateLimit<Request>[];
}

/** The interceptor of `@RateLimit()` routes, which the module provides. */
export class RateLimitInterceptor<Request extends NodeRequest = NodeRequest> {
  readonly #options: Partial<RateLimitOptions<Request>>;
  readonly #limits = new WeakMap<object, Limit<Request>>();

  constructor({ locks, service, caller }: IdempotentOptions<Request>) {
    this.#options = { locks, service, caller };
  }

  /** Calls the route if each of its limits has room. @throws LimitExceededError, LockUnavailableError */
  async intercept<Result>(context: NestContext, next: { handle(): Result }): Promise<Result> {
    const own = [...limitsOf<Request>(context.getHandler()), ...limitsOf<Request>(context.getClass())];
    if (own.length === 0) return next.handle();
    const { request, response, resolved } = callOf<Request>(context, "@RateLimit()");
    for (const options of own) {
      const limit = this.#limits.get(options) ?? limitRequests(withDefaults(this.#options, options) as RateLimitOptions<Request>);
      this.#limits.set(options, limit);
      const { headers, refused } = await limit(request);
      if (response) addHeaders(headers, response.getHeaders(), headersOfReply(response));
      if (refused) throw resolved ? graphError(refused.answer) : refused.error;
    }
    return next.handle();
  }
}

/** A response of Express or a reply of Fastify. */
interface NestResponse {
  status(code: number): void;
  header(name: string, value: string): void;
  removeHeader(name: string): void;
  getHeaders(): SentHeaders;
  send(body: string): void;
}

/**
 * Makes each call of a method hold the lock that its arguments name, as `locked` does, with the legacy decorators that Nest uses
 * (`experimentalDecorators`). It may stand above or below Nest's own. The client is the option `locks`, or the property `locks` of the
 * instance: `constructor(@Inject(LOCKS) readonly locks: LockClient) {}`.
 * @throws InvalidRequestError unless it stands on a method
 */
export function Locked<Args extends readonly any[] = any[]>( // eslint-disable-line @typescript-eslint/no-explicit-any -- before the method is seen
  options: LockedOptions<any, Args>, // eslint-disable-line @typescript-eslint/no-explicit-any -- before the class is seen
): <R>(target: object, name: string | symbol, descriptor: TypedPropertyDescriptor<(...args: Args) => Promise<R>>) => void {
  return (_target, name, descriptor) => {
    const method = (descriptor as PropertyDescriptor | undefined)?.value as AsyncMethod<unknown, unknown[], unknown> | undefined;
    if (typeof method !== "function") throw new InvalidRequestError(`@Locked() on ${String(name)}: is a legacy decorator of methods`, "fn");
    Object.assign(descriptor, { value: inPlaceOf(method, (locked as WrapMethod)(options, method)) });
  };
}

/** The form of `locked` that wraps a function, for a method of any type. */
type WrapMethod = (options: unknown, method: AsyncMethod<unknown, unknown[], unknown>) => AsyncMethod<unknown, unknown[], unknown>;

/** The interceptor of `@Idempotent()` routes, which the module provides. */
export class IdempotencyInterceptor<Request extends NodeRequest = NodeRequest> {
  readonly #options: IdempotentOptions<Request>;
  readonly #serving = new WeakMap<object, Serve<Request>>();

  /** @throws InvalidRequestError naming the invalid option */
  constructor(options: IdempotentOptions<Request>) {
    serveOnce(options);
    this.#options = options;
  }

  /** Runs the route once per key, or answers in its place. */
  async intercept<Result>(context: NestContext, next: { handle(): Result }): Promise<Result> {
    const handler = context.getHandler();
    const own = (metadata.getMetadata(IDEMPOTENT, handler) ?? metadata.getMetadata(IDEMPOTENT, context.getClass())) as
      Partial<IdempotentOptions<Request>> | undefined;
    if (!own) return next.handle();
    const options = withDefaults<Partial<IdempotentOptions<Request>>>(this.#options, own) as IdempotentOptions<Request>;
    const { request, response, resolved } = callOf<Request>(context, "@Idempotent()");
    if (resolved) return [await resolveOnce(options, request, resolved, () => valueOf(next.handle()))] as Result;
    checkResponse(context.getClass(), handler);
    // By its options: controllers that inherit a method share it, and each may have its own.
    const serve = this.#serving.get(own) ?? serveOnce(options);
    this.#serving.set(own, serve);
    if (!response || !serve.covers(request, partsOf(request))) return next.handle();
    return new Promise((resolve, reject) => {
      serveBuffered(serve, request, response.raw ?? response, options, {
        route: () => resolve(next.handle()),
        work: workOfRun,
        // Nest replies to each request. RxJS takes a list wherever it takes an Observable.
        reply: () => resolve([undefined] as Result),
      }).catch(reject);
    });
  }
}

/** Resolves a field of GraphQL once per key. @throws Error with the problem as `extensions` if it is refused */
async function resolveOnce<Request extends NodeRequest>(
  { required, fingerprint, isRecorded: _status, replayHeaders: _headers, ...options }: IdempotentOptions<Request>,
  request: Request,
  { field, isAlone, ...content }: NonNullable<NestCall<Request>["resolved"]>,
  resolve: () => Promise<unknown>,
): Promise<unknown> {
  const parts = partsOf(request);
  if (!isCovered(parts, { required })) return resolve();
  // Under the one key of the request, the second would be refused when the first is done.
  if (!isAlone) {
    const detail = `${field}: is in the operation more than once, under one Idempotency-Key; send each in a request of its own`;
    throw graphError(problemAnswer("invalid-request", { detail }));
  }
  const run = onceRunner<readonly [Request], unknown>({
    ...options,
    compared: fingerprint,
    comparedBy: "fingerprint",
    isRecorded: () => true,
  });
  const path = `${parts.path.replace(/\/$/, "")}/${field}`;
  const call = {
    args: [request],
    request: { ...parts, path, pattern: path, content: () => content },
    locks: options.locks.forInvocation(ENDLESS),
  } as const;
  const outcome = await run(call, async () => {
    try {
      return await resolve();
    } catch (error) {
      await workOfRun()?.catch(() => undefined);
      throw error;
    }
  });
  if (outcome.how === "answered") return outcome.response;
  throw graphError(outcome.answer);
}

/** The exception filter that the module provides: a refusal of a lock, a run or a limit becomes a problem. It leaves all other errors to Nest. */
export class LockErrorFilter {
  constructor() {
    metadata.defineMetadata(NEST.catches, [REFUSAL], LockErrorFilter);
  }

  /** Answers a request over HTTP; in GraphQL throws an error with the problem as its `extensions`, and elsewhere the error again. */
  catch(error: unknown, host: Pick<NestContext, "getType" | "switchToHttp">): void {
    const answer = problemOf(error);
    if (answer && host.getType() === "graphql") throw graphError(answer);
    if (!answer || host.getType() !== "http") throw error;
    const response = host.switchToHttp().getResponse() as NestResponse;
    response.status(answer.statusCode);
    carry(answer, response.getHeaders(), headersOfReply(response));
    response.send(answer.body);
  }
}

/** The class of all refusals, for Nest's `instanceof`. */
const REFUSAL = { [Symbol.hasInstance]: (error: unknown): boolean => problemOf(error) !== undefined };

/** @throws InvalidRequestError if the route sends its response itself: a replay would wait for it for ever. */
function checkResponse(controller: object, route: Callable): void {
  const args = Object.keys((metadata.getMetadata(NEST.args, controller, route.name) as object | undefined) ?? {});
  const isPassedOn = metadata.getMetadata(NEST.passthrough, controller, route.name) === true;
  if (args.some((arg) => OWN_RESPONSE.test(arg)) && !isPassedOn)
    throw new InvalidRequestError(`@Idempotent() on ${route.name}: needs @Res({ passthrough: true }), and no @Next()`, "res");
}
