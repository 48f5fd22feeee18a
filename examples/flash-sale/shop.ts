/**
 * What the sale runs on: an engine, the lock service as `npm start` serves it, in a process of its own,
 * and the stock's table on the same engine. None of it outlives this process, however that ends.
 */
import { DeleteTableCommand } from "@aws-sdk/client-dynamodb";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { engineClient } from "../../infra/local/engine-client.js";
import { startProcess } from "../../infra/local/engine-process.js";
import { startEngine } from "../../infra/local/engine.js";
import type { Stock } from "./stock.js";
import { stockIn } from "./stock.js";

/** A shop that is open. */
export interface Shop {
  /** The lock service. */
  readonly url: string;
  readonly engineName: string;
  readonly endpoint: string;
  readonly tableName: string;
  readonly stock: Stock;
  close(): Promise<void>;
}

const SERVICE = fileURLToPath(new URL("../../infra/local/start.ts", import.meta.url));
const SERVICE_START_MS = 30_000;

/** Opens the shop, on the engine at `endpoint` or one of its own. @throws StartError when something can't start. */
export async function openShop(endpoint: string | undefined): Promise<Shop> {
  const engine = await startEngine({ endpoint });
  const name = `flash-sale-${randomBytes(4).toString("hex")}`;
  const client = engineClient(engine.endpoint);
  const stock = stockIn(name, client);
  const lockTableName = `${name}-locks`;
  try {
    await stock.createTable();
    const service = await startProcess({
      name: "of the lock service",
      command: "env",
      args: (port) => [...environment(port, engine.endpoint, lockTableName), process.execPath, ...process.execArgv, SERVICE],
      startMs: SERVICE_START_MS,
    });
    return {
      url: `http://127.0.0.1:${service.port}`,
      engineName: engine.kind,
      endpoint: engine.endpoint,
      tableName: name,
      stock,
      async close() {
        await service.stop();
        // What was made on somebody's own engine doesn't stay there; one of ours is gone with all it kept.
        const made = engine.kind === "external" ? [name, lockTableName] : [];
        await Promise.all(made.map((TableName) => client.send(new DeleteTableCommand({ TableName }))));
        client.destroy();
        await engine.stop();
      },
    };
  } catch (error) {
    await engine.stop();
    throw error;
  }
}

/** For the service alone. Of its log nobody would read the refusals, hundreds a second. */
function environment(port: number, endpoint: string, tableName: string): readonly string[] {
  return [`PORT=${port}`, `DYNAMODB_ENDPOINT=${endpoint}`, `HOLDFAST_TABLE=${tableName}`, "HOLDFAST_ENGINE=", "HOLDFAST_LOG_REFUSALS=0"];
}
