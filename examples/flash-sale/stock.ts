/**
 * The shop's stock, in an ordinary table: an item with the pieces left, and an item for every sale. It
 * is kept as most such code is written: read, think, write back, on no condition. That loses updates
 * whenever two buyers meet, and must stay so: whether it comes out right is for the lock alone.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { CreateTableCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

/** A sale: who got which piece. Pieces count down, so the number is what the buyer read. */
export interface Sale {
  readonly buyer: string;
  readonly piece: number;
}

/** What the table says of a product. */
export interface Shelf {
  readonly left: number;
  readonly sales: readonly Sale[];
}

/** The stock behind a table. */
export interface Stock {
  createTable(): Promise<void>;
  fill(product: string, pieces: number): Promise<void>;
  /** One purchase: whether there was a piece for this buyer. */
  buy(product: string, buyer: string): Promise<boolean>;
  audit(product: string): Promise<Shelf>;
}

/** Between reading the stock and writing it back, in ms: the card is charged, say. */
const THINK_MS = 10;
/** The entry of a product that has the pieces left; all its others are sales. */
const STOCK_ENTRY = "stock";
const TABLE_WITHIN_SEC = 30;

/** The stock in `tableName`. */
export function stockIn(tableName: string, client: DynamoDBClient): Stock {
  const documents = DynamoDBDocumentClient.from(client);
  const table = { TableName: tableName };

  async function write(product: string, entry: string, fields: { readonly left: number } | Sale): Promise<void> {
    await documents.send(new PutCommand({ ...table, Item: { product, entry, ...fields } }));
  }

  return {
    async createTable() {
      await client.send(
        new CreateTableCommand({
          ...table,
          BillingMode: "PAY_PER_REQUEST",
          AttributeDefinitions: ["product", "entry"].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
          KeySchema: [
            { AttributeName: "product", KeyType: "HASH" },
            { AttributeName: "entry", KeyType: "RANGE" },
          ],
        }),
      );
      await waitUntilTableExists({ client, maxWaitTime: TABLE_WITHIN_SEC }, table);
    },

    fill: (product, pieces) => write(product, STOCK_ENTRY, { left: pieces }),

    async buy(product, buyer) {
      const { Item } = await documents.send(new GetCommand({ ...table, Key: { product, entry: STOCK_ENTRY }, ConsistentRead: true }));
      const left = Number(Item?.["left"]);
      if (!(left > 0)) return false;
      await delay(THINK_MS);
      await write(product, STOCK_ENTRY, { left: left - 1 });
      await write(product, `sale ${randomUUID()}`, { buyer, piece: left });
      return true;
    },

    async audit(product) {
      const shelf = { left: NaN, sales: [] as Sale[] };
      let from: Record<string, unknown> | undefined;
      do {
        const { Items = [], LastEvaluatedKey } = await documents.send(
          new QueryCommand({
            ...table,
            KeyConditionExpression: "product = :product",
            ExpressionAttributeValues: { ":product": product },
            ConsistentRead: true,
            ExclusiveStartKey: from,
          }),
        );
        for (const { entry, ...fields } of Items) {
          if (entry === STOCK_ENTRY) shelf.left = Number(fields["left"]);
          else shelf.sales.push({ buyer: String(fields["buyer"]), piece: Number(fields["piece"]) });
        }
        from = LastEvaluatedKey;
      } while (from);
      return shelf;
    },
  };
}
