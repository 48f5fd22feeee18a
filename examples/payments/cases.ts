/** Payment cases in the application's table: an amount and a status, and two ways to change the status. */
import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { fencedWrite } from "../../lib/index.js";
import { type Table, read } from "./table.js";

/** The states of a payment. */
export type Status = "PENDING" | "PAYING" | "PAID";

/** A payment to make. */
export interface Case {
  readonly amount: number;
  readonly status: Status;
}

/** The cases of an application. */
export interface Cases {
  open(payment: string, amount: number): Promise<void>;
  get(payment: string): Promise<Case>;
  /** Sets the status, unless a later token has set it. */
  set(payment: string, status: Status, fencingToken: number): Promise<void>;
  /** Changes the status if it is `from`. Returns true if it was. */
  move(payment: string, from: Status, to: Status): Promise<boolean>;
}

/** Opens the cases in `table`. */
export function casesIn(table: Table): Cases {
  const { documents, TableName } = table;
  return {
    async open(payment, amount) {
      const Item = { id: `case ${payment}`, amount, status: "PENDING" };
      await documents.send(new PutCommand({ TableName, Item, ConditionExpression: "attribute_not_exists(id)" }));
    },

    async get(payment) {
      const item = await read(table, `case ${payment}`);
      if (!item) throw new Error(`there is no case ${payment}`);
      return item as unknown as Case;
    },

    async set(payment, status, fencingToken) {
      const fence = fencedWrite(fencingToken);
      await documents.send(
        new UpdateCommand({
          ...fence,
          TableName,
          Key: { id: `case ${payment}` },
          UpdateExpression: `${fence.UpdateExpression}, #status = :status`,
          ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#status": "status" },
          ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":status": status },
        }),
      );
    },

    async move(payment, from, to) {
      try {
        await documents.send(
          new UpdateCommand({
            TableName,
            Key: { id: `case ${payment}` },
            UpdateExpression: "SET #status = :to",
            ConditionExpression: "#status = :from",
            ExpressionAttributeNames: { "#status": "status" },
            ExpressionAttributeValues: { ":from": from, ":to": to },
          }),
        );
        return true;
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return false;
        throw error;
      }
    },
  };
}
