/** The server before everything on localhost: the requests that it refuses, and what a failure or a malformed request does to it. */
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { consoleOf } from "../../../console/server.js";
import { type LocalServerOptions, type Serve, createLocalServer } from "../../../infra/local/local-server.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Serves on a free port. Answers 204 by default. */
async function serve(handler: Serve = (_request, response) => void response.writeHead(204).end(), options: LocalServerOptions = {}) {
  const server = createLocalServer(handler, options).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Sends the lines of a request as they are, and returns the status and the body of the answer. */
async function send(port: number, lines: readonly string[], body = ""): Promise<readonly [status: number, body: string]> {
  const socket = connect(port, "127.0.0.1");
  socket.end(`${lines.join("\r\n")}\r\nConnection: close\r\n\r\n${body}`);
  const answer = await text(socket);
  return [Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]), answer.split("\r\n\r\n").slice(1).join("\r\n\r\n")];
}

const statusOf = async (port: number, lines: readonly string[], body?: string): Promise<number> => (await send(port, lines, body))[0];

describe("a target", () => {
  it.each(["//", "//evil.example/console", "*", "http://127.0.0.1/console", "console", "?", "//[", "http://["])(
    "%s is a bad request, and the next request is answered",
    async (target) => {
      const port = await serve();
      expect(await statusOf(port, [`GET ${target} HTTP/1.1`, `Host: localhost:${port}`])).toBe(400);
      expect(await statusOf(port, ["GET / HTTP/1.1", `Host: localhost:${port}`])).toBe(204);
    },
  );

  it.each(["/\\", "/[", "/%zz", "/console/%E0%A4%A", "/console/api/locks?%zz=[", "/console//", "/?//[", "/x?//["])(
    "%s, which a URL parser may not take, gets an answer of the console or of what is behind it",
    async (target) => {
      const locks = { list: () => Promise.resolve({ items: [] }) } as never;
      const page = consoleOf({ locks, where: "here", canChange: false, pollMs: 1000, assets: () => Promise.resolve({}) });
      const port = await serve((request, response) => {
        if (!page(request, response)) response.writeHead(204).end();
      });
      expect([200, 204, 302, 404]).toContain(
        await statusOf(port, [`GET ${target} HTTP/1.1`, `Host: localhost:${port}`, "Accept: text/html"]),
      );
    },
  );
});

describe("a request of a web page", () => {
  const JSON_TYPE = "Content-Type: application/json";
  const HOST = "Host: localhost";

  const FOREIGN = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example:80",
    "evil.example:localhost",
    "[",
    "[::1].evil",
    ":80",
  ];
  it.each(FOREIGN)("by the name %s, which isn't this machine's, is refused", async (host) => {
    const [status, body] = await send(await serve(), ["GET /v1/locks HTTP/1.1", `Host: ${host}`]);
    expect(status).toBe(403);
    expect(JSON.parse(body)).toEqual({
      message: `Host: it must be one of localhost, 127.0.0.1, [::1], or be allowed (--allow-host, HOLDFAST_ALLOWED_HOSTS); was ${JSON.stringify(host)}`,
    });
  });

  it("without a name is refused", async () => {
    expect(await statusOf(await serve(), ["GET / HTTP/1.0"])).toBe(403);
  });

  it.each(["localhost", "LOCALHOST:1", "127.0.0.1:8787", "[::1]:8787", "[::1]", "box.test:9", "Box.Test"])(
    "control: by the name %s it is answered, where box.test is allowed",
    async (host) => {
      expect(await statusOf(await serve(undefined, { allowedHosts: ["box.TEST"] }), ["GET / HTTP/1.1", `Host: ${host}`])).toBe(204);
    },
  );

  it.each(["http://box.test", "box.test:80", "", "a b"])("can't be allowed by %j, which is no name", (name) => {
    expect(() => createLocalServer(() => undefined, { allowedHosts: [name] })).toThrow(
      `HOLDFAST_ALLOWED_HOSTS=${name} is not a host name: give it without scheme and port`,
    );
  });

  it.each(["GET", "POST", "PUT", "DELETE", "OPTIONS"])("of another site is refused, and %s is never carried out", async (method) => {
    let carriedOut = 0;
    const port = await serve((_request, response) => {
      carriedOut += 1;
      response.writeHead(204).end();
    });
    const lines = [`${method} /v1/runs/a/reset HTTP/1.1`, HOST];
    expect(await statusOf(port, [...lines, "Sec-Fetch-Site: cross-site"])).toBe(403);
    expect(carriedOut).toBe(0);
    for (const site of ["same-origin", "same-site", "none"])
      expect([site, await statusOf(port, [...lines, `Sec-Fetch-Site: ${site}`])]).toEqual([site, 204]);
    expect(carriedOut).toBe(3);
  });

  it("with a body of no type, as of a beacon, is refused; control: with a type it is answered", async () => {
    const port = await serve();
    const post = ["POST /v1/runs/a/reset HTTP/1.1", HOST];
    expect(await statusOf(port, [...post, "Content-Length: 2"], "{}")).toBe(415);
    expect(await statusOf(port, [...post, "Transfer-Encoding: chunked"], "2\r\n{}\r\n0\r\n\r\n")).toBe(415);
    expect(await statusOf(port, [...post, "Content-Length: 2", JSON_TYPE], "{}")).toBe(204);
    expect(await statusOf(port, [...post, "Content-Length: 0"])).toBe(204);
    expect(await statusOf(port, post)).toBe(204);
  });
});

describe("a failure", () => {
  const failing: readonly (readonly [string, Serve])[] = [
    [
      "thrown",
      () => {
        throw new Error("the secret of the handler");
      },
    ],
    ["rejected", () => Promise.reject(new Error("the secret of the handler"))],
    [
      "thrown after a header",
      (_request, response) => {
        response.setHeader("x-half", "1");
        throw new Error("the secret of the handler");
      },
    ],
  ];
  it.each(failing)("that is %s is a 500 that says nothing else, and is reported", async (_how, handler) => {
    const errors: unknown[] = [];
    const port = await serve(handler, { onError: (error) => errors.push(error) });
    expect(await send(port, ["GET / HTTP/1.1", "Host: localhost"])).toEqual([500, '{"message":"Internal Server Error"}']);
    expect(errors).toHaveLength(1);
  });

  it("in the middle of an answer ends the connection", async () => {
    const port = await serve(async (_request, response) => {
      await new Promise<void>((resolve) => void response.writeHead(200, { "content-length": 9 }).write("half", () => resolve()));
      throw new Error("no more");
    });
    expect(await send(port, ["GET / HTTP/1.1", "Host: localhost"])).toEqual([200, "half"]);
  });
});
