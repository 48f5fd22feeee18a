/**
 * Validates a value against a JSON Schema, with the few keywords that the API's document uses. An unknown keyword is an
 * error, so that nothing looks checked that isn't.
 */

/** A schema with the keywords that are known here. */
export type JsonSchema = Readonly<Record<string, unknown>>;

type Check = (value: unknown, rule: never, schema: JsonSchema) => boolean;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const propertiesOf = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  (schema["properties"] ?? {}) as Readonly<Record<string, JsonSchema>>;

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  integer: Number.isInteger,
};

const CHECKS: Readonly<Record<string, Check>> = {
  type: (value, rule: string) => TYPES[rule]?.(value) ?? unknownRule(`type ${rule}`),
  const: (value, rule: unknown) => value === rule,
  enum: (value, rule: readonly unknown[]) => rule.includes(value),
  minimum: (value, rule: number) => typeof value !== "number" || value >= rule,
  maximum: (value, rule: number) => typeof value !== "number" || value <= rule,
  minLength: (value, rule: number) => typeof value !== "string" || Array.from(value).length >= rule,
  maxLength: (value, rule: number) => typeof value !== "string" || Array.from(value).length <= rule,
  pattern: (value, rule: string) => typeof value !== "string" || new RegExp(rule, "u").test(value),
  required: (value, rule: readonly string[]) => !isObject(value) || rule.every((name) => Object.hasOwn(value, name)),
  properties: (value, rule: Readonly<Record<string, JsonSchema>>) =>
    !isObject(value) || Object.entries(rule).every(([name, schema]) => !Object.hasOwn(value, name) || fits(schema, value[name])),
  additionalProperties: (value, rule: boolean, schema) =>
    rule || !isObject(value) || Object.keys(value).every((name) => Object.hasOwn(propertiesOf(schema), name)),
  allOf: (value, rule: readonly JsonSchema[]) => rule.every((schema) => fits(schema, value)),
  not: (value, rule: JsonSchema) => !fits(rule, value),
  if: (value, rule: JsonSchema, { then }) => !fits(rule, value) || fits(then as JsonSchema, value),
  then: () => true,
  anyOf: (value, rule: readonly JsonSchema[]) => rule.some((schema) => fits(schema, value)),
  oneOf: (value, rule: readonly JsonSchema[]) => rule.filter((schema) => fits(schema, value)).length === 1,
  minItems: (value, rule: number) => !Array.isArray(value) || value.length >= rule,
  maxItems: (value, rule: number) => !Array.isArray(value) || value.length <= rule,
  items: (value, rule: JsonSchema) => !Array.isArray(value) || value.every((item) => fits(rule, item)),
  description: () => true,
  default: () => true,
  discriminator: () => true,
};

/** True if `value` matches `schema`. @throws Error at an unknown keyword. */
export function fits(schema: JsonSchema, value: unknown): boolean {
  return Object.entries(schema).every(([keyword, rule]) => (CHECKS[keyword] ?? unknownRule(keyword))(value, rule as never, schema));
}

function unknownRule(keyword: string): never {
  throw new Error(`test/support/json-schema.ts doesn't know ${keyword}`);
}

/** Returns the document's schemas, by their names, with each reference replaced by what it refers to. */
export function expanded(schemas: Readonly<Record<string, JsonSchema>>): Readonly<Record<string, JsonSchema>> {
  const expand = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(expand);
    if (!isObject(part)) return part;
    const { $ref } = part;
    if (typeof $ref === "string") return expand(schemas[$ref.replace("#/components/schemas/", "")]);
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, expand(inner)]));
  };
  return expand(schemas) as Readonly<Record<string, JsonSchema>>;
}
