/** A DynamoDB on loopback that treats each request as a test scripts it, and records the requests. */
import { once } from "node:events";
import { type IncomingHttpHeaders, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** The treatment of one request. */
export type Step =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  /** The connection breaks before an answer or in the middle of it, or there is no response at all. */
  | "reset"
  | "cut"
  | "silent";

/** A request as it arrived. */
export interface Asked {
  readonly operation: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The request's number on its connection, from 1. */
  readonly ofConnection: number;
}

/** A running scripted table. */
export interface ScriptedTable {
  readonly endpoint: string;
  readonly asked: Asked[];
  /** Sets the steps for the next requests, in order. The last step is repeated. */
  script(...steps: readonly Step[]): void;
  close(): Promise<void>;
}

export async function startScriptedTable(): Promise<ScriptedTable> {
  const asked: Asked[] = [];
  const requestsOf = new WeakMap<object, number>();
  let steps: readonly Step[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const ofConnection = (requestsOf.get(request.socket) ?? 0) + 1;
      requestsOf.set(request.socket, ofConnection);
      asked.push({
        operation: String(request.headers["x-amz-target"]).split(".").at(-1) ?? "",
        headers: request.headers,
        body,
        ofConnection,
      });
      const [step = { status: 200, body: {} }, ...later] = steps;
      if (later.length > 0) steps = later;
      if (step === "silent") return;
      if (step === "reset") return request.socket.destroy();
      if (step === "cut") {
        response.writeHead(200, { "content-length": "1000" });
        return response.write("{", () => request.socket.destroy());
      }
      const { status, body: answer = "", headers = {} } = step;
      response.writeHead(status, { "content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "R1", ...headers });
      response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    script(...next) {
      asked.length = 0;
      steps = next;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
