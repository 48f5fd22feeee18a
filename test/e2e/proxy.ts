/** A proxy on loopback for mistakes that a fetch can't simulate: in the case of headers, and in connections. */
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** The proxy's mistakes. */
export interface ProxyMistakes {
  /** Drops the headers that aren't written in lower case. */
  readonly knowsOnlyLowerCase?: boolean;
  /** Closes the connection after every response. */
  readonly closesConnections?: boolean;
}

/** A running proxy. */
export interface Proxy {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a proxy in front of `target`, a base URL, on a free port. */
export async function startProxy(
  target: string,
  { knowsOnlyLowerCase = false, closesConnections = false }: ProxyMistakes = {},
): Promise<Proxy> {
  async function pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(incoming);
    const { rawHeaders, method, url = "/" } = incoming;
    const headers: Record<string, string> = {};
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] ?? "";
      const isHop = ["host", "connection", "content-length", "transfer-encoding"].includes(name.toLowerCase());
      if (!isHop && (!knowsOnlyLowerCase || name === name.toLowerCase())) headers[name] = rawHeaders[at + 1] ?? "";
    }
    const outgoing = httpRequest(target + url, {
      method,
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      agent: false,
    });
    outgoing.end(body);
    const [reply] = (await once(outgoing, "response")) as [IncomingMessage];
    const { connection: _theirs, "keep-alive": _too, "transfer-encoding": _framing, ...told } = reply.headers;
    const answer = await text(reply);
    response.writeHead(reply.statusCode ?? 502, { ...told, ...(closesConnections && { connection: "close" }) }).end(answer);
  }
  const server = createServer((incoming, response) => void pass(incoming, response).catch(() => incoming.socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
