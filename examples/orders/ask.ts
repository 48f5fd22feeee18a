/** Requests on localhost, as API Gateway sends them to a function after authentication. */
import { BUYER } from "./buyer.js";
import { handlerFor } from "./http.js";
import { SELLER } from "./seller.js";
import type { Shop } from "./shop.js";

/** The parts of a request that can be set; the rest has defaults. */
export interface Asking {
  readonly as: string;
  readonly order?: string;
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The invocation's remaining time, which bounds the wait for an order (less a second). @default 20 000 */
  readonly remainingMs?: number;
}

/** The response. */
export interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // The operation's result.
  readonly body: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- read by people and tests
}

/** Calls the function that serves the route, as API Gateway does after authentication. */
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
