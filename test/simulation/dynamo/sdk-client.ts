/**
 * The AWS SDK's own client in front of an in-memory table: everything but the network is real, from its serializer to
 * its exceptions. It shows that the table answers as a server would. The simulation itself doesn't use the SDK.
 */
import { type DynamoDBClientConfig, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { plainItem } from "../../../lib/store/dynamo/attribute-value.js";
import type { WireItem } from "../../../lib/store/dynamo/calls.js";
import { carryOut } from "../../../lib/testing/served-table.js";
import type { DynamoTable, Input } from "../../../lib/testing/table/table.js";
import { type ValueMap, itemToWire } from "../../../lib/testing/table/values.js";

interface HttpRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
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
    return { response: { statusCode, headers: { "content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "R1" }, body: text } };
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
