/**
 * The whole service on loopback: real requests, the local gateway, the real handler, and its own table on the engine.
 * All of it shares one clock, which the test advances.
 */
import { compose } from "../../lambda/compose.js";
import type { LogLine } from "../../lib/service/log.js";
import { matchRoute } from "../../lambda/match-route.js";
import { startGateway } from "../../infra/local/gateway.js";
import { freshTable } from "./engine.js";
import { PausingClock } from "./pausing-clock.js";
import { type Reply, checkReply, replyFrom } from "./reply.js";

/** The options of a request. */
export interface RequestParts {
  /** Text is sent unchanged, everything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The caller. @default "local" */
  readonly as?: string | undefined;
}

/** A running service. */
export interface HttpService {
  readonly url: string;
  readonly clock: PausingClock;
  readonly lines: readonly LogLine[];
  /** Sends a request and checks the guarantees for every reply. */
  send(method: string, path: string, parts?: RequestParts): Promise<Reply>;
  close(): Promise<void>;
}

/** Serves on a free port. */
export async function serve(): Promise<HttpService> {
  const clock = new PausingClock();
  const lines: LogLine[] = [];
  const { env } = await freshTable();
  const handler = compose(env, { clock, log: (line) => void lines.push(line) });
  const gateway = await startGateway({ handler, port: 0, clock });
  return {
    url: gateway.url,
    clock,
    lines,
    async send(method, path, { body, headers = {}, as } = {}) {
      const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
      const response = await fetch(gateway.url + path, {
        method,
        headers: {
          ...(text !== undefined && { "content-type": "application/json" }),
          ...(as !== undefined && { "x-holdfast-principal": as }),
          ...headers,
        },
        ...(text !== undefined && { body: text }),
      });
      const reply = replyFrom(response.status, Object.fromEntries(response.headers), await response.text());
      const routeKey = matchRoute(method, path.split("?", 1)[0] ?? "")?.routeKey ?? "$default";
      checkReply(routeKey, reply, `${path} ${text ?? ""}`);
      return reply;
    },
    close: () => gateway.close(),
  };
}
