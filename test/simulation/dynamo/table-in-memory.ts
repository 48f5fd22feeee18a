/** A table in memory for stores, without a process of its own and without the AWS SDK's work, which takes longer than all else. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../../../lib/core/time.js";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import type { FreshTable } from "../../support/engine.js";
import { sdkClientOf } from "./sdk-client.js";
import { TABLE_NAME, callsBy, carryOut } from "../../../lib/testing/served-table.js";
import { type Input, DynamoTable } from "../../../lib/testing/table/table.js";

/** Returns a new table in memory. A store on it passes the conformance suite, as on an engine. */
export function tableInMemory(): Pick<FreshTable, "client" | "calls" | "tableName"> {
  const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => systemClock.wallMs());
  const client = sdkClientOf(table);
  return { client, calls: callsOf(table, client), tableName: TABLE_NAME };
}

type Handler = (args: { readonly input: object }) => Promise<{ readonly output: object }>;

/** The table's operations with the middleware that a test adds to the client, and without the SDK's. */
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
  return callsBy(send);
}

function copied(answer: object): object {
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "object" && !Array.isArray(value) ? { ...value } : value,
    ]),
  );
}
