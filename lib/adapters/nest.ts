/**
 * A module for Nest 11 and 12, on Express or Fastify: idempotent routes, limits in front of routes, locked methods, and refusals as problems. Nest is not imported,
 * because Nest 12 is an ES module only: its decorators keep metadata with the global `Reflect`, and its providers are plain objects.
 */
import type { ServerResponse } from "node:http";
import { InvalidRequestError } from "../client/errors.js";
import type { LockClient } from "../client/lock-client.js";
import { withDefaults } from "../client/options.js";
import { type LockedOptions, locked } from "../client/wrap/locked.js";
import type { AsyncMethod } from "../client/wrap/wrap-method.js";
import { type NodeRequest, partsOf, serveHeld } from "./node-http.js";
import { isCovered } from "./once.js";
import { problemOf } from "./problem.js";
import { type Limit, type RateLimitOptions, checkLimit, limitRequests } from "./rate-limit.js";
import { type SentHeaders, addHeaders, carry, headersOfReply } from "./response.js";
import { type IdempotentOptions, type Serve, serveOnce } from "./route.js";

/** The token of the client: `@Inject(LOCKS) readonly locks: LockClient`. */
export const LOCKS = Symbol.for("holdfast.locks");
/** The token of the module's options. */
const OPTIONS = Symbol.for("holdfast.options");
/** The metadata of `@Idempotent()`. */
const IDEMPOTENT = Symbol.for("holdfast.idempotent");
/** The metadata of `@RateLimit()`. */
const LIMITS = Symbol.for("holdfast.limits");

/** Nest's own names for metadata and tokens. They are the same in Nest 11 and 12. */
const NEST = { catches: "__filterCatchExceptions__", args: "__routeArguments__", passthrough: "__responsePassthrough__" };
/** The numbers of `@Res()` and `@Next()` in the metadata of a route's arguments. */
const OWN_RESPONSE = /^[12]:/;

/** The additions of `reflect-metadata`, which Nest requires. */
const metadata = Reflect as unknown as {
  defineMetadata(key: unknown, value: unknown, target: object, name?: string | symbol): void;
  getMetadata(key: unknown, target: object, name?: string | symbol): unknown;
  getMetadataKeys(target: object): readonly unknown[];
};

/** A function or a class. */
type Callable = (...args: never[]) => unknown;

/** The part of Nest's execution context that is used here. */
export interface NestContext {
  getType(): string;
  getHandler(): Callable;
  getClass(): object;
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

/** A provider of Nest. */
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
    const withOptions = { inject: [OPTIONS] };
    return {
      module: HoldfastModule,
      global: true,
      imports,
      providers: [
        { provide: OPTIONS, useFactory, inject },
        { provide: LOCKS, useFactory: ({ locks }: IdempotentOptions<Request>): LockClient => locks, ...withOptions },
        {
          provide: "APP_INTERCEPTOR",
          useFactory: (options: IdempotentOptions<Request>) => new RateLimitInterceptor(options),
          ...withOptions,
        },
        {
          provide: "APP_INTERCEPTOR",
          useFactory: (options: IdempotentOptions<Request>) => new IdempotencyInterceptor(options),
          ...withOptions,
        },
        { provide: "APP_FILTER", useFactory: () => new LockErrorFilter(), inject: [] },
      ],
      exports: [LOCKS],
    };
  }
}

/**
 * Makes a route, or all routes of a controller, run once per `Idempotency-Key`, as {@link IdempotentOptions} says. Guards come before, so
 * a request that they refuse gets nothing. A route with `@Res()` without `passthrough` is refused.
 * @param options replace the module's for these routes
 */
export function Idempotent<Request extends NodeRequest = NodeRequest>(
  options: Partial<IdempotentOptions<Request>> = {},
): (target: object, name?: string | symbol, descriptor?: PropertyDescriptor) => void {
  return (target, _name, descriptor) => metadata.defineMetadata(IDEMPOTENT, options, (descriptor?.value as object | undefined) ?? target);
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

/** Returns the limits of a route or a controller. */
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
    for (const options of context.getType() === "http" ? own : []) {
      const limit = this.#limits.get(options) ?? limitRequests(withDefaults(this.#options, options) as RateLimitOptions<Request>);
      this.#limits.set(options, limit);
      const http = context.switchToHttp();
      const response = http.getResponse() as NestResponse;
      const { headers, refused } = await limit(http.getRequest() as Request);
      addHeaders(headers, response.getHeaders(), headersOfReply(response));
      if (refused) throw refused.error;
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
    const wrapped = (locked as Wrap)(options, method);
    for (const key of metadata.getMetadataKeys(method)) metadata.defineMetadata(key, metadata.getMetadata(key, method), wrapped);
    Object.assign(descriptor, { value: Object.defineProperty(wrapped, "name", { value: method.name }) });
  };
}

/** The form of `locked` that wraps a function, for a method of any type. */
type Wrap = (options: unknown, method: AsyncMethod<unknown, unknown[], unknown>) => AsyncMethod<unknown, unknown[], unknown>;

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
    if (!own || context.getType() !== "http") return next.handle();
    const options = withDefaults<Partial<IdempotentOptions<Request>>>(this.#options, own) as IdempotentOptions<Request>;
    const http = context.switchToHttp();
    const request = http.getRequest() as Request;
    const response = http.getResponse() as ServerResponse & { readonly raw?: ServerResponse };
    if (!isCovered(partsOf(request), options)) return next.handle();
    checkResponse(context.getClass(), handler);
    // By its options: controllers that inherit a method share it, and each may have its own.
    const serve = this.#serving.get(own) ?? serveOnce(options);
    this.#serving.set(own, serve);
    return new Promise((resolve, reject) => {
      serveHeld(serve, request, response.raw ?? response, options, {
        route: () => resolve(next.handle()),
        // Nest replies to each request. RxJS takes a list wherever it takes an Observable.
        reply: () => resolve([undefined] as Result),
      }).catch(reject);
    });
  }
}

/** The exception filter that the module provides: a refusal of a lock, a run or a limit becomes a problem. It leaves all other errors to Nest. */
export class LockErrorFilter {
  constructor() {
    metadata.defineMetadata(NEST.catches, [REFUSAL], LockErrorFilter);
  }

  /** Answers a request over HTTP; throws the error again elsewhere. */
  catch(error: unknown, host: Pick<NestContext, "getType" | "switchToHttp">): void {
    const answer = problemOf(error);
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
