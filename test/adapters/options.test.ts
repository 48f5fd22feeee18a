/** The options that each adapter refuses by name when it is made, so that not every call fails. */
import "reflect-metadata";
import { describe, expect, it } from "vitest";
import { idempotent as ofExpress, rateLimit as limitInExpress } from "../../lib/express.js";
import { idempotent as ofFastify, rateLimit as limitInFastify } from "../../lib/fastify.js";
import { idempotent as ofHono, rateLimit as limitInHono } from "../../lib/hono.js";
import { InvalidRequestError } from "../../lib/index.js";
import * as lambda from "../../lib/middy.js";
import { HoldfastModule, RateLimit } from "../../lib/nest.js";
import { createLockClient } from "../../lib/testing.js";

const locks = createLockClient();
const OF_ALL = { locks, service: "shop", caller: "none" };
const work = async (): Promise<undefined> => undefined;
// Options are of every type here, and wrong ones too.
const made = (adapter: unknown, ...args: unknown[]) => (adapter as (...args: unknown[]) => unknown)(...args);

type Row = readonly [wrong: object, message: string];

const LIMIT = { name: "orders", rates: [{ count: 2, perMs: 60_000 }] };
/** Wrong options of a limit that no module of Nest has. */
const OF_LIMIT: readonly Row[] = [
  [{ name: undefined }, "name: undefined given; it is 1 to 64 characters"],
  [{ name: "all orders" }, 'name: "all orders" given; it is 1 to 64 characters'],
  [{ rates: undefined }, "rates: undefined given; it must be 1 to 4 rates"],
  [{ rates: [{ count: 2 }] }, "rates: an object given; each rate has a count and perMs"],
  [{ cost: 3 }, "cost: 3 given; it must be a whole number"],
  [{ cost: -1 }, "cost: -1 given; it must be a whole number"],
  [{ whenUnavailable: "skip" }, 'whenUnavailable: "skip" given; it must be "throw" or "proceed"'],
  [{ max: 3 }, "max: is not an option of rateLimit"],
];

/** Nothing goes on in an outage, unless the adapter says so: SQS deletes a message whose work was skipped. */
const NO_OUTAGE = ["skip", "proceed", "throw"].map((whenUnavailable): Row => [
  { whenUnavailable },
  "whenUnavailable: is not an option of a run here; these are: leaseMs,",
]);

