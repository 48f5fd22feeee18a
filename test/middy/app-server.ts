/** An application's own API on loopback: an HTTP server that passes each request to a Lambda handler, as an HTTP API does. */
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { HttpAnswer } from "../../lib/middy.js";
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
      const requestContext = { http: { method: request.method ?? "" } };
      const body = Buffer.concat(chunks).toString("utf8");
      const event: RequestV2 = {
        version: "2.0",
        rawPath: request.url ?? "",
        rawQueryString: "",
        headers,
        body,
        isBase64Encoded: false,
        requestContext,
      };
      const answer = await handler(event, { getRemainingTimeInMillis: () => 29_000 }).catch(() => ({
        statusCode: 500,
        headers: {},
        body: "",
      }));
      const { statusCode, headers: answered = {}, body: text = "" } = answer as Partial<HttpAnswer>;
      response.writeHead(statusCode ?? 200, answered).end(text);
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
