/**
 * The OpenAPI 3.1 document, made from the rows of the contract and the schemas that validate the requests. Its links name the operations
 * that an answer leads to: a generator of requests follows them, so they are what a caller can rely on.
 */
import { type ConversionConfig, type JsonSchema, toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import * as v from "valibot";
import { type ErrorCode, ERRORS } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import { VERSION } from "../core/version.js";
import { ANSWER_PARTS, ANSWERS } from "./answers.js";
import type { Schema } from "./decode.js";
import { HEADERS_AND_LINKS, LINKS, SUMMARIES } from "./document-words.js";
import { Key, LeaseId } from "./fields.js";
import type { AnswerName, OperationDoc } from "./operation.js";
import { OPERATIONS } from "./operations.js";
import { PROBLEM_TYPE } from "./problem.js";
import { HEADERS, REQUEST_PARTS, REQUESTS } from "./requests.js";
import { type OperationName, ROUTES } from "./routes.js";

type Json = Readonly<Record<string, unknown>>;

const RETRY_AFTER = { "Retry-After": "Whole seconds; goes with `retryAfterMs`" };
/** The refusals that every operation may return. */
export const ALWAYS: readonly ErrorCode[] = [
  "invalid-request",
  "forbidden",
  "too-large",
  "unsupported-media-type",
  "contended",
  "throttled",
  "not-configured",
  "internal",
  "clock-unknown",
  "clock-skew",
  "unavailable",
  "newer-format",
  "older-format",
  "unreadable-record",
];

/** The ways to authenticate. A deployment uses one of them, on every route. */
const SECURITY_SCHEMES = {
  iam: {
    type: "apiKey",
    in: "header",
    name: "Authorization",
    description: "An AWS signature, version 4, for the service `execute-api`; for `lambda` if the URL is a function URL",
    "x-amazon-apigateway-authtype": "awsSigv4",
  },
  jwt: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A token of the issuer that the deployment names" },
};

/** The schemas of every operation. The document's own has no call of the service. */
const DOCS: Readonly<Record<OperationName, OperationDoc>> = {
  ...OPERATIONS,
  openapi: { answers: { 200: "empty" } },
};

/** The schemas that the document names. Where one is a part of another, that refers to it: generators make one type of it. */
const NAMED = { ...REQUESTS, ...REQUEST_PARTS, ...ANSWERS, ...ANSWER_PARTS };
const NAMES = new Map<v.GenericSchema, string>(Object.entries(NAMED).map(([name, schema]) => [schema, name]));

/** The types of literals. */
const TYPES: Readonly<Record<string, "string" | "boolean" | "integer">> = { string: "string", boolean: "boolean", number: "integer" };

/** The conversion of a schema, to what the generators of clients understand. Checks by a function of ours are left to the service. */
const CONVERSION: ConversionConfig = {
  target: "draft-2020-12",
  errorMode: "ignore",
  overrideRef: ({ referenceId }) => pathOf(referenceId),
  overrideSchema({ valibotSchema: schema, jsonSchema: converted }) {
    if (schema.type === "custom") return { type: "object", additionalProperties: true };
    // Some generators know no `const`, or none without a type. A number is a status.
    if (converted.const !== undefined) return { type: TYPES[typeof converted.const], enum: [converted.const] };
    if (schema.type === "variant") return { ...converted, discriminator: discriminatorOf(schema as unknown as Variant) } as JsonSchema;
    return undefined;
  },
};

/** A schema whose alternatives are told apart by the member `key`. Each of them has a name. */
interface Variant {
  readonly key: string;
  readonly options: readonly (v.GenericSchema & {
    readonly entries: Readonly<Record<string, { literal?: string; options?: readonly string[] }>>;
  })[];
}

function discriminatorOf({ key, options }: Variant): Json {
  const mapping = options.flatMap((option) => {
    const { literal, options: words = [literal ?? ""] } = option.entries[key] ?? {};
    return words.map((word) => [word, pathOf(NAMES.get(option) ?? "")]);
  });
  return { propertyName: key, mapping: Object.fromEntries(mapping) as Json };
}

/** The document, as plain JSON. */
export function openapi(): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const [operationId, route] of Object.entries(ROUTES)) {
    const [method = "", path = ""] = route.split(" ", 2);
    (paths[path] ??= {})[method.toLowerCase()] = { operationId, ...operation(path, operationId as OperationName) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "holdfast",
      version: VERSION,
      description: "Lease locks as an HTTP API.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    security: Object.keys(SECURITY_SCHEMES).map((name) => ({ [name]: [] })),
    paths,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      links: LINKS,
      schemas: toJsonSchemaDefs(NAMED, CONVERSION),
    },
  };
}

