/** Requests as Express, Fastify and Nest hand them to a route: the parts that key and fingerprint are made of, and the service of one. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { InvalidRequestError } from "../client/errors.js";
import type { IdempotentOptions, RequestParts, Serve } from "../web/idempotent.js";
import { hold, sendAnswer } from "./held-response.js";

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

/** Returns the parts of `request`. A body that is not wholly in `request.body` is an error: different bodies would be equal. */
export function partsOf(request: NodeRequest): RequestParts {
  const { method = "", originalUrl, url = "/", headers } = request;
  return {
    method,
    url: originalUrl ?? url,
    pattern: patternOf(request),
    idempotencyKey: headers["idempotency-key"] as string | undefined,
    body() {
      const { body } = request;
      const type = headers["content-type"];
      // Parsers of forms with files, such as multer, leave their fields alone in the body.
      if (type !== undefined && /^multipart\//i.test(type))
        throw new InvalidRequestError(`body: ${type.split(";", 1)[0]} can have files, which fingerprint must cover`, "body");
      if (body === undefined && (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0))
        throw new InvalidRequestError(`body: no parser took ${type ?? "it"}; use one before this, or give fingerprint`, "body");
      return body ?? undefined;
    },
  };
}

/** Returns the pattern of a request's route. Express has a list or an expression where a route has several. */
function patternOf({ route, routeOptions }: NodeRequest): string | undefined {
  const told: unknown = routeOptions?.url ?? (route as { readonly path?: unknown } | undefined)?.path;
  return typeof told === "string" ? told : undefined;
}

/**
 * Serves a request whose route begins with `route` and ends with the response. Resolves when the answer is on its way.
 * @param replyAnyway makes the framework end the response of a request whose route is not called; its answer is sent then. @default none:
 *   the answer is sent at once
 */
export async function serveHeld<Request extends NodeRequest>(
  serve: Serve<Request>,
  request: Request,
  response: ServerResponse,
  { replayHeaders }: Pick<IdempotentOptions<Request>, "replayHeaders">,
  route: () => void,
  replyAnyway?: () => void,
): Promise<void> {
  let held: ReturnType<typeof hold> | undefined;
  const settled = await serve(request, partsOf(request), () => {
    held = hold(response, replayHeaders);
    route();
    return held.made;
  });
  if (settled.how === "made") held?.release();
  else if (!held && !replyAnyway) sendAnswer(response, settled.answer);
  else {
    (held ?? hold(response)).replace(settled.answer);
    if (!held) replyAnyway?.();
  }
}
