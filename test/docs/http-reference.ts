/** Makes docs/http-api.md: the OpenAPI document for people, with the defaults that the service fills in. */
import { ANSWERS } from "../../lib/contract/answers.js";
import { openapi } from "../../lib/contract/openapi.js";
import { readPage, table, withParts } from "./generated.js";
import { EXAMPLES } from "./http-examples.js";

/** The part of JSON Schema that the document uses. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly default?: unknown;
  readonly description?: string;
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly description?: string;
  readonly schema: Schema;
}

interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly description: string; readonly content: Required<Answer>["content"] };
  readonly responses: Readonly<Record<string, Answer>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const DOCUMENT = openapi() as unknown as Document;
const SCHEMAS = DOCUMENT.components.schemas;

/** Defaults of fields that a request may leave out, if they aren't values that the document could name. */
const FILLED_IN: Readonly<Record<string, unknown>> = {
  "RenewRequest.leaseMs": "the lease's own",
  "TransferRequest.leaseMs": "the lease's own",
  "RenewSetRequest.leaseMs": "each lease's own",
  "RenewRunRequest.leaseMs": "the lease's own",
};

/** Integers with thin spaces between groups of digits. */
function figure(value: number): string {
  return String(value).replaceAll(/\B(?=(\d{3})+$)/g, " ");
}

function shown(value: unknown): string {
  return typeof value === "number" ? figure(value) : typeof value === "string" && value !== "" ? value : "";
}

function range(min: number | undefined, max: number | undefined): string {
  if (max === undefined || max === Number.MAX_SAFE_INTEGER) return min === undefined || min === 0 ? "" : `, at least ${figure(min)}`;
  return `, ${figure(min ?? 0)} to ${figure(max)}`;
}

/** A type and its limits in a few words. */
function words(schema: Schema): string {
  if (schema.$ref !== undefined) return words(resolved(schema));
  const { type, enum: named, pattern = "", items } = schema;
  if (named) return named.map((one) => `\`${JSON.stringify(one)}\``).join(" or ");
  const several = schema.oneOf ?? schema.anyOf;
  if (several) return several.map(words).join(" or ");
  if (pattern.startsWith("^[0-9a-f]{8}-")) return "a leaseId: UUIDv7, lower case";
  if (pattern.startsWith("^(?!")) return "a key";
  if (pattern !== "") return `text like \`${pattern}\``;
  if (type === "integer") return `whole number${range(schema.minimum, schema.maximum)}`;
  if (type === "string") {
    const [min, max] = [schema.minLength ?? 0, schema.maxLength];
    return max === undefined ? "text" : min === 0 ? `text, up to ${max} characters` : `text, ${min} to ${max} characters`;
  }
  if (type === "array") {
    const count = schema.maxItems === undefined ? "a list" : `${schema.minItems ?? 0} to ${schema.maxItems}`;
    return `${count} of ${items ? words(items) : "anything"}`;
  }
  if (type === "boolean") return "`true` or `false`";
  if (schema.properties) return `{ ${membersOf(schema).join(", ")} }`;
  if (typeof schema.additionalProperties === "object") return `an object: ${words(schema.additionalProperties)} for each key`;
  return type === "object" ? "an object" : "JSON";
}

function membersOf({ properties = {}, required = [] }: Schema): readonly string[] {
  return Object.keys(properties).map((name) => (required.includes(name) ? name : `${name}?`));
}

function refName({ $ref = "" }: Schema): string {
  return $ref.split("/").at(-1) ?? "";
}

function resolved(schema: Schema): Schema {
  return SCHEMAS[refName(schema)] ?? schema;
}

/** A schema's alternatives that are objects, or the schema itself if it is an object. */
function variantsOf(schema: Schema): readonly Schema[] {
  if (schema.properties) return [schema];
  return (schema.oneOf ?? schema.anyOf ?? []).map(resolved).flatMap((one) => (one.properties ? [one] : []));
}

