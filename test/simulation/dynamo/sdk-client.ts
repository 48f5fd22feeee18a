/**
 * The AWS SDK's own client in front of an in-memory table: everything but the network is real, from its serializer to
 * its exceptions. It shows that the table answers as a server would. The simulation itself doesn't use the SDK, and
 * neither does a store on the table in memory.
 */
import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../../../lib/core/time.js";
import { plainItem } from "../../../lib/store/dynamo/attribute-value.js";
import type { TableCalls, WireItem } from "../../../lib/store/dynamo/calls.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import type { FreshTable } from "../../support/engine.js";
import type { Input } from "./table.js";
import { DynamoTable } from "./table.js";
import type { ValueMap } from "./values.js";
import { itemToWire } from "./values.js";

interface HttpRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** Returns a new table in memory. A store on it passes the conformance suite, as on an engine. */
export function tableInMemory(): Pick<FreshTable, "client" | "calls" | "tableName"> {
  const tableName = "simulated";
  const table = new DynamoTable({ tableName, ...TABLE }, () => systemClock.wallMs());
  const client = sdkClientOf(table);
  return { client, calls: callsOf(table, client), tableName };
}

type Handler = (args: { readonly input: object }) => Promise<{ readonly output: object }>;

/** The table's operations with the middleware that a test adds to the client, and without the SDK's: its work takes longer than all else. */
function callsOf(table: DynamoTable, { middlewareStack }: DynamoDBClient): TableCalls {
  const added: ((next: Handler) => Handler)[] = [];
  const add = middlewareStack.add.bind(middlewareStack) as (middleware: unknown, options: unknown) => void;
  middlewareStack.add = (middleware: unknown, options?: unknown): void => {
    added.push(middleware as (next: Handler) => Handler);
    add(middleware, options);
  };
  const send = async (operation: string, request: object): Promise<object> => {
    // A copy, since middleware may sort what comes back.
    const atTable: Handler = async ({ input }) => ({ output: copied(carryOut(table, operation, input as Input)) });
    return (await added.reduceRight((next, middleware) => middleware(next), atTable)({ input: request })).output;
  };
  return {
    updateItem: (input) => send("UpdateItem", input),
    getItem: (input) => send("GetItem", input),
    query: (input) => send("Query", input),
    transactWriteItems: (input) => send("TransactWriteItems", input),
  };
}

function copied(answer: object): object {
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "object" && !Array.isArray(value) ? { ...value } : value,
    ]),
  );
}

/** A client of this table alone. `config` is the SDK's. */
export function sdkClientOf(table: DynamoTable, config: DynamoDBClientConfig = {}): DynamoDBClient {
  const handle = async ({ headers, body }: HttpRequest): Promise<{ readonly response: unknown }> => {
    const target = headers["x-amz-target"] ?? headers["X-Amz-Target"] ?? "";
    const [statusCode, answer] = answerTo(
      table,
      target.split(".").at(-1) ?? "",
      JSON.parse(body ? new TextDecoder().decode(body) : "{}") as Input,
    );
    const text = new TextEncoder().encode(JSON.stringify(answer));
    return { response: { statusCode, headers: { "content-type": "application/x-amz-json-1.0" }, body: text } };
  };
  return new DynamoDBClient({
    region: "local",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    requestHandler: { handle },
    ...config,
  });
}

function answerTo(table: DynamoTable, operation: string, input: Input): readonly [status: number, answer: object] {
  try {
    const answer = carryOut(table, operation, fromWire(input));
    return [200, toWire(answer)];
  } catch (error) {
    const { name, message, $metadata, ...fields } = error as Error & { readonly $metadata?: { readonly httpStatusCode?: number } };
    if (!$metadata) throw error;
    return [$metadata.httpStatusCode ?? 400, { ...fields, message, __type: `com.amazonaws.dynamodb.v20120810#${name}` }];
  }
}

function carryOut(table: DynamoTable, operation: string, input: Input): object {
  switch (operation) {
    case "GetItem":
      return table.get(input);
    case "UpdateItem":
      return table.update(input);
    case "PutItem":
      return table.put(input);
    case "Query":
      return table.query(input);
    case "TransactWriteItems":
      return table.transactWrite(input);
    default:
      throw new Error(`this table does not know the operation ${operation}`);
  }
}

/** The members of a request that are maps of attributes. */
const MAPS: ReadonlySet<string> = new Set(["Key", "Item", "ExpressionAttributeValues", "ExclusiveStartKey"]);

function fromWire(input: Input): Input {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      if (MAPS.has(name)) return [name, plainItem(value as WireItem)];
      if (name === "TransactItems")
        return [name, (value as readonly { readonly Update: Input }[]).map((item) => ({ Update: fromWire(item.Update) }))];
      return [name, value];
    }),
  );
}

function toWire(answer: object): object {
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]: [string, unknown]) => {
      if (name === "Items") return [name, (value as readonly ValueMap[]).map(itemToWire)];
      return [name, typeof value === "object" ? itemToWire(value as ValueMap) : value];
    }),
  );
}
