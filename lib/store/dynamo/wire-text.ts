/**
 * Values as the text of DynamoDB's JSON. Written straight as text: the store's values are few and known, and an object
 * in between would be made only to be read once.
 */

/** The text of an item's attributes. Members that are undefined are left out. @throws TypeError for a value that DynamoDB has no type for */
export function itemText(item: Readonly<Record<string, unknown>>): string {
  let text = "";
  for (const name of Object.keys(item)) {
    const value = item[name];
    if (value !== undefined) text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${valueText(value)}`;
  }
  return `{${text}}`;
}

function valueText(value: unknown): string {
  switch (typeof value) {
    case "string":
      return `{"S":${JSON.stringify(value)}}`;
    case "number":
      return `{"N":"${numberText(value)}"}`;
    case "boolean":
      return value ? '{"BOOL":true}' : '{"BOOL":false}';
    case "object":
      return objectText(value);
    default:
      throw new TypeError(`a table holds no ${typeof value}`);
  }
}

function objectText(value: object | null): string {
  if (value === null) return '{"NULL":true}';
  if (Array.isArray(value))
    return `{"L":[${value
      .filter((one) => one !== undefined)
      .map(valueText)
      .join(",")}]}`;
  if (value instanceof Uint8Array) return `{"B":${base64Text(value)}}`;
  if (value instanceof Set) return setText([...(value as Set<unknown>)]);
  return `{"M":${itemText(value as Record<string, unknown>)}}`;
}

function setText(members: readonly unknown[]): string {
  if (members.every((one) => typeof one === "string")) return `{"SS":${JSON.stringify(members)}}`;
  if (members.every((one) => typeof one === "number")) return `{"NS":[${members.map((one) => `"${numberText(one)}"`).join(",")}]}`;
  if (members.every((one) => one instanceof Uint8Array)) return `{"BS":[${members.map(base64Text).join(",")}]}`;
  throw new TypeError("a table holds no set of mixed values");
}

/** Beyond these bounds a number would be another one after a round trip. */
function numberText(value: number): string {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) throw new TypeError(`a table holds no ${value}`);
  return String(value);
}

function base64Text(bytes: Uint8Array): string {
  return `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")}"`;
}