/** Each adapter with options that it takes, and the functions that take them. */
const ADAPTERS: readonly (readonly [
  names: string,
  makers: readonly ((options: object) => unknown)[],
  options: object,
  rows: readonly Row[],
])[] = [
  [
    "idempotent routes of each framework",
    [ofExpress, ofHono, HoldfastModule.forRoot, (options: object) => made(ofFastify, options, work)].map(
      (maker) => (options: object) => made(maker, options),
    ),
    OF_ALL,
    [
      [{ caller: undefined }, "caller: undefined given; it must be a function"],
      [{ caller: "ann" }, 'caller: "ann" given; it must be a function'],
      [{ service: undefined }, "service: name the service whose requests these are"],
      [{ service: "" }, 'service: "" given; it is 1 to 64 characters'],
      [{ service: "web shop" }, 'service: "web shop" given; it is 1 to 64 characters'],
      [{ locks: undefined }, "locks: must be a client"],
      [{ replayHeaders: ["Set-Cookie"] }, "replayHeaders: Set-Cookie belongs to one response"],
      [{ replayHeaders: ["X-RateLimit-Limit"] }, "replayHeaders: X-RateLimit-Limit belongs to one response"],
      [{ replayHeaders: "etag" }, "replayHeaders: must be a list of names"],
      [{ ttlMs: 1 }, "ttlMs: is not an option of a run here"],
      ...NO_OUTAGE,
      [{ payload: {} }, "payload: is not an option of a run here"],
      [{ largeResult: "omit" }, "largeResult: is not an option of a route"],
      [{ isFinal: () => true }, "isFinal: is not an option of a route"],
      [{ isRecorded: true }, "isRecorded: must be a function"],
      [{ fingerprint: "body" }, "fingerprint: must be a function"],
      [{ required: "no" }, 'required: "no" given; it must be true or false'],
      [{ waitMs: -1 }, "waitMs: -1 given"],
    ],
  ],
  [
    "limits in front of routes",
    [limitInExpress, limitInHono, limitInFastify].map((maker) => (options: object) => made(maker, options)),
    { ...OF_ALL, ...LIMIT },
    [
      [{ locks: undefined }, "locks: must be a client"],
      [{ caller: undefined }, "caller: undefined given; it must be a function"],
      [{ service: "" }, 'service: "" given; it is 1 to 64 characters'],
      [{ cost: "1" }, 'cost: "1" given; it must be a whole number'],
      ...OF_LIMIT,
    ],
  ],
  ["@RateLimit()", [(options) => made(RateLimit, options)], LIMIT, OF_LIMIT],
  ["Hono", [(options) => made(ofHono, options)], OF_ALL, [[{ maxBodyBytes: -1 }, "maxBodyBytes: must be a whole number of bytes"]]],
  [
    "idempotencyHandler",
    [(options) => made(lambda.idempotencyHandler, options, work), (options) => made(lambda.idempotencyMiddleware, options)],
    OF_ALL,
    [
      [{ locks: {} }, "locks: must be a client"],
      [{ service: undefined }, "service: name the service whose requests these are"],
      [{ caller: undefined }, "caller: undefined given; it must be a function"],
      [{ key: "k" }, "key: must be a function"],
      [{ payload: {} }, "payload: must be a function"],
      [{ isRecorded: true }, "isRecorded: must be a function"],
      [{ keepResultMs: 5 }, "keepResultMs: 5 given; it is a whole number of ms"],
      [{ largeResult: "omit" }, "largeResult: is not an option here"],
      [{ whenUnavailable: "maybe" }, 'whenUnavailable: "maybe" given; it must be'],
      [{ keep: 5 }, "keep: is not an option of a run here"],
    ],
  ],
  [
    "lockHandler",
    [(options) => made(lambda.lockHandler, options, work), (options) => made(lambda.lockMiddleware, options)],
    { locks, key: () => "ORDER_1" },
    [
      [{ locks: undefined }, "locks: must be a client"],
      [{ key: "ORDER_1" }, 'key: "ORDER_1" given; it must be a function'],
      [{ whenHeld: "maybe" }, 'whenHeld: "maybe" given; it must be'],
      [{ whenUnavailable: "maybe" }, 'whenUnavailable: "maybe" given; it must be'],
      [{ leaseMs: 5 }, "leaseMs: 5 given; it is a whole number of ms from 1000 to 86400000"],
      [{ waitSeconds: 5 }, "waitSeconds: is not an option of acquire"],
    ],
  ],
  [
    "sqsHandler",
    [(options) => made(lambda.sqsHandler, options, work)],
    { locks },
    [
      [{ locks: {} }, "locks: must be a client"],
      [{ keyFor: "k" }, "keyFor: must be a function"],
      [{ onFailure: "log" }, "onFailure: must be a function"],
      [{ limitsFor: [] }, "limitsFor: must be a function"],
      [{ costFor: 2 }, "costFor: must be a function"],
      [{ changeVisibility: {} }, "changeVisibility: must be a function"],
      [{ leaseMs: 5 }, "leaseMs: 5 given; it is a whole number of ms"],
      ...NO_OUTAGE,
      [{ payload: {} }, "payload: is not an option of a run here"],
      [{ inOrder: true }, "inOrder: is not an option of a run here"],
    ],
  ],
  [
    "scheduleHandler",
    [(options) => made(lambda.scheduleHandler, options, work)],
    { locks, name: "nightly" },
    [
      [{ locks: {} }, "locks: must be a client"],
      [{ name: "night job" }, 'key: "night job" given'],
      [{ whenUnavailable: "skip" }, "whenUnavailable: is not an option of tick"],
      [{ overlap: "wait" }, 'overlap: "wait" given'],
      [{ everyMs: 3_600_000 }, "occurrence: tick needs one of occurrence, everyMs, cron, not occurrence and everyMs"],
    ],
  ],
  [
    "withInvocation",
    [({ locks: client }: { locks?: unknown }) => made(lambda.withInvocation, client, work)],
    { locks },
    [[{ locks: {} }, "locks: must be a client"]],
  ],
];

describe.each(ADAPTERS)("%s", (_names, makers, options, rows) => {
  it.each(rows)("refuses %j before any call", (wrong, message) => {
    for (const maker of makers) {
      expect(() => maker(options)).not.toThrow();
      expect(() => maker({ ...options, ...wrong })).toThrow(InvalidRequestError);
      expect(() => maker({ ...options, ...wrong })).toThrow(message);
    }
  });
});

it.each([
  ["idempotencyHandler", lambda.idempotencyHandler, OF_ALL, "handler"],
  ["lockHandler", lambda.lockHandler, { locks, key: () => "ORDER_1" }, "handler"],
  ["sqsHandler", lambda.sqsHandler, { locks }, "work"],
  ["scheduleHandler", lambda.scheduleHandler, { locks, name: "nightly" }, "work"],
  ["withInvocation", lambda.withInvocation, locks, "handler"],
])("%s refuses work that is none", (_name, adapter, options, name) => {
  expect(() => made(adapter, options, undefined)).toThrow(`${name}: must be a function`);
});
