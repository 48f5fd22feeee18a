/**
 * A service that plays a script: a real one on loopback, behind a server that answers some requests in its place, late, changed or not at
 * all. It keeps what was sent, and until when each lease was proven to be held.
 */
import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { startLocalService } from "../../infra/local/local-service.js";
import { matchRoute } from "../../lambda/match-route.js";
import { operationAt } from "../../lambda/routes.js";
import type { OperationName } from "../../lib/contract/routes.js";

/** An answer of HTTP. A body that isn't text is JSON. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** The fate of a request, in place of the service's own answer. */
export type Fate =
  /** This is the answer. The service never gets the request, or gets it so much later. */
  | { readonly does: "answer"; readonly answer: HttpAnswer; readonly carriedOutAfterMs?: number }
  /** The service carries it out; the answer is changed so. */
  | { readonly does: "change"; readonly to: (honest: HttpAnswer) => HttpAnswer }
  /** The service carries it out, and its answer arrives so much later. */
  | { readonly does: "answer-late"; readonly byMs: number }
  /** The service gets it so much later, as one that holds a request open. */
  | { readonly does: "hold"; readonly forMs: number }
  /** The client gets these bytes in place of HTTP, then the end of the connection. @param carriedOut if the service gets the request first */
  | { readonly does: "bytes"; readonly bytes: string; readonly carriedOut?: boolean }
  /** The connection is cut, before or after the service carried the request out. */
  | { readonly does: "cut"; readonly carriedOut: boolean }
  /** Nothing comes, and the connection stays open. */
  | { readonly does: "silence" };

/** The requests that have a fate: from the `from`th of these operations on, `times` of them. */
export interface Rule {
  readonly on: OperationName | readonly OperationName[];
  /** @default 1 */
  readonly from?: number;
  /** @default every one from there on */
  readonly times?: number;
  readonly fate: Fate;
}

/** A request, and what became of it. Times are of this process's monotonic clock, in ms. */
export interface Exchange {
  readonly operation: OperationName | "unknown";
  readonly method: string;
  /** As it was sent, with the query. */
  readonly path: string;
  /** The key; the keys of a set with commas between them. */
  readonly key: string | undefined;
  readonly leaseId: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly receivedMs: number;
  /** The service's own answer, if it got the request. */
  honest?: HttpAnswer;
  /** The status that the client got; 0 for none. */
  status?: number;
}

