/**
 * The order service on localhost: an engine with the orders' table, a provider, a carrier, and as many functions as
 * are asked for, each with a client of its own, as two processes of Lambda's would have. The locks are straight on a
 * table of the same engine, or behind the service that `url` names. All that it made is gone when it closes.
 */
import { randomBytes, randomUUID } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { CreateTableCommand, DeleteTableCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import type { LockClient } from "../../lib/index.js";
import { createLockClient, key } from "../../lib/index.js";
import type { ProviderServer } from "../payments/provider-server.js";
import { startProvider } from "../payments/provider-server.js";
import { providerAt } from "../payments/provider.js";
import type { Table } from "../payments/table.js";
import { read } from "../payments/table.js";
import type { CarrierServer } from "./carrier-server.js";
import { startCarrier } from "./carrier-server.js";
import { carrierAt } from "./carrier.js";
import { ORDERS_TABLE, ordersIn } from "./orders-table.js";
import type { Shop } from "./shop.js";

/** Where it runs; nothing: an engine of its own, straight on the table. */
export interface Place {
  readonly endpoint?: string | undefined;
  readonly url?: string | undefined;
}

/** A shop that is open. */
export interface LocalShop {
  readonly table: Table;
  readonly provider: ProviderServer;
  readonly carrier: CarrierServer;
  /** What one process works with. @param principal who it is to the lock service, where there is one */
  join(principal?: string): Shop;
  /** Puts so many pieces into stock. */
  stockUp(product: string, pieces: number, soldBy?: string): Promise<void>;
  /** How many are there. */
  pieces(product: string): Promise<number>;
  close(): Promise<void>;
}

/** What each product costs here, in cents. */
export const PRICE = 4900;
const ACTIVE_WITHIN_SEC = 30;

/** Opens it. @throws StartError when there is no engine here, or it doesn't start. */
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
          ? createTableClient({ tableName: locksName, client })
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
      // What was made on somebody's own engine doesn't stay there; one of ours is gone with all it kept.
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
