/** The service's own OpenAPI document, and the check that it lists a response. */
import { expect } from "vitest";
import { type JsonSchema, expanded, fits } from "../support/json-schema.js";
import type { Reply } from "../support/reply.js";

interface Content {
  readonly schema?: { readonly $ref: string };
}
interface Answer {
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, Content>>;
}
interface Operation {
  readonly responses: Readonly<Record<string, Answer>>;
}

/** The parts of `GET /v1/openapi.json` that are read here. */
export interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  /** By path, and by method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

/** Headers with information about the response. The document must list each of them wherever it occurs. */
const TELLING = ["etag", "retry-after", "idempotent-replayed", "lease-state"];

/** The document's path that matches a request's path; undefined if there is none. */
export function pathOf({ paths }: Document, path: string): string | undefined {
  const [asked = ""] = path.split("?", 1);
  return Object.keys(paths).find((template) =>
    new RegExp(`^${template.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(asked),
  );
}

/** Checks a response against the document: its status, its media type, its body and its headers. */
export function checkDocumented(document: Document, method: string, path: string, { status, headers, body }: Reply): void {
  const template = pathOf(document, path);
  const operation = template === undefined ? undefined : document.paths[template]?.[method.toLowerCase()];
  const where = `${method} ${template ?? path} ${status}`;
  if (!operation) {
    expect(status, where).toBe(template === undefined ? 404 : 405);
    return checkBody(document, "#/components/schemas/Problem", body, where);
  }
  const answer = operation.responses[status];
  expect(Object.keys(operation.responses), `${where} is in the document`).toContain(String(status));
  const documented = Object.keys(answer?.headers ?? {}).map((name) => name.toLowerCase());
  expect(documented, `${where}: its headers`).toEqual(expect.arrayContaining(TELLING.filter((name) => name in headers)));
  const [media, content] = Object.entries(answer?.content ?? {})[0] ?? [];
  if (media === undefined) return;
  expect(headers["content-type"], where).toBe(media);
  checkBody(document, content?.schema?.$ref ?? "", body, where);
}

function checkBody({ components }: Document, ref: string, body: unknown, where: string): void {
  const name = ref.replace("#/components/schemas/", "");
  const schema = expanded(components.schemas)[name];
  expect(schema, `${where}: ${ref}`).toBeDefined();
  expect(fits(unfolded(schema ?? {}, body), body), `${where}: ${JSON.stringify(body)} is no ${name}`).toBe(true);
}

/** Expands every map in a schema: the schema of its members is applied to each member that `value` has. */
function unfolded(schema: JsonSchema, value: unknown): JsonSchema {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return schema;
  const { propertyNames, additionalProperties, properties = {}, ...rest } = schema;
  const members = value as Readonly<Record<string, unknown>>;
  if (typeof additionalProperties !== "object") {
    const inner = Object.entries(properties as Readonly<Record<string, JsonSchema>>);
    return {
      ...schema,
      ...(inner.length > 0 && { properties: Object.fromEntries(inner.map(([name, one]) => [name, unfolded(one, members[name])])) }),
    };
  }
  const names = Object.keys(members).filter((name) => fits((propertyNames ?? {}) as JsonSchema, name));
  return { ...rest, properties: Object.fromEntries(names.map((name) => [name, additionalProperties])), additionalProperties: false };
}
