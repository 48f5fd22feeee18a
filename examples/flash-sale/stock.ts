/**
 * The shop's stock, in an ordinary table: an item with the pieces left, and an item for every sale. Like much real
 * code, it reads, works and writes back without a condition. That loses updates whenever two buyers meet. It must stay
 * so: only the lock decides if the sale comes out right.
 */
import { type DynamoDBClient, CreateTableCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

/** A sale: a buyer and the piece it got. Pieces count down, so the number is the stock that the buyer read. */
export interface Sale {
  readonly buyer: string;
  readonly piece: number;
}

/** The table's content for a product. */
export interface Shelf {
  readonly left: number;
  readonly sales: readonly Sale[];
}

/** The stock behind a table. */
export interface Stock {
  createTable(): Promise<void>;
  fill(product: string, pieces: number): Promise<void>;
  /** Buys one piece. Returns true if there was a piece for this buyer. */
  buy(product: string, buyer: string): Promise<boolean>;
  audit(product: string): Promise<Shelf>;
}

/** The time between reading the stock and writing it back, in ms. For example, the card is charged. */
const THINK_MS = 10;
/** The product's entry that holds the pieces left. All its other entries are sales. */
const STOCK_ENTRY = "stock";
const TABLE_WITHIN_SEC = 30;

/** Opens the stock in `tableName`. */
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
