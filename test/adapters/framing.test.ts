/** Every answer tells its length, so a connection serves any number of requests, and an answer that was cut off is not taken for a whole one. */
import { Agent, IncomingMessage, request as send, ServerResponse } from "node:http";
import { connect, Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { BufferedResponse } from "../../lib/adapters/node-http.js";
import { createLockClient, locked } from "../../lib/testing.js";
import { closingAfterEach } from "./app-server.js";
import { type Reply, FRAMEWORKS } from "./servers.js";

const open = closingAfterEach();

const ORDER = '{"product":"camera"}';
const REPLIES: Readonly<Record<string, Reply>> = {
  json: { status: 201, body: { id: 1 } },
  text: { body: "grün" },
  large: { body: "x".repeat(100_000) },
  empty: { status: 201 },
  nothing: { status: 204 },
  moved: { status: 303, headers: { location: "/orders/1" } },
};

describe.each(FRAMEWORKS)("$name", ({ serve }) => {
  async function served() {
    const locks = createLockClient();
    const pay = locked({ locks, key: () => "ORDER_7", whenHeld: "throw" }, async (): Promise<Reply> => ({ body: "paid" }));
    await locks.acquire("ORDER_7");
    const application = (name: string) => (name === "pay" ? pay() : REPLIES[name]!);
    const server = open(await serve({ locks, service: "shop", caller: "header", waitMs: 0 }, application));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    open({ close: async () => agent.destroy() });
    let connections = 0;
    const post = async (path: string, key: string | undefined, body = ORDER) => {
      const headers = { "content-type": "application/json", "x-user": "ann", ...(key !== undefined && { "idempotency-key": key }) };
      const request = send(server.url + path, {
        method: "POST",
        agent,
        headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
      });
      request.end(body);
      const response = await new Promise<IncomingMessage>((resolve, reject) => request.on("response", resolve).on("error", reject));
      if (!request.reusedSocket) connections++;
      const chunks: Buffer[] = [];
      for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
      return { status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(chunks).length };
    };
    return { server, post, connections: () => connections };
  }

  it("tells the length of each replay and of each refusal, all on one connection", async () => {
    const { post, connections } = await served();
    const asked = Object.keys(REPLIES).flatMap((name) => [1, 2, 3].map(() => [`/idempotent/${name}`, name] as const));
    const refused = [
      ["/idempotent/json", "json", "{}"],
      ["/idempotent/json", undefined],
      ["/idempotent/pay", "pay"],
      ["/free/pay", "pay"],
    ] as const;
    const statuses: number[] = [];
    for (const [path, key, body] of [...asked, ...refused]) {
      const { status, headers, bytes } = await post(path, key, body);
      statuses.push(status);
      if (status === 204) expect([path, headers["content-length"], headers["transfer-encoding"]]).toEqual([path, undefined, undefined]);
      else
        expect([path, headers["content-length"] ?? headers["transfer-encoding"]]).toEqual([
          path,
          headers["transfer-encoding"] ?? String(bytes),
        ]);
      expect([path, headers.connection]).toEqual([path, "keep-alive"]);
    }
    expect(statuses.slice(-4)).toEqual([422, 400, 423, 423]);
    expect(connections()).toBe(1);
  });

  it("answers all of three requests that come one after another without waiting", async () => {
    const { server, post } = await served();
    await post("/idempotent/json", "form-1");
    const { hostname, port } = new URL(server.url);
    const headers = [
      "host: localhost",
      "content-type: application/json",
      "x-user: ann",
      "idempotency-key: form-1",
      `content-length: ${ORDER.length}`,
    ];
    const one = (last: string) =>
      `POST /idempotent/json HTTP/1.1\r\n${[...headers, ...(last === "" ? [] : [last])].join("\r\n")}\r\n\r\n${ORDER}`;
    const socket = connect(Number(port), hostname);
    socket.write(one("") + one("") + one("connection: close"));
    const chunks: Buffer[] = [];
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
    expect(
      Buffer.concat(chunks)
        .toString()
        .match(/HTTP\/1\.1 201 /g),
    ).toHaveLength(3);
  });
});

it("a body is held in as many steps for each part of it, however many came before", () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  new BufferedResponse(response);
  response.setHeader("content-length", 1000);
  const lengths = vi.spyOn(Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array, "length", "get");
  const steps = Array.from({ length: 1000 }, () => {
    lengths.mockClear();
    response.write("x");
    return lengths.mock.calls.length;
  });
  lengths.mockRestore();
  expect([steps.length, Math.max(...steps) <= 10]).toEqual([1000, true]);
});
