/**
 * Two items that change together or not at all: a gift card pays for an order. Everything is in DynamoDB, so it needs
 * no lock and no run: one transaction, each part with its condition. Sending it again changes nothing.
 */
import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import { PutCommand, TransactWriteCommand } from "@aws-sdk/lib-dynamodb";
import { type Table, read } from "./table.js";
import { play } from "./till.js";

/** Pays the order with the card. Returns false if the order is paid already or the card's balance is too low. */
export async function payByCard({ documents, TableName }: Table, order: string, card: string, price: number): Promise<boolean> {
  const setPaid = {
    TableName,
    Key: { id: order },
    UpdateExpression: "SET paidBy = :card",
    ConditionExpression: "attribute_exists(id) AND attribute_not_exists(paidBy)",
    ExpressionAttributeValues: { ":card": card },
  };
  const takeMoney = {
    TableName,
    Key: { id: card },
    UpdateExpression: "SET balance = balance - :price",
    ConditionExpression: "balance >= :price",
    ExpressionAttributeValues: { ":price": price },
  };
  try {
    await documents.send(new TransactWriteCommand({ TransactItems: [{ Update: setPaid }, { Update: takeMoney }] }));
    return true;
  } catch (error) {
    const reasons = error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];
    if (reasons.some(({ Code }) => Code === "ConditionalCheckFailed")) return false;
    throw error; // For example TransactionConflict: another transaction was changing these items. Retry.
  }
}

await play(import.meta.url, async ({ table }) => {
  const { documents, TableName } = table;
  await documents.send(new PutCommand({ TableName, Item: { id: "order-1" } }));
  await documents.send(new PutCommand({ TableName, Item: { id: "card-1", balance: 50 } }));
  console.log("paid:", await payByCard(table, "order-1", "card-1", 30));
  console.log("sent again:", await payByCard(table, "order-1", "card-1", 30));
  console.log("left on the card:", (await read(table, "card-1"))?.["balance"]);
});
