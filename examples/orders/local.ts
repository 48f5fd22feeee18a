/**
 * The order service on localhost: an engine with the orders' table, a payment provider, a carrier, and any number of
 * functions, each with its own client, as separate Lambda processes would have. The locks are directly in a table of
 * the same engine, or behind the service that `url` names. Everything it creates is deleted when it closes.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { type DynamoDBClient, CreateTableCommand, DeleteTableCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient, engineLocation } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient, key } from "../../lib/index.js";
import { type ProviderServer, startProvider } from "../payments/provider-server.js";
import { providerAt } from "../payments/provider.js";
import { type Table, read } from "../payments/table.js";
import { type CarrierServer, startCarrier } from "./carrier-server.js";
import { carrierAt } from "./carrier.js";
import { ORDERS_TABLE, ordersIn } from "./orders-table.js";
import type { Shop } from "./shop.js";

/** The place to run in. Empty: an engine of its own, with the locks directly in a table. */
export interface Place {
  readonly endpoint?: string | undefined;
  readonly url?: string | undefined;
}

/** An open shop. */
export interface LocalShop {
  readonly table: Table;
  readonly provider: ProviderServer;
  readonly carrier: CarrierServer;
  /** Creates the dependencies of one process. @param principal its principal at the lock service, if there is a service */
  join(principal?: string): Shop;
  /** Adds that many pieces to the stock. */
  stockUp(product: string, pieces: number, soldBy?: string): Promise<void>;
  /** Returns the pieces in stock. */
  pieces(product: string): Promise<number>;
  close(): Promise<void>;
}

/** The price of each product here, in cents. */
export const PRICE = 4900;
const ACTIVE_WITHIN_SEC = 30;

/** Opens the shop. @throws StartError if there is no engine on this machine, or it doesn't start. */
export async function openShop({ endpoint, url }: Place = {}): Promise<LocalShop> {
  const engine = await startEngine({ endpoint });
  const client = engineClient(engine.endpoint);
  const TableName = `orders-${randomBytes(4).toString("hex")}`;
  const locksName = `${TableName}-locks`;
  await createOrdersTable(client, TableName);
  if (url === undefined) await createTable(client, locksName);
  const table = { documents: DynamoDBDocumentClient.from(client), TableName };
  const [provider, carrier] = [await startProvider(), await startCarrier()];
  const clients: LockClient[] = [];
  let orders = 0;
  return {
    table,
    provider,
    carrier,
    join(principal = "local") {
      const locks =
        url === undefined
          ? createTableClient({ tableName: locksName, ...engineLocation(engine.endpoint) })
          : createLockClient({ url, headers: { "x-holdfast-principal": principal } });
      clients.push(locks);
      const newId = (): string => `${String(++orders).padStart(6, "0")}-${randomUUID().slice(0, 8)}`;
      return { locks, orders: ordersIn(table), provider: providerAt(provider.url), carrier: carrierAt(carrier.url), newId };
    },
    async stockUp(product, pieces, soldBy = "sue") {
      const Item = { id: key("PRODUCT", product), soldBy, price: PRICE, pieces };
      await table.documents.send(new PutCommand({ TableName, Item }));
    },
    async pieces(product) {
      return Number((await read(table, key("PRODUCT", product)))?.["pieces"]);
    },
    async close() {
      await Promise.all(clients.map((one) => one.close()));
      await Promise.all([provider.close(), carrier.close()]);
      // Tables on a user's own engine are deleted. An engine that we started is removed with its data.
      const made = engine.kind === "external" ? [TableName, ...(url === undefined ? [locksName] : [])] : [];
      await Promise.all(made.map((name) => client.send(new DeleteTableCommand({ TableName: name }))));
      client.destroy();
      await engine.stop();
    },
  };
}

async function createOrdersTable(client: DynamoDBClient, TableName: string): Promise<void> {
  const { partitionKey, indexes } = ORDERS_TABLE;
  await client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [partitionKey, ...Object.keys(indexes)].map((AttributeName) => ({
        AttributeName,
        AttributeType: "S" as const,
      })),
      KeySchema: [{ AttributeName: partitionKey, KeyType: "HASH" }],
      GlobalSecondaryIndexes: Object.entries(indexes).map(([AttributeName, IndexName]) => ({
        IndexName,
        KeySchema: [
          { AttributeName, KeyType: "HASH" as const },
          { AttributeName: partitionKey, KeyType: "RANGE" as const },
        ],
        Projection: { ProjectionType: "ALL" as const },
      })),
    }),
  );
  await waitUntilTableExists({ client, maxWaitTime: ACTIVE_WITHIN_SEC }, { TableName });
}
