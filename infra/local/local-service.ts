/**
 * The service on localhost as the package brings it: the deployed handler behind the gateway, with its records in memory or on a DynamoDB
 * that is already running. Only the latter loads the AWS SDK.
 */
import { createHandler } from "../../lambda/handler.js";
import { LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import { systemClock } from "../../lib/core/time.js";
import type { Log } from "../../lib/service/log.js";
import { createMemoryStore } from "../../lib/store/memory-store.js";
import type { Gateway, GatewayOptions } from "./gateway.js";
import { startGateway } from "./gateway.js";
import { PortTaken } from "./start-error.js";

/** A DynamoDB and the table on it, which is created unless it exists. */
export interface LocalTable {
  /** `http://host:port` of an engine. Not AWS: the credentials are fake. */
  readonly endpoint: string;
  readonly tableName: string;
}

/** Options of the service. */
export interface LocalServiceOptions {
  /** The ports to try in this order; 0 is any free one. */
  readonly ports: readonly number[];
  /** @default none: the records are in memory, and gone when the process ends */
  readonly table?: LocalTable | undefined;
  /** Names of this machine that requests may come by, besides those of the loopback interface. @default none */
  readonly allowedHosts?: readonly string[] | undefined;
  readonly log: Log;
  /** Called with failures whose details the caller doesn't get. */
  readonly onFailure: (error: unknown) => void;
}

/** Starts it. @throws StartError if no port can be had, or no engine answers */
export async function startLocalService({ ports, table, allowedHosts, log, onFailure }: LocalServiceOptions): Promise<Gateway> {
  const handler = table ? await handlerOn(table, log) : handlerInMemory(log, onFailure);
  return startOnOneOf(ports, { handler, allowedHosts, onError: onFailure });
}

function handlerInMemory(log: Log, onFailure: (error: unknown) => void): GatewayOptions["handler"] {
  const store = createMemoryStore({ policy: createPolicy() });
  return createHandler({ store, clock: systemClock, log, onFailure, serverWaitMs: LIMITS.serverWaitMs });
}

async function handlerOn({ endpoint, tableName }: LocalTable, log: Log): Promise<GatewayOptions["handler"]> {
  const [{ startEngine }, { createTable }, { engineClient, engineEnvironment }, { compose }] = await Promise.all([
    import("./engine.js"),
    import("./create-table.js"),
    import("./engine-client.js"),
    import("../../lambda/compose.js"),
  ]);
  await startEngine({ endpoint });
  const creating = engineClient(endpoint);
  await createTable(creating, tableName);
  creating.destroy();
  return compose({ ...engineEnvironment(endpoint), HOLDFAST_TABLE: tableName }, { log });
}

async function startOnOneOf([port = 0, ...others]: readonly number[], options: Omit<GatewayOptions, "port">): Promise<Gateway> {
  try {
    return await startGateway({ ...options, port });
  } catch (error) {
    if (others.length === 0 || !(error instanceof PortTaken)) throw error;
    return startOnOneOf(others, options);
  }
}
