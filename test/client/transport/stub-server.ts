/** An HTTP server on loopback that responds as scripted, and records its requests. */
import { once } from "node:events";
import { type IncomingHttpHeaders, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A received request. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A scripted response. `broken`: the connection ends without a response; `cut`: in the middle of the response. */
export interface Scripted {
  readonly status: number | "broken" | "cut" | "silent";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A running server. */
export interface StubServer {
  readonly url: string;
  readonly received: readonly Received[];
  /** Sets the response to all further requests, or how each is made from its request. */
  answer(scripted: Scripted | ((request: Received) => Scripted)): void;
  /** Forgets the requests that were received. */
  forget(): void;
  close(): Promise<void>;
}

export async function startStubServer(): Promise<StubServer> {
  const received: Received[] = [];
  let respond: (request: Received) => Scripted = () => ({ status: 500 });
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const asked = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
      received.push(asked);
      const { status, headers = {}, body: answer } = respond(asked);
      if (status === "silent") return;
      if (status === "broken") return request.socket.destroy();
      if (status === "cut") {
        response.writeHead(200, { "content-length": "1000" });
        return response.write("{", () => request.socket.destroy());
      }
      response.writeHead(status, headers).end(answer === undefined || typeof answer === "string" ? answer : JSON.stringify(answer));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answer: (next) => void (respond = typeof next === "function" ? next : () => next),
    forget: () => void (received.length = 0),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
