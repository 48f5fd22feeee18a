/**
 * The one interface between a client and a service, as one function: whatever stands between them (failover, faults, counting, another
 * process) wraps it. `ServiceApi` is the same with a method for each operation.
 */
import type { CallOptions } from "./locks.js";
import type { ServiceApi } from "./runs.js";

/** The name of an operation. */
export type Operation = keyof ServiceApi;
export type RequestOf<Name extends Operation> = Requests[Name];
/** The answer of an operation, refusals included. */
export type AnswerOf<Name extends Operation> = Answers[Name];

type Requests = { readonly [Name in Operation]: Parameters<ServiceApi[Name]>[0] };
type Answers = { readonly [Name in Operation]: Awaited<ReturnType<ServiceApi[Name]>> };

/** Sends one request. Rejects with {@link NoResponse} if there is no answer. */
export type Call = <Name extends Operation>(operation: Name, request: RequestOf<Name>, options?: CallOptions) => Promise<AnswerOf<Name>>;

/** Stands between a client and a service. */
export type Wrap = (next: Call) => Call;

/** Returns the operations of a service whose requests `call` sends. `names` is any table with a member for each operation. */
export function apiBy(names: Readonly<Record<Operation, unknown>>, call: Call): ServiceApi {
  const methods = Object.keys(names).map((name) => [
    name,
    (request: never, options?: CallOptions) => call(name as Operation, request, options),
  ]);
  // The one cast of this kind: the table has every operation, and each method calls the operation of its own name.
  const api: unknown = Object.fromEntries(methods);
  return api as ServiceApi;
}

/** Returns the call that carries out the operations of `api`. */
export function callOf(api: ServiceApi): Call {
  return (operation, request, options) => (api[operation] as Method<typeof operation>)(request, options);
}

/** Returns the operations of `api` behind `wrap`. */
export function wrapped(api: ServiceApi, wrap: Wrap): ServiceApi {
  return apiBy(api, wrap(callOf(api)));
}

type Method<Name extends Operation> = (request: RequestOf<Name>, options?: CallOptions) => Promise<AnswerOf<Name>>;
