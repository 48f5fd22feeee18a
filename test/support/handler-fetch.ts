/** The handler behind a gateway in this process, as `fetch`: its requests need no port, and arrive on the clock of a test. */
import { matchRoute } from "../../lambda/match-route.js";
import type { createHandler } from "../../lambda/handler.js";
import type { Clock } from "../../lib/core/time.js";
import { type EventParts, httpEvent } from "./http-event.js";

/**
 * Returns a `fetch` that the handler answers.
 * @param parts parts of each event in place of the usual ones
 */
export function fetchFrom(handler: ReturnType<typeof createHandler>, clock: Clock, parts: Partial<EventParts> = {}): typeof fetch {
  return async (url, { method = "", headers, body } = {}) => {
    const { pathname, searchParams } = new URL(url as string);
    const { routeKey = "", pathParameters } = matchRoute(method, pathname) ?? {};
    const event = httpEvent(routeKey, {
      timeEpoch: clock.wallMs(),
      headers: headers as Record<string, string>,
      rawPath: pathname,
      ...(body && { body }),
      ...(searchParams.size > 0 && { query: Object.fromEntries(searchParams) }),
      ...parts,
    });
    const answer = await handler({ ...event, ...(pathParameters && { pathParameters: { ...pathParameters } }) });
    return new Response(answer.body || null, { status: answer.statusCode, headers: (answer.headers ?? {}) as Record<string, string> });
  };
}
