/** DynamoDB's wire form of a value. lib-dynamodb leaves it in the item that a refused write brings back. */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";

/** The plain value of `value`, for the types that an item of ours has. */
export function plain(value: AttributeValue): unknown {
  if (value.S !== undefined) return value.S;
  if (value.N !== undefined) return Number(value.N);
  if (value.BOOL !== undefined) return value.BOOL;
  if (value.L) return value.L.map(plain);
  if (value.M) return plainItem(value.M);
  return null;
}

/** The plain values of an item. */
export function plainItem(item: Readonly<Record<string, AttributeValue>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, plain(value)]));
}
