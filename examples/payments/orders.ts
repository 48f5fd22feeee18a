/** Orders in the application's table. Their numbers come from a counter: two calls return two numbers. */
import { PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { type Table, read } from "./table.js";

/** A customer's order. */
export interface Order {
  readonly customer: string;
  readonly product: string;
}

/** The orders of a shop. */
export interface Orders {
  /** Returns the next number, which no other caller gets. */
  nextNumber(): Promise<number>;
  /** Stores the order under its number. A repeated call has no effect. */
  file(number: number, order: Order): Promise<void>;
  get(number: number): Promise<Order | undefined>;
}

/** Opens the orders in `table`. */
export function ordersIn(table: Table): Orders {
  const { documents, TableName } = table;
  return {
    async nextNumber() {
      const counter = { Key: { id: "orders" }, UpdateExpression: "ADD #last :one", ExpressionAttributeNames: { "#last": "last" } };
      const { Attributes } = await documents.send(
        new UpdateCommand({ TableName, ...counter, ExpressionAttributeValues: { ":one": 1 }, ReturnValues: "UPDATED_NEW" }),
      );
      return Number(Attributes?.["last"]);
    },

    async file(number, order) {
      await documents.send(new PutCommand({ TableName, Item: { id: `order ${number}`, ...order } }));
    },

    async get(number) {
      const { customer, product } = (await read(table, `order ${number}`)) ?? {};
      return typeof customer === "string" && typeof product === "string" ? { customer, product } : undefined;
    },
  };
}
