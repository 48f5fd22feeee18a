/** DynamoDB's wire form of a value. lib-dynamodb does not convert the item that a refused write returns. */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";

/** Converts `value` to a plain value, for the types that our items have. */
export function plain(value: AttributeValue): unknown {
  if (value.S !== undefined) return value.S;
  if (value.N !== undefined) return Number(value.N);
  if (value.BOOL !== undefined) return value.BOOL;
  if (value.L) return value.L.map(plain);
  if (value.M) return plainItem(value.M);
  return null;
}

/** Converts an item to plain values. */
export function plainItem(item: Readonly<Record<string, AttributeValue>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, plain(value)]));
}