function operation(path: string, operationId: OperationName): Json {
  const { body, maxBytes = LIMITS.bodyBytes, answers, refusals = [], query } = DOCS[operationId];
  const { asks = {}, tells = {}, leadsTo = {} } = HEADERS_AND_LINKS[operationId] ?? {};
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: jsonSchema(name === "key" ? Key : LeaseId),
  }));
  const inQuery = Object.entries(query?.entries ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    schema: jsonSchema(schema, "output"),
  }));
  const inHeader = Object.entries(asks).map(([name, description]) => {
    const schema = HEADERS[name] ? jsonSchema(HEADERS[name]) : { type: "string" };
    return { name, in: "header", description, schema };
  });
  const headers = headerDocs(tells);
  return {
    summary: SUMMARIES[operationId],
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(body && {
      requestBody: {
        required: !v.is(REQUESTS[body], {}),
        content: { "application/json": { schema: ref(body) } },
        description: `At most ${maxBytes} bytes.`,
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, name]) => [
          status,
          {
            ...response(name),
            ...(name === "Waiting" || name === "Queued" ? headerDocs(RETRY_AFTER) : headers),
            ...linksOf(leadsTo[Number(status)]),
          },
        ]),
      ),
      401: {
        description: "The gateway's own: the token is missing, or not valid",
        content: { "application/json": { schema: ref("GatewayAnswer") } },
      },
      ...problems([...refusals, ...ALWAYS]),
    },
  };
}

/** Makes one response per status, which names the codes that share it. */
function problems(codes: readonly ErrorCode[]): Record<string, Json> {
  const statuses = new Set(codes.map((code) => ERRORS[code].status));
  return Object.fromEntries(
    Array.from(statuses, (status) => {
      const shared = codes.filter((code) => ERRORS[code].status === status);
      const description = shared.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join(". ");
      const headers = shared.some((code) => ERRORS[code].retry === "later") ? headerDocs(RETRY_AFTER) : {};
      return [status, { description, ...headers, content: { [PROBLEM_TYPE]: { schema: ref("Problem") } } }];
    }),
  );
}

function response(name: AnswerName): Json {
  return name === "empty"
    ? { description: "No content of note" }
    : { description: name, content: { "application/json": { schema: ref(name) } } };
}

function headerDocs(named: Readonly<Record<string, string>>): Json {
  const headers = Object.entries(named).map(([name, description]) => [name, { description, schema: { type: "string" } }] as const);
  return headers.length > 0 ? { headers: Object.fromEntries(headers) } : {};
}

function linksOf(names: readonly string[] = []): Json {
  const links = names.map((name) => [name, { $ref: `#/components/links/${name}` }] as const);
  return links.length > 0 ? { links: Object.fromEntries(links) } : {};
}

function ref(name: string): Json {
  return { $ref: pathOf(name) };
}

function pathOf(name: string): string {
  return `#/components/schemas/${name}`;
}

/** Converts a schema that has no name. */
function jsonSchema(schema: Schema, typeMode: "input" | "output" = "input"): Json {
  const { $schema: _draft, ...rest } = toJsonSchema(schema, { ...CONVERSION, typeMode }) as Json;
  return rest;
}
