/**
 * Converts API Gateway's events (payload format 2.0) to requests, and responses to its results. The caller's identity
 * comes from the authorizer, never from a header. This is the only file that knows the gateway. It also maps a busy
 * order, a lost lock and a missing key to HTTP statuses.
 */
import type { APIGatewayProxyEventV2WithJWTAuthorizer, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import type { InvocationContext } from "../../lib/index.js";
import { InvalidRequestError, LockError, LockLostError, LockTimeoutError, LockUnavailableError } from "../../lib/index.js";
import { CrowdedError, OvertakenError } from "./orders-table.js";
import { badField, noSuchOrder, Refusal } from "./refusal.js";
import type { Answer, Request, Routes, Shop } from "./shop.js";

/** The part of the event that is read here. */
export type Event = Pick<APIGatewayProxyEventV2WithJWTAuthorizer, "routeKey" | "headers"> &
  Partial<Pick<APIGatewayProxyEventV2WithJWTAuthorizer, "pathParameters" | "queryStringParameters" | "body" | "isBase64Encoded">> & {
    readonly requestContext: { readonly authorizer?: { readonly jwt: { readonly claims: Readonly<Record<string, unknown>> } } };
  };

/** The function that Lambda calls. */
export type Handler = (event: Event, context: InvocationContext) => Promise<APIGatewayProxyStructuredResultV2>;

const MAX_BODY_CHARS = 16_384;
const ORDER_ID = /^[a-z0-9-]{1,40}$/;

/** Creates the function that serves `routes`. */
export function handlerFor(routes: Routes, shop: Shop): Handler {
  return async (event, context) => {
    // Waits for a busy order at most for the invocation's remaining time, and releases everything at its end.
    await using locks = shop.locks.forInvocation(context);
    const operation = Object.hasOwn(routes, event.routeKey) ? routes[event.routeKey] : undefined;
    const { status, body, headers } = await answered(async () => {
      if (!operation) throw new Refusal(404, "not-found", `there is no ${event.routeKey}`);
      return operation({ ...shop, locks }, requestOf(event));
    });
    return { statusCode: status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
  };
}

function requestOf({ headers, pathParameters, queryStringParameters, requestContext, ...event }: Event): Request {
  const who = requestContext.authorizer?.jwt.claims["sub"];
  if (typeof who !== "string" || who === "") throw new Refusal(401, "unauthenticated", "the request has no subject");
  const { order = "" } = pathParameters ?? {};
  if (pathParameters?.["order"] !== undefined && !ORDER_ID.test(order)) throw noSuchOrder(order);
  return { who, order, query: queryStringParameters ?? {}, headers, body: bodyOf(event) };
}

function bodyOf({ body, isBase64Encoded = false }: Pick<Event, "body" | "isBase64Encoded">): unknown {
  if (body === undefined || body === "") return undefined;
  const text = isBase64Encoded ? Buffer.from(body, "base64").toString("utf8") : body;
  if (text.length > MAX_BODY_CHARS) throw badField("body", `must be at most ${MAX_BODY_CHARS} characters`);
  try {
    return JSON.parse(text);
  } catch {
    throw badField("body", "must be JSON");
  }
}

/** Returns the result of `work`, or the HTTP response for its error. Unexpected errors are rethrown and become the gateway's 500. */
async function answered(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    const answer = answerTo(error);
    if (!answer) throw error;
    return answer;
  }
}

function answerTo(error: unknown): Answer | undefined {
  if (error instanceof Refusal) return error.answer;
  if (error instanceof InvalidRequestError) return new Refusal(400, "bad-request", error.message, { field: error.field }).answer;
  if (error instanceof OvertakenError || error instanceof LockLostError)
    return later(503, "unknown", "it took too long: look at the order before you try again");
  if (error instanceof CrowdedError) return later(423, "busy", error.message);
  if (!(error instanceof LockError)) return undefined;
  if (error.code === "fingerprint-mismatch")
    return new Refusal(422, "key-reused", "this Idempotency-Key was used for something else").answer;
  if (error instanceof LockTimeoutError) return later(423, "busy", "another request is at this just now", error);
  if (error instanceof LockUnavailableError) return later(503, "unavailable", "no lock can be had just now", error);
  return undefined;
}

function later(
  status: number,
  error: string,
  detail: string,
  { retryAfterMs = 1000 }: Pick<Partial<LockError>, "retryAfterMs"> = {},
): Answer {
  const headers = { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) };
  return { ...new Refusal(status, error, detail).answer, headers };
}