/** A running one. */
export interface ScriptedService {
  readonly url: string;
  /** In the order in which they came. */
  readonly exchanges: readonly Exchange[];
  /** Until when the service itself would give the lease of the key to nobody else; 0 if it isn't held. */
  provenUntilMs(key: string): number;
  /** Sends a request straight to the service, as another client. */
  other(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<HttpAnswer>;
  /** Refuses every connection from now on. */
  vanish(): void;
  close(): Promise<void>;
}

/** One result of a batch of renewals. */
interface Renewed {
  readonly key: string;
  readonly leaseId: string;
  readonly status: number;
  readonly remainingMs?: number;
}

/** A renewal within a batch. */
const BATCHED = { operation: "renew", method: "POST", path: "", headers: {}, body: undefined, receivedMs: 0 } as const;

/** Starts it with these rules: of those that match a request, the first counts. */
// Over 60 lines: its parts share what was sent.
export async function startScripted(rules: readonly Rule[]): Promise<ScriptedService> {
  const honest = await startLocalService({ ports: [0], log: () => undefined, onFailure: () => undefined });
  const exchanges: Exchange[] = [];
  const proven = new Map<string, { readonly leaseId: string; readonly untilMs: number }>();
  const counts = new Map<Rule, number>();

  const forward = async (exchange: Exchange, raw: Buffer, headers: IncomingHttpHeaders): Promise<HttpAnswer> => {
    const answer = await send(honest.url + exchange.path, exchange.method, headers, raw);
    exchange.honest = answer;
    learn(exchange, answer);
    return answer;
  };

  function learn({ operation, key = "", leaseId = "" }: Exchange, { status, body }: HttpAnswer): void {
    const { remainingMs, results = [] } = (body ?? {}) as { readonly remainingMs?: number; readonly results?: readonly Renewed[] };
    for (const one of results) learn({ ...BATCHED, key: one.key, leaseId: one.leaseId }, { status: one.status, body: one });
    const ends = operation === "release" || operation === "releaseSet" || operation === "complete" || operation === "abandonRun";
    if (remainingMs !== undefined && status < 300) proven.set(key, { leaseId, untilMs: performance.now() + remainingMs });
    else if (((ends && status < 300) || status === 410) && proven.get(key)?.leaseId === leaseId) proven.delete(key);
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const receivedMs = performance.now();
    const raw = await buffer(request);
    const exchange = { ...exchangeOf(request, raw), receivedMs };
    exchanges.push(exchange);
    const fate = fateOf(exchange.operation);
    const reply = (answer: HttpAnswer): void => {
      exchange.status = answer.status;
      write(response, answer, `http://localhost:${(server.address() as AddressInfo).port}`);
    };
    const ask = (): Promise<HttpAnswer> => forward(exchange, raw, request.headers);
    switch (fate?.does) {
      case undefined:
        return void reply(await ask());
      case "answer":
        if (fate.carriedOutAfterMs === undefined) return void reply(fate.answer);
        write(response, fate.answer, "");
        await delay(fate.carriedOutAfterMs);
        await ask();
        // Only now is it over.
        exchange.status = fate.answer.status;
        return;
      case "change":
        return void reply(fate.to(await ask()));
      case "answer-late": {
        const answer = await ask();
        await delay(fate.byMs);
        return void reply(answer);
      }
      case "hold":
        await delay(fate.forMs);
        return void reply(await ask());
      case "bytes":
        if (fate.carriedOut) await ask();
        exchange.status = 0;
        return void request.socket.end(fate.bytes);
      case "cut":
        if (fate.carriedOut) await ask();
        exchange.status = 0;
        return void request.socket.destroy();
      case "silence":
        exchange.status = 0;
    }
  }

  function fateOf(operation: Exchange["operation"]): Fate | undefined {
    let chosen: Fate | undefined;
    for (const rule of rules) {
      if (operation === "unknown" || ![rule.on].flat().includes(operation)) continue;
      const count = (counts.get(rule) ?? 0) + 1;
      counts.set(rule, count);
      const { from = 1, times = Number.POSITIVE_INFINITY } = rule;
      if (count >= from && count < from + times) chosen ??= rule.fate;
    }
    return chosen;
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy());
  });
  const vanish = (): void => {
    server.closeAllConnections();
    server.close();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    provenUntilMs: (key) => proven.get(key)?.untilMs ?? 0,
    other: (method, path, body, headers = {}) =>
      send(
        honest.url + path,
        method,
        { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
        Buffer.from(body === undefined ? "" : JSON.stringify(body)),
      ),
    vanish,
    async close() {
      vanish();
      await honest.close();
    },
  };
}

function exchangeOf({ method = "", url = "", headers }: IncomingMessage, raw: Buffer): Omit<Exchange, "receivedMs"> {
  const match = matchRoute(method, url.split("?", 1)[0] ?? "");
  const operation = operationAt(match?.routeKey ?? "") ?? "unknown";
  const { key, leaseId } = match?.pathParameters ?? {};
  const body = parsed(raw.toString());
  return { operation, method, path: url, key: key ?? keysOf(body), leaseId, headers, body };
}

/** Returns the keys of a set, as the commands name them. */
function keysOf(body: unknown): string | undefined {
  const { keys, locks } = (body ?? {}) as { readonly keys?: readonly string[]; readonly locks?: readonly { readonly key: string }[] };
  return (keys ?? locks?.map(({ key }) => key))?.join(",");
}

function parsed(json: string): unknown {
  try {
    return json === "" ? undefined : JSON.parse(json);
  } catch {
    return json;
  }
}

async function send(url: string, method: string, headers: IncomingHttpHeaders, raw: Buffer): Promise<HttpAnswer> {
  const { host: _host, connection: _connection, ...rest } = headers;
  const sent = httpRequest(url, { method, headers: rest, agent: false });
  sent.end(raw);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const { "transfer-encoding": _te, "content-length": _cl, connection: _c, ...received } = response.headers;
  return { status: response.statusCode ?? 0, headers: received as Record<string, string>, body: parsed(await text(response)) };
}

/** Writes an answer. @param elsewhere stands for `{elsewhere}` in a header: this server, by another name */
function write(response: ServerResponse, { status, headers = {}, body }: HttpAnswer, elsewhere: string): void {
  const content = body === undefined || typeof body === "string" ? (body ?? "") : JSON.stringify(body);
  const type = typeof body === "object" && headers["content-type"] === undefined ? { "content-type": "application/json" } : {};
  const sent = Object.entries({ ...type, ...headers }).map(([name, value]) => [name, value.replace("{elsewhere}", elsewhere)]);
  response.writeHead(status, Object.fromEntries(sent) as Record<string, string>);
  response.end(content);
}
