/**
 * Orders and the stock in the application's own table. A change of an order is checked against the largest fencing
 * token that the order has seen; what several items have part in is one transaction. What the locks are kept in is
 * another table.
 */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ConditionalCheckFailedException, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import { QueryCommand, TransactWriteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { fencedWrite, key } from "../../lib/index.js";
import type { Table } from "../payments/table.js";
import { read } from "../payments/table.js";
import type { Moved, Order, Review, Role, Status } from "./order.js";
import { keyOf } from "./order.js";

/** How the table is made: an index for each side, with the orders of one person in the order of their ids. */
export const ORDERS_TABLE = { partitionKey: "id", indexes: { buyer: "by-buyer", seller: "by-seller" } } as const;

/** What is sold, by whom, for how many cents. */
export interface Product {
  readonly soldBy: string;
  readonly price: number;
}

/** Which orders of somebody's. */
export interface AcquireParams {
  readonly status?: Status | undefined;
  readonly product?: string | undefined;
  /** Those before this one: the `next` of the page before. */
  readonly before?: string | undefined;
}

/** Some of them, newest first; with `next` there may be more, though this page has none. */
export interface Page {
  readonly orders: readonly Order[];
  readonly next?: string;
}

/** The orders of a shop. */
export interface Orders {
  product(name: string): Promise<Product | undefined>;
  /** Files a new order and takes its goods from stock, all of it or nothing. Again, it stays that order. @returns what there is too little of */
  place(order: Order): Promise<"placed" | { readonly soldOut: string }>;
  get(id: string): Promise<Order | undefined>;
  /** Somebody's orders, as they were a moment ago. */
  list(role: Role, who: string, wanted: AcquireParams): Promise<Page>;
  /** Writes what a move made of an order. @throws OvertakenError when somebody with a later token wrote already */
  write(moved: Moved, fencingToken: number): Promise<void>;
  /** Keeps the review, if the order is its buyer's, complete, and has none; whether it was. */
  review(id: string, buyer: string, review: Review): Promise<boolean>;
}

/** Somebody with a later token changed the order meanwhile: this change was not made. */
export class OvertakenError extends Error {
  override readonly name = "OvertakenError";
}

/** Too many changed the same items at the same moment. Nothing was written: it may be tried again. */
export class CrowdedError extends Error {
  override readonly name = "CrowdedError";
}

/** Orders that are looked at for one page. */
const PAGE = 50;
/** Two transactions at one item at the same moment: one of them is cancelled, and the AWS SDK doesn't try it again. */
const TRIES = 6;
const FIRST_PAUSE_MS = 20;

type Items = NonNullable<TransactWriteCommandInput["TransactItems"]>;

/** The orders in `table`. */
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

  /** Fewer than none are never in stock. */
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

/** An item as an order: its id without what stands before it in the key. */
function orderOf({ id, ...rest }: Readonly<Record<string, unknown>>): Order {
  return { ...rest, id: String(id).slice(keyOf("-").length - 1) } as Order;
}

/** Why a write was not made: of a transaction, for each of its items. */
function reasonsOf(error: unknown): readonly (string | undefined)[] {
  if (error instanceof ConditionalCheckFailedException) return ["ConditionalCheckFailed"];
  return error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []).map(({ Code }) => Code) : [];
}
