/** The ways to wrap a handler, which must behave alike: directly, and as a Middy middleware. */
import middy from "@middy/core";
import type { Lease, LeaseSet, Run } from "../../lib/index.js";
import type { IdempotencyOptions, LockHandlerOptions } from "../../lib/middy.js";
import { currentLease, currentRun, idempotencyHandler, idempotencyMiddleware, lockHandler, lockMiddleware } from "../../lib/middy.js";

// Tests send and return anything here: the types have their own test.
/* eslint-disable @typescript-eslint/no-explicit-any -- the shapes stand for handlers of every type */
/** A handler with the lease or the run that it runs under. */
export type Work<Under> = (under: Under | undefined, event: any, context: any) => Promise<unknown>;
type Deployed = (event: any, context: any) => Promise<any>;
/** A way to wrap a handler. */
export interface Shape<Options, Under> {
  readonly name: string;
  deploy(options: Options, work: Work<Under>): Deployed;
}

type LockShape = Shape<LockHandlerOptions<any, any>, Lease | LeaseSet>;
type OnceShape = Shape<IdempotencyOptions<any, any>, Run>;
/* eslint-enable @typescript-eslint/no-explicit-any -- from here on as everywhere */

/** A handler under a lock. */
export const LOCK_SHAPES: readonly LockShape[] = [
  {
    name: "lockHandler",
    deploy: (options, work) => lockHandler(options, async (event, context) => work(currentLease(), event, context)),
  },
  {
    name: "lockMiddleware, used last",
    deploy: (options, work) =>
      middy()
        .use({ before: () => undefined, after: () => undefined, onError: () => undefined })
        .use(lockMiddleware(options))
        .handler(async (event: unknown, context: unknown) => work((context as { lease?: Lease }).lease, event, context)),
  },
];

/** A handler that works once per key. */
export const ONCE_SHAPES: readonly OnceShape[] = [
  {
    name: "idempotencyHandler",
    deploy: (options, work) => idempotencyHandler(options, async (event, context) => work(currentRun(), event, context)),
  },
  {
    name: "idempotencyMiddleware, used first",
    deploy: (options, work) =>
      middy()
        .use(idempotencyMiddleware(options))
        .use({ before: () => undefined, after: () => undefined, onError: () => undefined })
        .handler(async (event: unknown, context: unknown) => work((context as { run?: Run }).run, event, context)),
  },
];
