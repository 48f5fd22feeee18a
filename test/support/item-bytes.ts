/** The size of an item of plain values, by the rules of the DynamoDB developer guide. */

/** The bytes of the names and values. */
export function itemBytes(item: Readonly<Record<string, unknown>>): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0);
}

/** A number takes one byte for each two significant digits, rounded up, plus one. */
function valueBytes(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return Math.ceil(String(value).length / 2) + 1;
  if (typeof value === "boolean") return 1;
  if (Array.isArray(value)) return value.reduce<number>((sum, entry) => sum + 1 + valueBytes(entry), 3);
  return 3 + Object.keys(value as object).length + itemBytes(value as Readonly<Record<string, unknown>>);
}
