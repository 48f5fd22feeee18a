/** Document paths: resolved with the names of a request, and looked up in an item. */
import { type Value, type ValueMap, isList, isMap } from "./values.js";

/** A path as written: names, `#` placeholders and indices. */
export type Path = readonly (string | number)[];

/** The names and values of one request. */
export class Placeholders {
  constructor(
    readonly names: Readonly<Record<string, string>>,
    readonly values: ValueMap,
  ) {}

  /** The value of a `:` placeholder, which was checked before. */
  value(placeholder: string): Value {
    return this.values[placeholder] ?? null;
  }

  /** The path with its placeholders replaced. */
  resolve(path: Path): Path {
    return path.some((step) => typeof step === "string" && step.startsWith("#"))
      ? path.map((step) => (typeof step === "string" ? (this.names[step] ?? step) : step))
      : path;
  }
}

/** Returns the value at the path; undefined if there is none. */
export function lookUp(item: ValueMap | undefined, path: Path, { names }: Placeholders): Value | undefined {
  let value: Value | undefined = item;
  for (const step of path) {
    if (typeof step === "number") {
      if (!isList(value)) return undefined;
      value = value[step];
      continue;
    }
    if (!isMap(value)) return undefined;
    const name = step.startsWith("#") ? (names[step] ?? step) : step;
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

/** The path as DynamoDB's messages write it. */
export function pathText(path: Path): string {
  return `[${path.map((step) => (typeof step === "number" ? `[${step}]` : step)).join(", ")}]`;
}
