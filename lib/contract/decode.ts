/** Decodes requests: applies a schema, or returns one refusal naming the field and the rule. */
import * as v from "valibot";
import { type Refusal, refuse } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";

/** A message that passed its schema, or a refusal. */
export type Decoded<T> = { readonly ok: true; readonly value: T } | Refusal;

export type Schema<T = unknown> = v.GenericSchema<unknown, T>;

/** The type of a message that passed `S`. */
export type Output<S extends Schema> = v.InferOutput<S>;

const SHOWN_CHARS = 20;

/** Decodes `input` by `schema`. */
export function decode<S extends Schema>(schema: S, input: unknown): Decoded<Output<S>> {
  const result = v.safeParse(schema, input, { abortEarly: true, abortPipeEarly: true });
  if (result.success) return { ok: true, value: result.output };
  return invalid(result.issues[0]);
}

/** Decodes the JSON in `body` by `schema`. No body counts as `{}`. */
export function decodeBody<S extends Schema>(
  schema: S,
  body: string | undefined,
  contentType: string | undefined,
  maxBytes: number = LIMITS.bodyBytes,
): Decoded<Output<S>> {
  if (body === undefined) return decode(schema, {});
  if (new TextEncoder().encode(body).length > maxBytes) return refuse("too-large", { detail: `The body is over ${maxBytes} bytes` });
  if (body.trim() === "") return decode(schema, {});
  if (contentType !== undefined && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
    return refuse("unsupported-media-type", { detail: "The body must be sent as content-type: application/json" });
  }
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return refuse("invalid-request", { detail: `The body is not JSON${encodingOf(body)}` });
  }
  if (typeof json !== "object" || json === null || Array.isArray(json))
    return refuse("invalid-request", { detail: "The body must be a JSON object" });
  return decode(schema, json);
}

/** Says what a body has that editors and shells put there unseen. */
function encodingOf(body: string): string {
  if (body.startsWith("\ufeff")) return ": it begins with a byte order mark";
  return body.includes("\0") ? ": it has zero bytes, as UTF-16 has. Send UTF-8" : "";
}

function invalid(issue: v.BaseIssue<unknown>): Refusal {
  const field = v.getDotPath(issue) ?? undefined;
  const rule = ruleOf(issue, field);
  return refuse("invalid-request", { detail: field === undefined ? rule : `${field}: ${rule}`, ...(field !== undefined && { field }) });
}

function ruleOf(issue: v.BaseIssue<unknown>, field: string | undefined): string {
  if (field !== undefined && issue.type === "strict_object")
    return issue.received === "undefined" ? "is required" : "is not a field of this request";
  return issue.message + shownInput(issue);
}

/** Tells the value that breaks a rule. Text is not repeated, since it may be secret, unless it stands for one of a few words. */
function shownInput({ input, received, type }: v.BaseIssue<unknown>): string {
  if (typeof input === "object" || input === undefined) return "";
  const isText = typeof input === "string" && (type !== "picklist" || input.length > SHOWN_CHARS);
  return `; ${isText ? `text of ${input.length} characters` : received} given`;
}
