/** Makes the client's checks of answers from the schemas: lib/contract/checks.ts. */
import { format, resolveConfig } from "prettier";
import type * as v from "valibot";
import { CHECKED, GROWING } from "../../lib/contract/answers.js";

/** The members of a schema that its rule is made from. */
interface Parts {
  readonly entries: Readonly<Record<string, v.GenericSchema>>;
  readonly item: v.GenericSchema;
  readonly value: v.GenericSchema;
  readonly wrapped: v.GenericSchema;
  readonly options: readonly unknown[];
  readonly literal: unknown;
}

/** Text, numbers and keys have no bounds here: they are the service's. What is named is compared with the request. */
const RULES: Readonly<Record<string, (parts: Parts) => string>> = {
  string: () => "text",
  boolean: () => "flag",
  number: () => "count",
  custom: () => "object",
  literal: ({ literal }) => `oneOf(${JSON.stringify(literal)})`,
  picklist: ({ options }) => `oneOf(${options.map((word) => JSON.stringify(word)).join(", ")})`,
  optional: ({ wrapped }) => `optional(${ruleOf(wrapped)})`,
  array: ({ item }) => `listOf(${ruleOf(item)})`,
  record: ({ value }) => `mapOf(${ruleOf(value)})`,
  strict_object: membersOf,
  // Objects of different kinds in one list are checked one by one, each by its own status.
  union: ({ options }) => {
    const rules = (options as readonly v.GenericSchema[]).map((option) => (option.type === "strict_object" ? "object" : ruleOf(option)));
    return new Set(rules).size === 1 ? rules[0]! : `either(${rules.join(", ")})`;
  },
};

function ruleOf(schema: v.GenericSchema, itsOwn?: string): string {
  const [whole] = Object.entries(CHECKED).find(([name, checked]) => checked === schema && name !== itsOwn) ?? [];
  if (whole !== undefined) return whole;
  if (GROWING.includes(schema)) return "text";
  const rule = RULES[schema.type];
  if (!rule) throw new Error(`no rule for a schema of the type ${schema.type}`);
  return rule(schema as unknown as Parts);
}

function membersOf({ entries }: Parts): string {
  // Any JSON is right there, and none.
  const checked = Object.entries(entries).filter(([, schema]) => !isAny(schema));
  const rules = checked.map(([name, schema]) => [name, ruleOf(schema)] as const);
  return `members({ ${rules.map(([name, rule]) => (name === rule ? name : `${name}: ${rule}`)).join(", ")} })`;
}

function isAny(schema: v.GenericSchema): boolean {
  return schema.type === "optional" ? isAny((schema as unknown as Parts).wrapped) : schema.type === "unknown";
}

/** The text of lib/contract/checks.ts. */
export async function madeChecks(): Promise<string> {
  const checks = Object.entries(CHECKED).map(([name, schema]) => `export const ${name} = ${ruleOf(schema, name)} as CheckOf<"${name}">;`);
  const helpers = ["either", "flag", "count", "listOf", "mapOf", "members", "object", "oneOf", "optional", "text"];
  const text = [
    "/**",
    " * The client's checks of answers. A generated file: change answers.ts, and make this one again by",
    " * `npx vitest run test/contract/checks -u`. rules.ts has its parts.",
    " */",
    `import { type CheckOf, ${helpers.sort().join(", ")} } from "./rules.js";`,
    "",
    ...checks,
  ].join("\n");
  return format(text, { ...(await resolveConfig(import.meta.filename)), parser: "typescript" });
}
