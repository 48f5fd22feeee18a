/** `holdfast ui`: the console over the caller's own client, with a secret per start, which one browser exchanges for a cookie. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Environment } from "./holdfast.js";
import { run, start } from "./in-process.js";
import type { ApiFailure } from "../../console/data.js";
import { startStubServer } from "../client/transport/stub-server.js";
import { type Service, serve } from "./service.js";

let service: Service;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

/** Starts it, and returns its address without the secret, the secret, and what it printed. */
async function ui(...options: readonly string[]) {
  return uiAt(service.env, ...options);
}

async function uiAt(env: Environment, ...options: readonly string[]) {
  const started = start(["ui", "--port", "0", ...options], env);
  const printed = await started.printed(/Ctrl-C|"event":"ready".*\n/);
  const [, origin = "", secret = ""] = /(http:\/\/127\.0\.0\.1:\d+)\/console#secret=([\w-]+)/.exec(printed) ?? [];
  const exchanged = await fetch(`${origin}/console/api/session`, {
    method: "POST",
    headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
    body: JSON.stringify({ secret }),
  });
  const [cookie = ""] = exchanged.headers.get("set-cookie")?.split(";") ?? [];
  const ask = (path: string, headers: Readonly<Record<string, string>> = { cookie }, init: RequestInit = {}) =>
    fetch(`${origin}/console${path}`, { ...init, headers: { ...headers, "content-type": "application/json" } });
  return { ...started, printed, origin, secret, cookie, ask };
}

describe("holdfast ui", () => {
  it("shows the locks to the browser that opened its address, and to nobody else, until a signal", async () => {
    await using _lease = await service.locks.acquire("ui:1");
    const { ask, secret, origin, printed, signal, ended } = await ui();
    expect(printed).toContain("It only reads; --allow-changes lets it break holds, and reset runs and limits.");
    expect(Buffer.from(secret, "base64url")).toHaveLength(24);
    expect(await (await ask("/api/locks?find=ui:")).json()).toMatchObject({ items: [{ key: "ui:1" }] });
    expect((await ask("/api/locks", {})).status).toBe(403);
    expect((await ask("")).headers.get("content-security-policy")).toContain("default-src 'none'");
    expect((await fetch(`${origin}/v1/locks`)).status).toBe(404);
    signal("SIGINT");
    expect(await ended).toMatchObject({ status: 0, stderr: "" });
    await expect(fetch(origin)).rejects.toThrow();
  });

  it("behind a list of services names all of them, and the one that answered", async () => {
    const { ask, printed, signal, ended } = await uiAt({ HOLDFAST_URL: `${service.url},http://127.0.0.1:1` });
    const { host } = new URL(service.url);
    expect(printed).toContain(`It shows ${host}, 127.0.0.1:1 with your credentials.`);
    expect(await (await ask("/api/about")).json()).toMatchObject({ where: `${host}, 127.0.0.1:1`, door: host });
    signal("SIGINT");
    await ended;
  });

  it("of a service that does not accept its credentials says what to do about them", async () => {
    const stranger = createServer((_request, response) => response.writeHead(401).end()).listen(0, "127.0.0.1");
    await once(stranger, "listening");
    const HOLDFAST_URL = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
    const { ask, signal, ended } = await uiAt({ HOLDFAST_URL, HOLDFAST_BEARER_TOKEN: "over" });
    const next = expect.stringMatching(/^Is the token over, .* HOLDFAST_BEARER_TOKEN is read once/) as string;
    expect(await (await ask("/api/locks")).json()).toMatchObject({ code: "not-configured", next });
    signal("SIGINT");
    await ended;
    stranger.close();
  });

  it.each([
    ["unavailable", 503, { status: 503 }],
    ["unavailable", 504, { status: 504 }],
    ["throttled", 429, { status: 429 }],
    ["not-configured", 401, { status: 401 }],
    ["no-answer", undefined, { status: 200, headers: { "content-type": "text/html" }, body: "<p>Hello</p>" }],
    ["no-answer", undefined, { status: 404, headers: { "content-type": "text/html" }, body: "<p>Not here</p>" }],
  ] as const)("tells at once, after one request, that a service fails, and its status: %s, %s, %j", async (code, status, scripted) => {
    const stub = await startStubServer();
    stub.answer(scripted);
    const { ask, signal, ended } = await uiAt({ HOLDFAST_URL: stub.url });
    const answer = await ask("/api/lock?key=k");
    const told = (await answer.json()) as ApiFailure;
    expect([answer.status, told.code, told.status]).toEqual([502, code, status]);
    expect(stub.received).toHaveLength(1);
    signal("SIGINT");
    await ended;
    await stub.close();
  });

  it("tells that nobody is at the address, and not that the credentials are wrong", async () => {
    const { url, close } = await startStubServer();
    await close();
    const { ask, signal, ended } = await uiAt({ HOLDFAST_URL: url });
    expect(await (await ask("/api/about")).json()).toMatchObject({
      code: "no-answer",
      next: expect.stringMatching(/^Start one/) as string,
    });
    signal("SIGINT");
    await ended;
  });

  it("makes changes only with --allow-changes", async () => {
    const lease = await service.locks.acquire("ui:2");
    const breaking = {
      method: "POST",
      body: JSON.stringify({ key: "ui:2", fencingToken: lease.fencingToken, reason: "gone", drainMs: 0 }),
    };
    const statuses = [];
    for (const options of [[], ["--allow-changes"]]) {
      const { ask, cookie, signal, ended } = await ui(...options);
      const answer = await ask("/api/break", { cookie, "sec-fetch-site": "same-origin" }, breaking);
      statuses.push(answer.status);
      signal("SIGTERM");
      await ended;
    }
    expect(statuses).toEqual([403, 200]);
    expect((await service.locks.inspect("ui:2")).holders).toEqual([]);
  });

  it("prints one line of JSON with --json, and makes another secret at each start", async () => {
    const secrets = new Set<string>();
    for (let at = 0; at < 2; at++) {
      const { printed, secret, signal, ended } = await ui("--json");
      expect(JSON.parse(printed)).toMatchObject({ event: "ready", where: new URL(service.url).host, canChange: false });
      secrets.add(secret);
      signal("SIGINT");
      await ended;
    }
    expect(secrets.size).toBe(2);
  });

  it("refuses a port that is in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    expect(await run(["ui", "--port", String(port)], service.env)).toEqual({
      status: 78,
      stdout: "",
      stderr: `holdfast: the page can't be served on 127.0.0.1:${port}: EADDRINUSE\nSay another by --port, or --port 0 for any free one.\n`,
    });
    other.close();
  });
});
