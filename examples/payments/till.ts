/**
 * The environment of every program in this folder: a provider, the application's table, and clients for runs. It uses
 * the engine that DYNAMODB_ENDPOINT names, or starts one. The runs are directly in a table, or behind the service that
 * HOLDFAST_URL names. Everything it creates is deleted when it closes.
 */
import { DeleteTableCommand } from "@aws-sdk/client-dynamodb";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient, engineLocation } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import { type ProviderServer, startProvider } from "./provider-server.js";
import { type Table, createTableOfOurs } from "./table.js";

/** The place to run in. Empty: an engine of its own, with the runs directly in a table. */
export interface Place {
  readonly endpoint?: string | undefined;
  readonly url?: string | undefined;
}

/** An open till. */
export interface Till {
  readonly table: Table;
  readonly provider: ProviderServer;
  /** Creates a client, as each process would have its own. */
  join(): LockClient;
  close(): Promise<void>;
}

/** Opens the till. @throws StartError if there is no engine on this machine, or it doesn't start. */
export async function openTill({ endpoint, url }: Place = {}): Promise<Till> {
  const engine = await startEngine({ endpoint });
  const client = engineClient(engine.endpoint);
  const name = `payments-${randomBytes(4).toString("hex")}`;
  const runs = `${name}-runs`;
  const clients: LockClient[] = [];
  const table = await createTableOfOurs(client, name);
  if (url === undefined) await createTable(client, runs);
  const provider = await startProvider();
  return {
    table,
    provider,
    join() {
      const joined =
        url === undefined ? createTableClient({ tableName: runs, ...engineLocation(engine.endpoint) }) : createLockClient({ url });
      clients.push(joined);
      return joined;
    },
    async close() {
      await Promise.all(clients.map((one) => one.close()));
      await provider.close();
      // Tables on a user's own engine are deleted. An engine that we started is removed with its data.
      const made = engine.kind === "external" ? [name, ...(url === undefined ? [runs] : [])] : [];
      await Promise.all(made.map((TableName) => client.send(new DeleteTableCommand({ TableName }))));
      client.destroy();
      await engine.stop();
    },
  };
}

/** Runs `scene` at a till if `moduleUrl` is the program that was started, and does nothing if it was imported. */
export async function play(moduleUrl: string, scene: (till: Till) => Promise<void>): Promise<void> {
  if (process.argv[1] !== fileURLToPath(moduleUrl)) return;
  // This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help users of these programs.
  process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";
  const till = await openTill({
    endpoint: process.env["DYNAMODB_ENDPOINT"] || undefined,
    url: process.env["HOLDFAST_URL"] || undefined,
  });
  try {
    await scene(till);
  } finally {
    await till.close();
  }
}
