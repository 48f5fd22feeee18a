/** Requests on localhost: what API Gateway hands to a function once it knows who asks. */
import { BUYER } from "./buyer.js";
import { handlerFor } from "./http.js";
import { SELLER } from "./seller.js";
import type { Shop } from "./shop.js";

/** What a request may carry; the rest is ordinary. */
export interface Asking {
  readonly as: string;
  readonly order?: string;
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the invocation; also how long it waits for an order, but for a second. @default 20 000 */
  readonly remainingMs?: number;
}

/** What was answered. */
export interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // Whatever the operation answers.
  readonly body: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- read by people and tests
}

/** Calls the function that serves the route, as API Gateway does once it knows who asks. */
export async function ask(
  shop: Shop,
  routeKey: string,
  { as, order, body, query, headers = {}, remainingMs = 20_000 }: Asking,
): Promise<Told> {
  const handler = handlerFor(routeKey in BUYER ? BUYER : SELLER, shop);
  const event = {
    routeKey,
    headers,
    ...(order !== undefined && { pathParameters: { order } }),
    ...(query && { queryStringParameters: query }),
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    requestContext: { authorizer: { jwt: { claims: { sub: as } } } },
  };
  const { statusCode = 0, headers: said = {}, body: text = "null" } = await handler(event, { getRemainingTimeInMillis: () => remainingMs });
  return { status: statusCode, headers: said, body: JSON.parse(text) as unknown };
}
