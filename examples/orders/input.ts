/** Checks the input of callers. An error names the field and the rule that it breaks. */
import type { Order, Review, Status } from "./order.js";
import type { AcquireParams } from "./orders-table.js";
import { badField } from "./refusal.js";
import type { Request } from "./shop.js";

const NAME = /^[A-Za-z0-9-]{1,40}$/;
const PRODUCTS = 20;
const PIECES = 100;
const STARS = 5;
const TEXT_CHARS = 1000;
const STATUSES: readonly Status[] = ["PLACED", "PAID", "ACCEPTED", "COMPLETED", "CANCELLED", "REFUNDED"];

/** `{items: {camera: 1, …}}`. */
export function itemsIn(body: unknown): Order["items"] {
  const { items } = fieldsOf(body, ["items"]);
  if (!isObject(items)) throw badField("items", "must be an object of pieces by product");
  const products = Object.entries(items);
  if (products.length < 1 || products.length > PRODUCTS) throw badField("items", `must be 1 to ${PRODUCTS} products`);
  for (const [name, pieces] of products) {
    if (!NAME.test(name)) throw badField("items", "names of products are 1 to 40 characters of A-Z a-z 0-9 -");
    if (!isWhole(pieces, PIECES)) throw badField(`items.${name}`, `must be a whole number from 1 to ${PIECES}`);
  }
  return items as Order["items"];
}

/** `{stars: 5, text: "…"}`; the text may be left out. */
export function reviewIn(body: unknown): Review {
  const { stars, text = "" } = fieldsOf(body, ["stars", "text"]);
  if (!isWhole(stars, STARS)) throw badField("stars", `must be a whole number from 1 to ${STARS}`);
  if (typeof text !== "string" || text.length > TEXT_CHARS) throw badField("text", `must be text of at most ${TEXT_CHARS} characters`);
  return { stars, text };
}

/** Reads the page's parameters from the query. Other parameters are errors. */
export function pageIn(query: Request["query"], known: readonly (keyof AcquireParams)[]): AcquireParams {
  const { status, product, before } = fieldsOf(query, known) as Readonly<Record<keyof AcquireParams, string | undefined>>;
  const isStatus = (text: string): text is Status => (STATUSES as readonly string[]).includes(text);
  if (status !== undefined && !isStatus(status)) throw badField("status", `must be one of ${STATUSES.join(", ")}`);
  for (const [field, value] of Object.entries({ product, before })) {
    if (value !== undefined && !NAME.test(value)) throw badField(field, "must be 1 to 40 characters of A-Z a-z 0-9 -");
  }
  return { status, product, before };
}

function fieldsOf(given: unknown, known: readonly string[]): Readonly<Record<string, unknown>> {
  if (!isObject(given)) throw badField("body", "must be a JSON object");
  const unknown = Object.keys(given).find((field) => !known.includes(field));
  if (unknown !== undefined) throw badField(unknown, `is unknown; known: ${known.join(", ")}`);
  return given;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isWhole(value: unknown, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= max;
}
