/** DynamoDB's wire form of a value. The AWS SDK does not convert the item that a refused write returns. */
import type { WireItem, WireValue } from "./calls.js";

/**
 * Converts `value` to the plain value that the AWS SDK's document client would make of it, so that it is written back unchanged.
 * @throws Error for a value that would not be: of an unknown type, or a whole number beyond the safe integers
 */
export function plain(value: WireValue): unknown {
  if (value["S"] !== undefined) return value["S"];
  if (value["N"] !== undefined) return number(value["N"] as string);
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

/**
 * Converts null, and the types that only an item of a newer version may have: sets, and bytes, which the AWS SDK decodes.
 * @throws Error for any other type
 */
function unusual(value: WireValue): unknown {
  const { SS, NS, BS, B, NULL } = value;
  if (SS !== undefined) return new Set(SS as readonly string[]);
  if (NS !== undefined) return new Set((NS as readonly string[]).map(number));
  if (BS !== undefined) return new Set((BS as readonly (string | Uint8Array)[]).map(bytes));
  if (B !== undefined) return bytes(B as string | Uint8Array);
  if (NULL === true) return null;
  throw new Error(`the item holds the unknown type ${Object.keys(value).join(", ")}`);
}

/** @throws Error for a whole number that this version would round */
function number(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new Error(`the item holds ${text}, which would be rounded`);
  return value;
}

function bytes(value: string | Uint8Array): Uint8Array {
  return typeof value === "string" ? Buffer.from(value, "base64") : value;
}
