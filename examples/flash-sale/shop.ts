/**
 * The environment of the sale: an engine, the lock service as `npm start` serves it, in its own process, and the
 * stock's table on the same engine. All of it ends with this process, however that exits.
 */
import { DeleteTableCommand } from "@aws-sdk/client-dynamodb";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { engineClient } from "../../infra/local/engine-client.js";
import { startProcess } from "../../infra/local/engine-process.js";
import { startEngine } from "../../infra/local/engine.js";
import { type Stock, stockIn } from "./stock.js";

/** An open shop. */
export interface Shop {
  /** The URL of the lock service. */
  readonly url: string;
  readonly engineName: string;
  readonly endpoint: string;
  readonly tableName: string;
  readonly stock: Stock;
  close(): Promise<void>;
}

const SERVICE = fileURLToPath(new URL("../../infra/local/start.ts", import.meta.url));
const SERVICE_START_MS = 30_000;

/** Opens the shop on the engine at `endpoint`, or starts one. @throws StartError if something can't start. */
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
        // Tables on a user's own engine are deleted. An engine that we started is removed with its data.
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

/** The environment of the service process. Its log leaves out the refusals, of which there are hundreds a second. */
function environment(port: number, endpoint: string, tableName: string): readonly string[] {
  return [`PORT=${port}`, `DYNAMODB_ENDPOINT=${endpoint}`, `HOLDFAST_TABLE=${tableName}`, "HOLDFAST_ENGINE=", "HOLDFAST_LOG_REFUSALS=0"];
}
