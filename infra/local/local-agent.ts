/**
 * The agent of sleepers on localhost. It sweeps each minute, as on AWS, and right after a request through this process that can offer a sleeper
 * the key. It tells what answers at `AWS_ENDPOINT_URL_SFN` and `AWS_ENDPOINT_URL_LAMBDA`, with fake credentials: never AWS.
 */
import type { Environment } from "../../lambda/compose.js";
import { awsIsRunning, awsTell } from "../../lambda/executions.js";
import { ROUTES } from "../../lib/contract/routes.js";
import { systemClock } from "../../lib/core/time.js";
import { sweep } from "../../lib/service/agent.js";
import { oneClock } from "../../lib/service/clocks.js";
import type { Log } from "../../lib/service/log.js";
import type { LockStore, SleeperStore } from "../../lib/store/port.js";
import type { GatewayOptions } from "./gateway.js";

const SWEEP_EACH_MS = 60_000;
const FAKE = { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" };

type Handler = GatewayOptions["handler"];

/** Returns the environment of an agent: a service that has no address shares the other's. Undefined without any: then there is no agent. */
export function agentEnvironment({ AWS_ENDPOINT_URL_SFN: sfn, AWS_ENDPOINT_URL_LAMBDA: lambda }: Environment): Environment | undefined {
  const any = sfn || lambda;
  return any ? { ...FAKE, AWS_ENDPOINT_URL_SFN: sfn || any, AWS_ENDPOINT_URL_LAMBDA: lambda || any } : undefined;
}

/** Returns the sweep of an agent on records in memory. */
export function sweepInMemory(
  records: { readonly store: LockStore; readonly sleepers: SleeperStore },
  env: Environment,
  log: Log,
  onFailure: (error: unknown) => void,
): () => Promise<unknown> {
  const clocks = oneClock(systemClock);
  const aws = { tell: awsTell(env, systemClock), isRunning: awsIsRunning(env, systemClock, () => 1) };
  return () => sweep({ ...records, ...aws, clocks, clock: systemClock, log, onFailure });
}

/** The routes that end a hold, so that a sleeper can be next. */
const ENDING: readonly string[] = [ROUTES.release, ROUTES.releaseSet, ROUTES.break];

/** Runs the sweep each minute, after each end of a hold and each request to sleep, one at a time. Returns the handler to serve, and the end of the agent. */
export function withAgent(
  handler: Handler,
  sweepOnce: () => Promise<unknown>,
  onFailure: (error: unknown) => void,
): { readonly handler: Handler; readonly stop: () => void } {
  let isSweeping = false;
  let isDue = false;
  let isOver = false;
  async function run(): Promise<void> {
    isDue = true;
    if (isSweeping) return;
    isSweeping = true;
    while (isDue && !isOver) {
      isDue = false;
      await sweepOnce().catch(onFailure);
    }
    isSweeping = false;
  }
  let timer = systemClock.inBackground(SWEEP_EACH_MS, tick);
  function tick(): void {
    void run();
    timer = systemClock.inBackground(SWEEP_EACH_MS, tick);
  }
  return {
    async handler(event) {
      const result = await handler(event);
      const fellAsleep = event.routeKey === ROUTES.acquire && result.body?.includes('"asleep"') === true;
      if (fellAsleep || ENDING.includes(event.routeKey)) void run();
      return result;
    },
    stop() {
      isOver = true;
      timer.cancel();
    },
  };
}
