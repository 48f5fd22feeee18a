/**
 * What may be sent twice by nature: one function for each kind of write, to be called once and again. What an
 * operation says the second time is another matter than what it did.
 */
import { randomUUID } from "node:crypto";
import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { Table } from "./table.js";
import { read } from "./table.js";
import { play } from "./till.js";

/** Not idempotent: each call makes another order. */
export async function createUnnamed({ documents, TableName }: Table, product: string): Promise<string> {
  const id = `order ${randomUUID()}`;
  await documents.send(new PutCommand({ TableName, Item: { id, product } }));
  return id;
}

/** Idempotent: the caller named it. False when it was there already, by an earlier call or by somebody else. */
export async function createNamed({ documents, TableName }: Table, id: string, product: string): Promise<boolean> {
  try {
    await documents.send(new PutCommand({ TableName, Item: { id, product }, ConditionExpression: "attribute_not_exists(id)" }));
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}

/** Idempotent: it says what shall be. */
export async function setStock({ documents, TableName }: Table, id: string, pieces: number): Promise<void> {
  const change = { UpdateExpression: "SET pieces = :pieces", ExpressionAttributeValues: { ":pieces": pieces } };
  await documents.send(new UpdateCommand({ TableName, Key: { id }, ...change }));
}

/** Not idempotent: it says by how much. */
export async function addStock({ documents, TableName }: Table, id: string, pieces: number): Promise<void> {
  const change = { UpdateExpression: "ADD pieces :pieces", ExpressionAttributeValues: { ":pieces": pieces } };
  await documents.send(new UpdateCommand({ TableName, Key: { id }, ...change }));
}

/** Idempotent in effect, not in its answer: only the first call was the one that deleted. */
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
