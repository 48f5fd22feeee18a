/** A server in front of an engine that lets the engine carry out a request, and then responds with a failure. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A running server. */
export interface LateFailures {
  readonly endpoint: string;
  /** Lets the next `times` writes with this condition be carried out, and answers them with a 500. */
  failNext(condition: (expression: string) => boolean, times: number): void;
  close(): Promise<void>;
}

const FAILURE = JSON.stringify({ __type: "com.amazonaws.dynamodb.v20120810#InternalServerError", message: "Carried out all the same" });
/** The headers that the proxy passes on unchanged. */
const HEADERS = ["authorization", "content-type", "x-amz-date", "x-amz-target", "x-amz-content-sha256"] as const;

/** Starts a server. */
export async function startLateFailures(target: string): Promise<LateFailures> {
  let meets: (expression: string) => boolean = () => false;
  let left = 0;
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const body = await text(incoming);
      const headers = Object.fromEntries(HEADERS.map((name) => [name, String(incoming.headers[name] ?? "")]));
      const { ConditionExpression: expression = "" } = JSON.parse(body) as { ConditionExpression?: string };
      const fails = left > 0 && expression !== "" && meets(expression);
      if (fails) left--;
      const reply = await fetch(target, { method: "POST", headers, body });
      const answer = await reply.text();
      outgoing.writeHead(fails ? 500 : reply.status, { "content-type": "application/x-amz-json-1.0" }).end(fails ? FAILURE : answer);
    })().catch(() => outgoing.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    failNext(condition, times) {
      meets = condition;
      left = times;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
