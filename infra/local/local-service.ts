/**
 * The service on localhost as the package brings it: the deployed handler behind the gateway, with its records in memory or on a DynamoDB
 * that is already running. Only the latter loads the AWS SDK.
 */
import type { Environment } from "../../lambda/compose.js";
import { createHandler } from "../../lambda/handler.js";
import { LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import { type Clock, systemClock } from "../../lib/core/time.js";
import type { Log } from "../../lib/service/log.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import type { LockStore } from "../../lib/store/port.js";
import { createStoreInMemory } from "../../lib/testing/served-table.js";
import { type Gateway, type GatewayOptions, startGateway } from "./gateway.js";
import { agentEnvironment, sweepInMemory, withAgent } from "./local-agent.js";
import { PortTaken } from "./start-error.js";

/** A DynamoDB and the table on it, which is created unless it exists. */
export interface LocalTable {
  /** `http://host:port` of an engine. Not AWS: the credentials are fake. */
  readonly endpoint: string;
  readonly tableName: string;
}

export interface LocalServiceOptions {
  /** The ports to try in this order; 0 is any free one. */
  readonly ports: readonly number[];
  /**
   * `"like-dynamodb"`: a table in memory that has DynamoDB's latency, units and throttles.
   * @default none: the records are in memory, and gone when the process ends
   */
  readonly table?: LocalTable | "like-dynamodb" | undefined;
  /** Names of this machine that requests may come by, besides those of the loopback interface. @default none */
  readonly allowedHosts?: readonly string[] | undefined;
  /** `AWS_ENDPOINT_URL_SFN` and `AWS_ENDPOINT_URL_LAMBDA`, where sleepers' targets are told. @default none: requests to sleep are refused */
  readonly wakesAt?: Environment | undefined;
  /** The time by which the service's clock is ahead of the gateway's, in ms, to practise an incident. @default 0 */
  readonly clockSkewMs?: number | undefined;
  readonly log: Log;
  /** Called with failures whose details the caller doesn't get. */
  readonly onFailure: (error: unknown) => void;
}

/** Starts it. @throws StartError if no port can be had, or no engine answers */
export async function startLocalService(options: LocalServiceOptions): Promise<Gateway> {
  const { ports, table, allowedHosts, wakesAt = {}, clockSkewMs = 0, log, onFailure } = options;
  const clock: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + clockSkewMs };
  const parts = { agentEnv: agentEnvironment(wakesAt), clock, log, onFailure };
  const inMemory = (): LocalParts => serviceInMemory(createStoreInMemory({ policy: createPolicy(), likeDynamodb: !!table }), parts);
  const { handler, sweep } = typeof table === "object" ? await serviceOn(table, parts) : inMemory();
  const agent = sweep && withAgent(handler, sweep, onFailure);
  const gateway = await startOnOneOf(ports, { handler: agent?.handler ?? handler, allowedHosts, onError: onFailure });
  if (!agent) return gateway;
  return {
    ...gateway,
    close() {
      agent.stop();
      return gateway.close();
    },
  };
}

const NOTHING = (): void => undefined;

/** A handler, and the sweep of its agent if it has one. */
interface LocalParts {
  readonly handler: GatewayOptions["handler"];
  readonly sweep?: (() => Promise<unknown>) | undefined;
}

/** The parts of the service beside its records. */
interface ServiceParts extends Pick<LocalServiceOptions, "log" | "onFailure"> {
  readonly agentEnv: Environment | undefined;
  readonly clock: Clock;
}

function serviceInMemory(store: LockStore, { agentEnv, clock, log, onFailure }: ServiceParts): LocalParts {
  const sleepers = createMemorySleepers();
  const deps = { store, clock, log, onFailure, serverWaitMs: LIMITS.serverWaitMs };
  if (!agentEnv) return { handler: createHandler(deps) };
  return { handler: createHandler({ ...deps, sleepers }), sweep: sweepInMemory({ store, sleepers }, agentEnv, log, onFailure) };
}

async function serviceOn({ endpoint, tableName }: LocalTable, { agentEnv, clock, log, onFailure }: ServiceParts): Promise<LocalParts> {
  const [{ startEngine }, { createTable }, { engineClient, engineEnvironment }, { compose }, { composeAgent }] = await Promise.all([
    import("./engine.js"),
    import("./create-table.js"),
    import("./engine-client.js"),
    import("../../lambda/compose.js"),
    import("../../lambda/agent.js"),
  ]);
  await startEngine({ endpoint });
  const creating = engineClient(endpoint);
  await createTable(creating, tableName);
  creating.destroy();
  const env = { ...agentEnv, ...engineEnvironment(endpoint), HOLDFAST_TABLE: tableName };
  if (!agentEnv) return { handler: compose(env, { clock, log }) };
  return { handler: compose({ ...env, HOLDFAST_WAKE: "1" }, { clock, log }), sweep: composeAgent(env, { log, onFailure, print: NOTHING }) };
}

/** Starts a gateway on the first of these ports that is free. @throws StartError if none is */
export async function startOnOneOf([port = 0, ...others]: readonly number[], options: Omit<GatewayOptions, "port">): Promise<Gateway> {
  try {
    return await startGateway({ ...options, port });
  } catch (error) {
    if (others.length === 0 || !(error instanceof PortTaken)) throw error;
    return startOnOneOf(others, options);
  }
}
