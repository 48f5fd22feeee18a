/**
 * A service for child processes: the real handler behind the local gateway, on its own table, in real time; and the SDK
 * beside it, as a competing caller.
 */
import { afterAll, beforeAll } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import type { LogLine } from "../../lib/service/log.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { type Environment, endAll } from "./holdfast.js";

/** A running service. */
export interface Service {
  readonly url: string;
  readonly table: FreshTable;
  /** The environment in which `holdfast` finds the service. */
  readonly env: Environment;
  /** The environment in which it finds the table, without the service. */
  readonly tableEnv: Environment;
  readonly locks: LockClient;
  readonly lines: readonly LogLine[];
  /** Stops answering, as if no server were there. */
  goAway(): Promise<void>;
  close(): Promise<void>;
}

/** Serves on a free port, with these settings of the function. */
export async function serve(settings: Environment = {}): Promise<Service> {
  const table = await freshTable();
  const lines: LogLine[] = [];
  const handler = compose({ ...table.env, ...settings }, { log: (line) => void lines.push(line) });
  const gateway: Gateway = await startGateway({ handler, port: 0 });
  const locks = createLockClient({ url: gateway.url, owner: "somebody-else" });
  return {
    url: gateway.url,
    table,
    env: { HOLDFAST_URL: gateway.url },
    tableEnv: table.env,
    locks,
    lines,
    goAway: () => gateway.close(),
    async close() {
      await locks.close();
      await gateway.close();
      table.client.destroy();
    },
  };
}

/** Serves for the tests of a file, and afterwards ends what they started. The service has its members once they run. */
export function serveHere(): Service {
  const service = {} as Service;
  beforeAll(async () => void Object.assign(service, await serve()));
  afterAll(async () => {
    await endAll();
    await service.close();
  });
  return service;
}
