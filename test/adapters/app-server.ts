/** An application's own API on loopback: an HTTP server that passes each request to a Lambda handler, as an HTTP API does. */
import { once } from "node:events";
import { type RequestListener, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach } from "vitest";
import type { HttpAnswer } from "../../lib/middy.js";
import type { TestLockClient } from "../../lib/testing.js";
import type { RequestV2 } from "./events.js";

/** A running server. */
export interface AppServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves on a free port. A handler that throws gives a 500. */
export async function serveApp(handler: (event: RequestV2, context: object) => Promise<unknown>): Promise<AppServer> {
  return listening((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      const { pathname, search } = new URL(request.url ?? "", "http://localhost");
      const event: RequestV2 = {
        version: "2.0",
        rawPath: pathname,
        rawQueryString: search.slice(1),
        headers,
        body: Buffer.concat(chunks).toString("utf8"),
        isBase64Encoded: false,
        requestContext: { http: { method: request.method ?? "" } },
      };
      const failed = () => ({ statusCode: 500 });
      const answer = await handler(event, { getRemainingTimeInMillis: () => 29_000 }).catch(failed);
      const {
        statusCode,
        headers: answered = {},
        body: text = "",
        isBase64Encoded,
      } = answer as Partial<HttpAnswer & { isBase64Encoded: true }>;
      response.writeHead(statusCode ?? 200, answered).end(isBase64Encoded ? Buffer.from(text, "base64") : text);
    })();
  });
}

/** Serves on a free port of loopback. */
export async function listening(listener: RequestListener): Promise<AppServer> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Returns the function that closes a server after the test that opened it. Called once by a file. */
export function closingAfterEach(): <Server extends { close(): Promise<void> }>(server: Server) => Server {
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
  });
  return (server) => {
    open.push(server);
    return server;
  };
}

/** Turns of the event loop after which a pending request fails the test. */
const MOST_TURNS = 20_000;
const STEP_MS = 50;

/** Lets the client's time pass until `asked` settles. */
export async function answered<T>({ clock }: TestLockClient, asked: Promise<T>): Promise<T> {
  let done = false as boolean;
  const mark = (): void => void (done = true);
  asked.then(mark, mark);
  for (let turns = 0; !done && turns < MOST_TURNS; turns++) {
    await turn();
    await clock.advance(STEP_MS);
  }
  return asked;
}

/** A request with a key. */
export const ASKED = { method: "POST", headers: { "idempotency-key": "form-1", "x-user": "ann" } };

export function replayed({ headers }: Response): string | null {
  return headers.get("idempotent-replayed");
}
