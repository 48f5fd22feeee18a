/** DynamoDB's wire form of a value. The AWS SDK does not convert the item that a refused write returns. */
import type { WireItem, WireValue } from "./calls.js";

/** Converts `value` to the plain value that the AWS SDK's document client would make of it, so that it is written back unchanged. */
export function plain(value: WireValue): unknown {
  if (value["S"] !== undefined) return value["S"];
  if (value["N"] !== undefined) return Number(value["N"]);
  if (value["M"] !== undefined) return plainItem(value["M"] as WireItem);
  if (value["L"] !== undefined) return (value["L"] as readonly WireValue[]).map(plain);
  if (value["BOOL"] !== undefined) return value["BOOL"];
  return unusual(value);
}

/** Converts an item to plain values. */
export function plainItem(item: WireItem): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(item)) {
    // An assignment to this name would make it the prototype.
    // Stryker disable next-line ConditionalExpression: a definition makes the same member of every name, and is slower
    if (name === "__proto__")
      Object.defineProperty(values, name, { value: plain(value), enumerable: true, configurable: true, writable: true });
    else values[name] = plain(value);
  }
  return values;
}

/** Converts null, and the types that only an item of a newer version may have: sets, and bytes, which the AWS SDK decodes. */
function unusual({ SS, NS, BS, B }: WireValue): unknown {
  if (SS !== undefined) return new Set(SS as readonly string[]);
  if (NS !== undefined) return new Set((NS as readonly string[]).map(Number));
  if (BS !== undefined) return new Set((BS as readonly (string | Uint8Array)[]).map(bytes));
  return B === undefined ? null : bytes(B as string | Uint8Array);
}

function bytes(value: string | Uint8Array): Uint8Array {
  return typeof value === "string" ? Buffer.from(value, "base64") : value;
}
