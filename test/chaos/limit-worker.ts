/**
 * A process that calls a partner under a limit, one call after the other, until it is told to end. With each call it tells the earliest time
 * at which that was allowed to start: its take was sent then, plus the wait that the answer gave it.
 */
import { openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { engineLocation } from "../../infra/local/engine-client.js";
import { createClient } from "../../lib/client/client.js";
import { LimitExceededError } from "../../lib/client/wire/errors.js";
import type { Lease } from "../../lib/client/hold/lease-types.js";
import type { LimiterOptions } from "../../lib/client/calls/limiter.js";
import { systemRuntime } from "../../lib/client/runtime.js";
import { randomNumber } from "../../lib/core/random.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { wrapped } from "../../lib/core/api/call.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import { createPolicy } from "../../lib/core/policy.js";
import { systemClock } from "../../lib/core/time.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { tableClocks } from "../../lib/service/clocks.js";
import { NO_LOG } from "../../lib/service/log.js";
import { lockService } from "../../lib/service/service.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { tableAccess } from "../../lib/store/dynamo/table-access.js";
import { Random } from "../simulation/random.js";
import "../support/end-with-parent.js";
import type { CommonOrder, LocksAddress } from "./arena.js";
import type { Call } from "./partner.js";

/** The worker's instructions. */
export interface LimitWorkerOrder extends CommonOrder {
  /** The partner's name for the limit. */
  readonly key: string;
  readonly limit: LimiterOptions;
  /** The longest time that the partner works on a call, in ms. */
  readonly workMs: number;
  /** The name of the limiter; undefined: it calls without one. */
  readonly limiter: string | undefined;
}

/** A line of a history. */
export interface LimitLine {
  /** `called`, `lost`, or the code of an error. */
  readonly event: string;
}

const WAITS_MS = [0, 2000, 10_000];
/** The longest pause after a refusal or an error, in ms. */
const PAUSE_MS = 500;
const CALL_MS = 10_000;

const order = JSON.parse(process.argv[2] ?? "") as LimitWorkerOrder;
const random = new Random(order.seed);
const file = openSync(order.history, "a");
let isEnding = false;
/** The earliest time at which the last take that was granted may start, in µs. */
let dueAt = 0;
process.once("SIGTERM", () => (isEnding = true));

const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);
const locks = createClient(systemRuntime(timed(apiOf(order.locks))), { owner: order.name });
const partner = order.limiter === undefined ? undefined : locks.limiter(order.limiter, order.limit);

await visits();
await locks.close();

async function visits(): Promise<void> {
  while (!isEnding) await visit();
}

/** The operations as `createLockClient` reaches them, over HTTP or straight on the table. */
function apiOf(address: LocksAddress): ServiceApi {
  if ("url" in address) return httpApi({ url: address.url });
  const { calls, region, time } = tableAccess(undefined, engineLocation(address.endpoint), {
    clock: systemClock,
    random: Math.random,
    env: process.env,
  });
  const runtime = { clock: systemClock, random: randomNumber };
  const store = createDynamoStore({ calls, region, tableName: address.tableName, ...runtime, policy: createPolicy() });
  const caller = { principal: "direct", namespace: SHARED_NAMESPACE, requestId: "direct" };
  return lockService({ store, log: NO_LOG, clock: systemClock, exposeCause: true }, caller, tableClocks(systemClock, time));
}

/** Notes when the take that is granted may start. This process has one take at a time. */
function timed(api: ServiceApi): ServiceApi {
  return wrapped(api, (next) => async (operation, request, options) => {
    const sentAt = nowUs();
    const answer = await next(operation, request, options);
    if ("startInMs" in answer) dueAt = sentAt + 1000 * answer.startInMs;
    return answer;
  });
}

async function visit(): Promise<void> {
  const cost = random.whole(1, 2);
  const options = { cost, waitMs: random.pick(WAITS_MS) };
  try {
    if (!partner) dueAt = nowUs();
    if (!partner) await call(cost);
    else if (order.limit.concurrent !== undefined) await partner.run(options, (lease) => call(cost, lease));
    else {
      await partner.take(options);
      await call(cost);
    }
  } catch (error) {
    tell((error as { readonly code?: string }).code ?? String(error));
    const roomInMs = error instanceof LimitExceededError ? error.retryAfterMs : PAUSE_MS;
    await delay(random.whole(0, Math.min(PAUSE_MS, roomInMs)));
  }
}

/** Calls the partner, unless the permit was lost. */
async function call(cost: number, lease?: Lease): Promise<void> {
  const body: Call = { key: order.key, cost, dueAt, workMs: random.whole(Math.ceil(order.workMs / 3), order.workMs) };
  const signals = [AbortSignal.timeout(CALL_MS), ...(lease ? [lease.signal] : [])];
  if (lease && !lease.isHeld()) return void tell("lost");
  await fetch(order.resource, { method: "POST", body: JSON.stringify(body), signal: AbortSignal.any(signals) }).then((response) =>
    response.text(),
  );
  tell("called");
}

function tell(event: string): void {
  const line: LimitLine = { event };
  writeSync(file, `${JSON.stringify(line)}\n`);
}
