/** fencedWrite: a resource that refuses the writes of older grants, on a real table. */
import { GetCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fencedWrite, InvalidRequestError } from "../../../lib/index.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { type FreshTable, freshTable } from "../../support/engine.js";

let resource: FreshTable;
beforeAll(async () => void (resource = await freshTable()));
afterAll(() => resource.client.destroy());

/** Writes `stock` under this token. Returns "refused" if a later grant has written. */
async function write(item: string, fencingToken: number, stock: number, attribute?: string): Promise<"written" | "refused"> {
  const fence = fencedWrite(fencingToken, attribute === undefined ? {} : { attribute });
  const command = new UpdateCommand({
    TableName: resource.tableName,
    Key: keyOf(item),
    ...fence,
    UpdateExpression: `${fence.UpdateExpression}, stock = :stock`,
    ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":stock": stock },
  });
  try {
    await resource.client.send(command);
    return "written";
  } catch (error) {
    if ((error as Error).name === "ConditionalCheckFailedException") return "refused";
    throw error;
  }
}

async function read(item: string): Promise<Record<string, unknown> | undefined> {
  return (await resource.client.send(new GetCommand({ TableName: resource.tableName, Key: keyOf(item), ConsistentRead: true }))).Item;
}

function keyOf(item: string): Record<string, string> {
  return { [TABLE.partitionKey]: "stock", [TABLE.sortKey]: item };
}

describe("fencedWrite", () => {
  it("lets every grant write until a later one has, and then never again", async () => {
    expect(await write("apples", 1_795_177_821_461, 10)).toBe("written");
    expect(await write("apples", 1_795_177_821_461, 9)).toBe("written");
    expect(await write("apples", 1_795_177_821_462, 8)).toBe("written");
    expect(await write("apples", 1_795_177_821_461, 7)).toBe("refused");
    expect(await read("apples")).toMatchObject({ stock: 8, fencingToken: 1_795_177_821_462 });
    expect(await write("apples", Number.MAX_SAFE_INTEGER, 6)).toBe("written");
  });

  it("takes over an item that was written without tokens", async () => {
    await resource.client.send(new PutCommand({ TableName: resource.tableName, Item: { ...keyOf("pears"), stock: 5 } }));
    expect(await write("pears", 7, 4)).toBe("written");
    expect(await write("pears", 6, 3)).toBe("refused");
  });

  it("keeps the token where it is told to, reserved words included", async () => {
    expect(await write("plums", 7, 4, "token")).toBe("written");
    expect(await write("plums", 6, 3, "token")).toBe("refused");
    expect(await read("plums")).toMatchObject({ stock: 4, token: 7 });
  });

  it.each([-1, 1.5, Number.NaN, 2 ** 53, "7", undefined])("refuses %j: it is no token", (token) => {
    expect(() => fencedWrite(token as number)).toThrow(InvalidRequestError);
  });
});
