/**
 * What each program here runs at: the application's table, and a client for every process that it plays. On the
 * engine that DYNAMODB_ENDPOINT names or one of its own; straight on a table there, or over the service that
 * HOLDFAST_URL names. All that it made is gone when it closes.
 */
import { DeleteTableCommand } from "@aws-sdk/client-dynamodb";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import type { ClientOptions, LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/index.js";
import type { Table } from "./table.js";
import { createTableOfOurs } from "./table.js";

/** Where it runs; nothing: an engine of its own, straight on the table. */
export interface Place {
  readonly endpoint?: string | undefined;
  readonly url?: string | undefined;
}

/** A stage that is set. */
export interface Stage {
  readonly table: Table;
  /** A client as each process would have its own. */
  join(options?: Pick<ClientOptions, "owner">): LockClient;
  close(): Promise<void>;
}

/** Sets it. @throws StartError when there is no engine here, or it doesn't start. */
export async function openStage({ endpoint, url }: Place = {}): Promise<Stage> {
  const engine = await startEngine({ endpoint });
  const client = engineClient(engine.endpoint);
  const name = `family-${randomBytes(4).toString("hex")}`;
  const locks = `${name}-locks`;
  const clients: LockClient[] = [];
  const table = await createTableOfOurs(client, name);
  if (url === undefined) await createTable(client, locks);
  return {
    table,
    join(options = {}) {
      const joined =
        url === undefined ? createTableClient({ tableName: locks, client, ...options }) : createLockClient({ url, ...options });
      clients.push(joined);
      return joined;
    },
    async close() {
      await Promise.all(clients.map((one) => one.close()));
      // What was made on somebody's own engine doesn't stay there; one of ours is gone with all it kept.
      const made = engine.kind === "external" ? [name, ...(url === undefined ? [locks] : [])] : [];
      await Promise.all(made.map((TableName) => client.send(new DeleteTableCommand({ TableName }))));
      client.destroy();
      await engine.stop();
    },
  };
}

/** Runs `scene` on a stage if `moduleUrl` is the program that was started, and not when it is imported. */
export async function play(moduleUrl: string, scene: (stage: Stage) => Promise<void>): Promise<void> {
  if (process.argv[1] !== fileURLToPath(moduleUrl)) return;
  // Node 20 is what this project supports; that the SDK will leave it one day is no news for who runs this.
  process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";
  const stage = await openStage({
    endpoint: process.env["DYNAMODB_ENDPOINT"] || undefined,
    url: process.env["HOLDFAST_URL"] || undefined,
  });
  try {
    await scene(stage);
  } finally {
    await stage.close();
  }
}
