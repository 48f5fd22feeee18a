/** The handler behind a gateway in this process, as `fetch`: its requests need no port, and arrive on the clock of a test. */
import { matchRoute } from "../../lambda/match-route.js";
import type { createHandler } from "../../lambda/handler.js";
import type { Clock } from "../../lib/core/time.js";
import { httpEvent } from "./http-event.js";

/** Returns a `fetch` that the handler answers. */
export function fetchFrom(handler: ReturnType<typeof createHandler>, clock: Clock): typeof fetch {
  return async (url, { method = "", headers, body } = {}) => {
    const { routeKey = "", pathParameters } = matchRoute(method, new URL(url as string).pathname) ?? {};
    const event = httpEvent(routeKey, { timeEpoch: clock.wallMs(), headers: headers as Record<string, string>, ...(body && { body }) });
    const answer = await handler({ ...event, ...(pathParameters && { pathParameters: { ...pathParameters } }) });
    return new Response(answer.body || null, { status: answer.statusCode, headers: (answer.headers ?? {}) as Record<string, string> });
  };
}