function fieldsOf(name: string, withDefaults: boolean): string {
  const schema = SCHEMAS[name] ?? {};
  const variants = variantsOf(schema);
  return variants
    .map((variant) => {
      const title = variants.length === 1 ? [] : [`With ${firstConst(variant)}:`, ""];
      const rows = Object.entries(variant.properties ?? {}).map(([field, type]) => {
        const need = variant.required?.includes(field) ? "required" : shown(type.default ?? FILLED_IN[`${name}.${field}`]);
        const cells = [`\`${field}\``, words(type), type.description ?? ""];
        return withDefaults ? cells.toSpliced(2, 0, need) : cells;
      });
      return [...title, table(withDefaults ? ["field", "what", "default", ""] : ["field", "what", ""], rows)].join("\n");
    })
    .join("\n\n");
}

function firstConst({ properties = {} }: Schema): string {
  const [name, schema] = Object.entries(properties)[0] ?? ["", {}];
  return `\`${name}\` ${words(schema)}`;
}

function purposeOf(parameter: Parameter): string {
  const fallback = parameter.in === "query" ? shown(parameter.schema.default) : "";
  const what = parameter.in === "header" ? (parameter.description ?? "") : words(parameter.schema);
  return `- ${parameter.in} \`${parameter.name}\`: ${what}${fallback === "" ? "" : ` (default ${fallback})`}`;
}

function answersOf({ responses }: Operation): string {
  const rows = Object.entries(responses).map(([status, { description, content, headers = {} }]) => {
    const name = refName(content?.["application/json"]?.schema ?? {});
    const what =
      Number(status) >= 400
        ? description
        : name === ""
          ? status === "304"
            ? "nothing changed"
            : "no body"
          : `[${name}](#answer-${name.toLowerCase()})`;
    return [
      status,
      what,
      Object.keys(headers)
        .map((header) => `\`${header}\``)
        .join(", "),
    ];
  });
  return table(["status", "answer", "headers"], rows);
}

/** One operation: its purpose, its request, its responses, an example. */
function section(method: string, path: string, operation: Operation): string {
  const { operationId, summary, parameters, requestBody } = operation;
  const parts = [`### ${operationId}`, `\`${method.toUpperCase()} ${path}\``, /[.?]$/.test(summary) ? summary : `${summary}.`];
  const asked = parameters.filter((parameter) => parameter.in !== "path");
  if (asked.length > 0) parts.push(asked.map(purposeOf).join("\n"));
  if (requestBody) {
    const needed = requestBody.required ? "" : ", and may be left out";
    parts.push(
      `The body is JSON${needed}. ${requestBody.description}`,
      fieldsOf(refName(requestBody.content["application/json"]?.schema ?? {}), true),
    );
  }
  parts.push(answersOf(operation));
  const example = EXAMPLES[operationId];
  if (example) parts.push(["```sh", `# ${example.status}: ${example.says}`, example.line, "```"].join("\n"));
  return parts.join("\n\n");
}

const COMMON = ["400", "401", "403", "413", "415", "429", "500", "503"];

/** Removes the refusals that every operation has, because they would be most of the page. */
function withoutCommon(operation: Operation, common: ReadonlyMap<string, string>): Operation {
  const own = Object.entries(operation.responses).filter(([status, { description }]) => common.get(status) !== description);
  return { ...operation, responses: Object.fromEntries(own) };
}

/** The page, from its template and the OpenAPI document. */
export function httpPage(): Promise<string> {
  return withParts(readPage("test/docs/http-api-page.md"), httpReference());
}

/** The page's parts, by name. */
export function httpReference(): Readonly<Record<string, string>> {
  const operations = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const health = operations.find(({ operation }) => operation.operationId === "health")!.operation;
  const common = new Map(COMMON.map((status) => [status, health.responses[status]?.description ?? ""]));
  const of = (start: string): string =>
    operations
      .filter(({ path }) => path.startsWith(start))
      .map(({ method, path, operation }) => section(method, path, withoutCommon(operation, common)))
      .join("\n\n");
  const answers = Object.keys(ANSWERS);
  return {
    "common refusals": table(["status", "code"], [...common]),
    locks: of("/v1/locks"),
    sets: of("/v1/lock-sets"),
    renewals: of("/v1/renewals"),
    runs: of("/v1/runs"),
    limits: of("/v1/limits"),
    service: `${of("/v1/health")}\n\n${of("/v1/openapi.json")}`,
    answers: answers.map((name) => `### Answer: ${name}\n\n${fieldsOf(name, false) || words(SCHEMAS[name] ?? {})}`).join("\n\n"),
  };
}

/** Every operation, as method and path. */
export function httpRoutes(): readonly string[] {
  return Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
}
