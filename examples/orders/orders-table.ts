/**
 * Orders and the stock in the application's own table. A change of an order is checked against the largest fencing
 * token that the order has seen. A change of several items is one transaction. The locks are in another table.
 */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ConditionalCheckFailedException, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import { type TransactWriteCommandInput, QueryCommand, TransactWriteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { fencedWrite, key } from "../../lib/index.js";
import { type Table, read } from "../payments/table.js";
import { type Moved, type Order, type Review, type Role, type Status, keyOf } from "./order.js";

/** The table's schema: an index for each side, with each person's orders sorted by order id. */
export const ORDERS_TABLE = { partitionKey: "id", indexes: { buyer: "by-buyer", seller: "by-seller" } } as const;

/** A product: its seller and its price in cents. */
export interface Product {
  readonly soldBy: string;
  readonly price: number;
}

/** A query for somebody's orders. */
export interface AcquireParams {
  readonly status?: Status | undefined;
  readonly product?: string | undefined;
  /** Only orders before this one: the `next` of the previous page. */
  readonly before?: string | undefined;
}

/** A page of orders, newest first. With `next` there may be more, even if this page is empty. */
export interface Page {
  readonly orders: readonly Order[];
  readonly next?: string;
}

/** The orders of a shop. */
export interface Orders {
  product(name: string): Promise<Product | undefined>;
  /**
   * Stores a new order and takes its goods from stock, all of them or none. A repeated call has no effect. @returns the
   * product that is sold out
   */
  place(order: Order): Promise<"placed" | { readonly soldOut: string }>;
  get(id: string): Promise<Order | undefined>;
  /** Returns somebody's orders, eventually consistent. */
  list(role: Role, who: string, wanted: AcquireParams): Promise<Page>;
  /** Writes the result of a move. @throws OvertakenError if a later token has written the order */
  write(moved: Moved, fencingToken: number): Promise<void>;
  /** Stores the review if the order is the buyer's, complete and not yet reviewed. Returns true if it was stored. */
  review(id: string, buyer: string, review: Review): Promise<boolean>;
}

/** A later token changed the order in the meantime: this change was not made. */
export class OvertakenError extends Error {
  override readonly name = "OvertakenError";
}

/** Too many callers changed the same items at the same moment. Nothing was written, and the call may be retried. */
export class CrowdedError extends Error {
  override readonly name = "CrowdedError";
}

/** The orders that are read for one page. */
const PAGE = 50;
/** Two concurrent transactions on one item: DynamoDB cancels one of them, and the AWS SDK doesn't retry it. */
const TRIES = 6;
const FIRST_PAUSE_MS = 20;

type Items = NonNullable<TransactWriteCommandInput["TransactItems"]>;

/** Opens the orders in `table`. */
// Over 60 lines: the methods of one table, each a single conditional write.
export function ordersIn(table: Table): Orders {
  const { documents, TableName } = table;

  async function transact(TransactItems: Items): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return void (await documents.send(new TransactWriteCommand({ TransactItems })));
      } catch (error) {
        if (!reasonsOf(error).includes("TransactionConflict")) throw error;
        if (tries === TRIES) throw new CrowdedError("too many want the same products just now");
        await delay(randomInt(FIRST_PAUSE_MS * 2 ** tries));
      }
    }
  }

  /** The stock never falls below zero. */
  const stock = (product: string, change: number): Items[number] => ({
    Update: {
      TableName,
      Key: { id: key("PRODUCT", product) },
      UpdateExpression: "ADD pieces :change",
      ConditionExpression: "pieces >= :least",
      ExpressionAttributeValues: { ":change": change, ":least": Math.max(0, -change) },
    },
  });

  return {
    async product(name) {
      return (await read(table, key("PRODUCT", name))) as Product | undefined;
    },

    async place({ id, ...order }) {
      const products = Object.keys(order.items);
      const Item = { id: keyOf(id), ...order };
      try {
        const put = { Put: { TableName, Item, ConditionExpression: "attribute_not_exists(id)" } };
        await transact([put, ...products.map((product) => stock(product, -order.items[product]!))]);
      } catch (error) {
        const failed = reasonsOf(error).indexOf("ConditionalCheckFailed");
        if (failed < 0) throw error;
        return failed === 0 ? "placed" : { soldOut: products[failed - 1]! };
      }
      return "placed";
    },

    async get(id) {
      const item = await read(table, keyOf(id));
      return item && orderOf(item);
    },

    async list(role, who, { status, product, before }) {
      const filters = [status !== undefined && "#status = :status", product !== undefined && "attribute_exists(#items.#product)"].filter(
        Boolean,
      );
      const { Items = [], LastEvaluatedKey } = await documents.send(
        new QueryCommand({
          TableName,
          IndexName: ORDERS_TABLE.indexes[role],
          Limit: PAGE,
          ScanIndexForward: false,
          KeyConditionExpression: `#who = :who${before === undefined ? "" : " AND id < :before"}`,
          ...(filters.length > 0 && { FilterExpression: filters.join(" AND ") }),
          ExpressionAttributeNames: {
            "#who": role,
            ...(status !== undefined && { "#status": "status" }),
            ...(product !== undefined && { "#items": "items", "#product": product }),
          },
          ExpressionAttributeValues: {
            ":who": who,
            ...(status !== undefined && { ":status": status }),
            ...(before !== undefined && { ":before": keyOf(before) }),
          },
        }),
      );
      const next = LastEvaluatedKey && orderOf(LastEvaluatedKey).id;
      return { orders: Items.map(orderOf), ...(next !== undefined && { next }) };
    },

    async write({ order, restocks }, fencingToken) {
      const fence = fencedWrite(fencingToken);
      const { id, status, refund, lastRun } = order;
      const Update = {
        ...fence,
        TableName,
        Key: { id: keyOf(id) },
        UpdateExpression: `${fence.UpdateExpression}, #status = :status, refund = :refund${lastRun === undefined ? "" : ", lastRun = :run"}`,
        ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#status": "status" },
        ExpressionAttributeValues: {
          ...fence.ExpressionAttributeValues,
          ":status": status,
          ":refund": refund,
          ...(lastRun !== undefined && { ":run": lastRun }),
        },
      };
      const back = restocks ? Object.entries(order.items) : [];
      try {
        if (back.length === 0) await documents.send(new UpdateCommand(Update));
        else await transact([{ Update }, ...back.map(([product, pieces]) => stock(product, pieces))]);
      } catch (error) {
        throw reasonsOf(error)[0] === "ConditionalCheckFailed" ? new OvertakenError(`order ${id}: another changed it meanwhile`) : error;
      }
    },

    async review(id, buyer, review) {
      try {
        await documents.send(
          new UpdateCommand({
            TableName,
            Key: { id: keyOf(id) },
            UpdateExpression: "SET review = :review",
            ConditionExpression: "buyer = :buyer AND #status = :completed AND attribute_not_exists(review)",
            ExpressionAttributeNames: { "#status": "status" },
            ExpressionAttributeValues: { ":review": review, ":buyer": buyer, ":completed": "COMPLETED" satisfies Status },
          }),
        );
        return true;
      } catch (error) {
        if (reasonsOf(error)[0] === "ConditionalCheckFailed") return false;
        throw error;
      }
    },
  };
}

/** Converts an item to an order: removes the key's prefix from its id. */
function orderOf({ id, ...rest }: Readonly<Record<string, unknown>>): Order {
  return { ...rest, id: String(id).slice(keyOf("-").length - 1) } as Order;
}

/** Returns the reasons why a write was not made: for a transaction, one for each of its items. */
function reasonsOf(error: unknown): readonly (string | undefined)[] {
  if (error instanceof ConditionalCheckFailedException) return ["ConditionalCheckFailed"];
  return error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []).map(({ Code }) => Code) : [];
}
