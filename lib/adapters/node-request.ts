/** Requests as Express, Fastify and Nest hand them to a route, and the service of one: its response is held until it is recorded. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { InvalidRequestError } from "../client/errors.js";
import type { Holds } from "./held-response.js";
import { HeldResponse, sendAnswer } from "./held-response.js";
import type { RequestParts } from "./request.js";
import type { StoredResponse } from "./response.js";
import type { IdempotentOptions, Serve } from "./route.js";
import { partsFrom } from "./route.js";

/** The fields of a request that are read here. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly originalUrl?: string | undefined;
  /** The route of Express, whose own type is `any`: `{ path }`. */
  readonly route?: unknown;
  /** The route of Fastify. */
  readonly routeOptions?: { readonly url?: string | undefined } | undefined;
  readonly headers: IncomingHttpHeaders;
  /** The body as a parser left it. */
  readonly body?: unknown;
}

/** Returns the parts of `request`. */
export function partsOf(request: NodeRequest): RequestParts {
  const { method = "", originalUrl, url = "/", headers, route, routeOptions } = request;
  // Express has a list or an expression where a route has several patterns.
  const pattern: unknown = routeOptions?.url ?? (route as { readonly path?: unknown } | undefined)?.path;
  return partsFrom(originalUrl ?? url, {
    method,
    pattern: typeof pattern === "string" ? pattern : undefined,
    idempotencyKey: headers["idempotency-key"] as string | undefined,
    readBody: () => bodyOf(request),
  });
}

/** @throws InvalidRequestError if the body is not wholly in `request.body`: different bodies would be equal. */
function bodyOf({ body, headers }: NodeRequest): unknown {
  const type = headers["content-type"];
  // Parsers of forms with files, such as multer, leave their fields alone in the body.
  if (type !== undefined && /^multipart\//i.test(type))
    throw new InvalidRequestError(`body: ${type.split(";", 1)[0]} can have files, which fingerprint must cover`, "body");
  if (body === undefined && (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0))
    throw new InvalidRequestError(`body: no parser took ${type ?? "it"}; use one before this, or give fingerprint`, "body");
  return body ?? undefined;
}

/** The way of a framework to answer a request. */
interface Replying {
  /** Starts the route, which ends with the response. */
  readonly route: () => void;
  /**
   * Makes the framework send `answer` to a request whose route is not called. Its hooks see it too, and what they do to its body is dropped:
   * they have done it to what was recorded. @default the answer is sent without the framework
   */
  readonly reply?: (answer: StoredResponse) => void;
  readonly holds?: Holds;
}

/** Serves a request. Resolves when the answer is on its way. */
export async function serveHeld<Request extends NodeRequest>(
  serve: Serve<Request>,
  request: Request,
  response: ServerResponse,
  { replayHeaders }: Pick<IdempotentOptions<Request>, "replayHeaders">,
  { route, reply, holds }: Replying,
): Promise<void> {
  let held: HeldResponse | undefined;
  const answer = await serve(request, partsOf(request), () => {
    held = new HeldResponse(response, replayHeaders, holds);
    route();
    return held.made;
  });
  if (!answer) held?.release();
  else if (held) held.replace(answer);
  else if (!reply) sendAnswer(response, answer);
  else {
    new HeldResponse(response, undefined, () => true).replace(answer);
    reply(answer);
  }
}
