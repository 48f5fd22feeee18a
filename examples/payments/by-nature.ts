/**
 * The natural idempotency of writes: one function for each kind of write, to be called once and again. The effect of
 * the second call may be idempotent even when its result isn't.
 */
import { randomUUID } from "node:crypto";
import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { type Table, read } from "./table.js";
import { play } from "./till.js";

/** Not idempotent: each call creates another order. */
export async function createUnnamed({ documents, TableName }: Table, product: string): Promise<string> {
  const id = `order ${randomUUID()}`;
  await documents.send(new PutCommand({ TableName, Item: { id, product } }));
  return id;
}

/** Idempotent: the caller chose the id. Returns false if it existed already. */
export async function createNamed({ documents, TableName }: Table, id: string, product: string): Promise<boolean> {
  try {
    await documents.send(new PutCommand({ TableName, Item: { id, product }, ConditionExpression: "attribute_not_exists(id)" }));
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}

/** Idempotent: it sets a value. */
export async function setStock({ documents, TableName }: Table, id: string, pieces: number): Promise<void> {
  const change = { UpdateExpression: "SET pieces = :pieces", ExpressionAttributeValues: { ":pieces": pieces } };
  await documents.send(new UpdateCommand({ TableName, Key: { id }, ...change }));
}

/** Not idempotent: it adds an amount. */
export async function addStock({ documents, TableName }: Table, id: string, pieces: number): Promise<void> {
  const change = { UpdateExpression: "ADD pieces :pieces", ExpressionAttributeValues: { ":pieces": pieces } };
  await documents.send(new UpdateCommand({ TableName, Key: { id }, ...change }));
}

/** Idempotent in its effect, not in its result: only the first call deletes. */
export async function remove({ documents, TableName }: Table, id: string): Promise<boolean> {
  const { Attributes } = await documents.send(new DeleteCommand({ TableName, Key: { id }, ReturnValues: "ALL_OLD" }));
  return Attributes !== undefined;
}

await play(import.meta.url, async ({ table }) => {
  const first = await createUnnamed(table, "camera");
  console.log("create, unnamed: the same order?", first === (await createUnnamed(table, "camera")));
  console.log("create, named:", await createNamed(table, "order 1", "camera"), await createNamed(table, "order 1", "camera"));
  for (const [name, update] of Object.entries({ setStock, addStock })) {
    await update(table, name, 5);
    await update(table, name, 5);
    console.log(`${name} 5, twice:`, (await read(table, name))?.["pieces"]);
  }
  console.log("remove:", await remove(table, "order 1"), await remove(table, "order 1"));
});
