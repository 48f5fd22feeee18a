/** The same requests to the same application in each framework, on localhost: what is replayed, refused, recorded and passed through. */
import { request as send } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Operation, TestLockClient } from "../../lib/testing.js";
import { createLockClient, locked } from "../../lib/testing.js";
import type { AppServer } from "../middy/app-server.js";
import { gate } from "../examples/gate.js";
import type { Application, Options, Reply } from "./servers.js";
import { FRAMEWORKS, ORIGIN } from "./servers.js";

/** Turns of the event loop after which a pending request fails the test. */
const MOST_TURNS = 20_000;
const STEP_MS = 50;
/** Enough for every retry of a request. */
const MANY = 500;
/** The requests with an outcome that a client sends in 12 s without an answer. */
const TWELVE_SECONDS = 26;
const KB = 1024;

const servers: AppServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/** An application that counts the calls of each route, and the routes of it. */
function counting(routes: Readonly<Record<string, (call: number) => Promise<Reply> | Reply>>) {
  const calls: Record<string, number> = {};
  const application: Application = (name) => {
    calls[name] = (calls[name] ?? 0) + 1;
    return routes[name]!(calls[name]);
  };
  return { calls, application };
}

interface Sent {
  readonly body?: unknown;
  readonly key?: string | undefined;
  readonly user?: string;
  readonly method?: string;
  readonly query?: string;
}

describe.each(FRAMEWORKS)("$name", ({ name: framework, serve }) => {
  async function served(application: Application, options: Partial<Options> = {}) {
    const locks = createLockClient();
    const server = await serve({ locks, service: "shop", caller: "header", waitMs: 0, ...options }, application);
    servers.push(server);

    const post = (path: string, { body = { product: "camera" }, key = "form-1", user = "ann", method = "POST", query = "" }: Sent = {}) =>
      answered(
        locks,
        fetch(`${server.url}/${path}${query}`, {
          method,
          headers: { "content-type": "application/json", "x-user": user, origin: ORIGIN, ...(key !== "" && { "Idempotency-Key": key }) },
          ...(method === "POST" && { body: JSON.stringify(body) }),
        }),
      );
    return { locks, server, post, once: (name: string, sent?: Sent) => post(`idempotent/${name}`, sent) };
  }

  const isReplayed = ({ headers }: Response): boolean => headers.get("idempotent-replayed") === "true";

  it("replays status, body and the headers that describe the result, and none that belong to one response", async () => {
    const { calls, application } = counting({
      order: (call) => ({
        status: 201,
        headers: {
          ...{ location: `/orders/${call}`, etag: `"${call}"`, link: "</orders>; rel=up", "cache-control": "no-store" },
          ...{ "set-cookie": "session=1", "x-ratelimit-remaining": "7", "x-request-id": "r", "x-total": "3" },
        },
        body: { id: call },
      }),
    });
    const { once } = await served(application, { replayHeaders: ["X-Total"] });
    const [first, second] = [await once("order"), await once("order", { key: '"form-1"' })];
    expect([first.status, second.status, calls]).toEqual([201, 201, { order: 1 }]);
    expect([isReplayed(first), isReplayed(second)]).toEqual([false, true]);
    const bodies = [await first.text(), await second.text()];
    expect(bodies).toEqual(['{"id":1}', '{"id":1}']);
    const kept = ["location", "etag", "link", "cache-control", "content-type", "x-total"];
    for (const name of kept) expect([name, second.headers.get(name)]).toEqual([name, first.headers.get(name)]);
    const dropped = ["set-cookie", "x-ratelimit-remaining", "x-request-id"];
    for (const name of dropped) expect([name, first.headers.has(name), second.headers.has(name)]).toEqual([name, true, false]);
  });

  it("exposes the replay's header to scripts of other origins, beside those that are exposed already", async () => {
    const { application } = counting({ order: () => ({ body: "made" }) });
    const { once } = await served(application);
    const [first, second] = [await once("order"), await once("order")];
    for (const { headers } of [first, second]) expect(headers.get("access-control-allow-origin")).toBe(ORIGIN);
    expect(first.headers.get("access-control-expose-headers")).toBe("X-Page");
    expect(second.headers.get("access-control-expose-headers")).toBe("X-Page, Idempotent-Replayed");
  });

  it.each<[what: string, reply: Reply, text: string]>([
    ["text", { body: "grün" }, "grün"],
    ["no body", { status: 204 }, ""],
    ["a redirect", { status: 303, headers: { location: "/orders/1" } }, ""],
    ["a mistake of the caller", { status: 404, body: { error: "no such product" } }, '{"error":"no such product"}'],
  ])("replays %s", async (_what, reply, text) => {
    const { calls, application } = counting({ order: () => reply });
    const { server, locks } = await served(application);
    const ask = async () =>
      answered(
        locks,
        fetch(`${server.url}/idempotent/order`, {
          method: "POST",
          redirect: "manual",
          headers: { "x-user": "ann", "idempotency-key": "form-1" },
        }),
      );
    const [first, second] = [await ask(), await ask()];
    expect([await first.text(), await second.text()]).toEqual([text, text]);
    expect([first.status, second.status]).toEqual([reply.status ?? 200, reply.status ?? 200]);
    expect([isReplayed(second), calls]).toEqual([true, { order: 1 }]);
  });

  it("replays bytes that are no text", async () => {
    const bytes = Uint8Array.from([0xff, 0xfe, 0, 1]);
    const { application } = counting({ image: () => ({ headers: { "content-type": "image/png" }, body: bytes }) });
    const { once } = await served(application);
    for (const isAgain of [false, true]) {
      const response = await once("image");
      expect([isReplayed(response), response.headers.get("content-type")]).toEqual([isAgain, "image/png"]);
      expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
    }
  });

  it("answers 422 to another body or query under the same key, and 400 without a key that can be one", async () => {
    const { calls, application } = counting({ order: () => ({ body: "made" }) });
    const { once } = await served(application);
    await once("order");
    for (const sent of [{ body: { product: "console" } }, { query: "?gift" }]) {
      const refused = await once("order", sent);
      expect([
        refused.status,
        refused.headers.get("content-type")?.split(";")[0],
        ((await refused.json()) as { code: string }).code,
      ]).toEqual([...[422, "application/problem+json", "fingerprint-mismatch"]]);
    }
    for (const key of ["", '""', "x".repeat(256), "two words"]) {
      const refused = await once("order", { key });
      expect([key, refused.status, ((await refused.json()) as { code: string }).code]).toEqual([key, 400, "invalid-request"]);
    }
    expect(isReplayed(await once("order", { body: { product: "camera" } }))).toBe(true);
    expect(calls).toEqual({ order: 1 });
  });

  it("serves requests without a key as if nothing were there, if none is required, and safe methods always", async () => {
    const { calls, application } = counting({ order: (call) => ({ body: { call } }) });
    const { once } = await served(application, { required: false });
    for (const call of [1, 2]) expect(await (await once("order", { key: "" })).json()).toEqual({ call });
    for (const isAgain of [false, true]) expect(isReplayed(await once("order"))).toBe(isAgain);
    if (!framework.startsWith("Nest"))
      for (const call of [4, 5]) expect(await (await once("order", { method: "GET" })).json()).toEqual({ call });
    expect(calls["order"]).toBe(framework.startsWith("Nest") ? 3 : 5);
  });

  it("answers 409 and when to come again while another request is in progress, and waits for it if it may", async () => {
    const [reached, freed] = [gate(), gate()];
    const { application } = counting({
      async order() {
        reached.open();
        await freed.opened;
        return { body: "made" };
      },
    });
    const { once } = await served(application);
    const first = once("order");
    await reached.opened;
    const second = await once("order");
    expect([second.status, Number(second.headers.get("retry-after")) >= 1, ((await second.json()) as { code: string }).code]).toEqual([
      ...[409, true, "run-in-progress"],
    ]);
    expect(second.headers.get("access-control-expose-headers")).toBe("X-Page, Retry-After");
    freed.open();
    expect(await (await first).text()).toBe("made");
    expect(isReplayed(await once("order"))).toBe(true);
  });

  it("gives requests that come together one answer", async () => {
    const { calls, application } = counting({ order: (call) => ({ body: { call } }) });
    const { once } = await served(application, { waitMs: 5000 });
    const answers = await Promise.all([1, 2, 3].map(() => once("order")));
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(Array(3).fill({ call: 1 }));
    expect([answers.filter(isReplayed).length, calls]).toEqual([2, { order: 1 }]);
  });

  it("runs again after an error of the route", async () => {
    const { application } = counting({
      order(call) {
        if (call === 1) throw new Error("the database is down");
        return { body: { call } };
      },
    });
    const { once } = await served(application);
    expect((await once("order")).status).toBe(500);
    expect(await (await once("order")).json()).toEqual({ call: 2 });
    expect(isReplayed(await once("order"))).toBe(true);
  });

  it.each([500, 503, 429, 401, 403, 408, 409, 423, 425])("passes %i on and doesn't record it", async (status) => {
    const { application } = counting({ order: (call) => (call === 1 ? { status, body: "not now" } : { body: "made" }) });
    const { once } = await served(application);
    const first = await once("order");
    expect([first.status, await first.text()]).toEqual([status, "not now"]);
    const second = await once("order");
    expect([second.status, await second.text(), isReplayed(second)]).toEqual([200, "made", false]);
  });

  it("passes a large body through, and doesn't repeat its work", async () => {
    const large = "x".repeat(300 * KB);
    const { calls, application } = counting({ report: () => ({ body: large }) });
    const { once } = await served(application);
    expect(await (await once("report")).text()).toBe(large);
    const second = await once("report");
    expect([second.status, ((await second.json()) as { code: string }).code, calls]).toEqual([409, "result-omitted", { report: 1 }]);
  });

  it.each<[what: string, body: string | Uint8Array, isKept: boolean]>([
    ["195,000 bytes that are no text", new Uint8Array(195_000).fill(0xff), true],
    ["197,000 bytes that are no text", new Uint8Array(197_000).fill(0xff), false],
    ["261,000 bytes of plain text", "x".repeat(261_000), true],
    ["132,000 quotes, which JSON escapes", '"'.repeat(132_000), false],
  ])("records what fits into 256 KB as JSON: %s", async (_what, body, isKept) => {
    const { application } = counting({ report: () => ({ headers: { "content-type": "application/octet-stream" }, body }) });
    const { once } = await served(application);
    const [first, second] = [await once("report"), await once("report")];
    expect(Buffer.from(await first.arrayBuffer()).equals(Buffer.from(body))).toBe(true);
    expect([second.status, isReplayed(second)]).toEqual(isKept ? [200, true] : [409, false]);
    if (isKept) expect(Buffer.from(await second.arrayBuffer()).equals(Buffer.from(body))).toBe(true);
  });

  it("passes a stream through as it comes, and doesn't repeat its work", async () => {
    const [begun, freed] = [gate(), gate()];
    async function* lines(): AsyncGenerator<string> {
      yield "one ";
      await freed.opened;
      yield "two";
    }
    const { calls, application } = counting({
      report() {
        begun.open();
        return { headers: { "content-type": "text/event-stream" }, body: lines() };
      },
    });
    const { once } = await served(application);
    const first = await once("report");
    const reader = first.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe("one ");
    expect((await once("report")).status).toBe(409); // still in progress
    freed.open();
    expect((await reader.read()).value).toBe("two");
    expect((await reader.read()).done).toBe(true);
    await expect.poll(async () => ((await (await once("report")).json()) as { code: string }).code).toBe("result-omitted");
    expect(calls).toEqual({ report: 1 });
  });

  it("runs again after a stream that broke off", async () => {
    async function* broken(): AsyncGenerator<string> {
      yield "one ";
      throw new Error("the disk is gone");
    }
    const { application } = counting({
      report: (call) => (call === 1 ? { headers: { "content-type": "text/event-stream" }, body: broken() } : { body: "made" }),
    });
    const { once } = await served(application);
    // The adapter of Hono for Node prints the error of a stream.
    const printing = vi.spyOn(console, "error").mockReturnValue();
    await (await once("report")).text().catch(() => undefined);
    await expect.poll(async () => (await once("report")).status).toBe(200);
    printing.mockRestore();
  });

  it("finishes and records when the client hangs up", async () => {
    const [reached, freed] = [gate(), gate()];
    const { calls, application } = counting({
      async order(call) {
        reached.open();
        await freed.opened;
        return { status: 201, body: { call } };
      },
      async empty() {
        reached.open();
        await freed.opened;
        return { status: 201 };
      },
    });
    for (const name of ["order", "empty"]) {
      const { server, once } = await served(application);
      const headers = { "content-type": "application/json", "x-user": "ann", "idempotency-key": "form-1" };
      const request = send(`${server.url}/idempotent/${name}`, { method: "POST", headers }).on("error", () => undefined);
      request.end(JSON.stringify({ product: "camera" }));
      await reached.opened;
      request.destroy();
      for (let turns = 0; turns < 50; turns++) await turn();
      freed.open();
      await expect.poll(async () => isReplayed(await once(name))).toBe(true);
      const again = await once(name);
      expect([again.status, await again.text()]).toEqual([201, name === "order" ? '{"call":1}' : ""]);
    }
    expect(calls).toEqual({ order: 1, empty: 1 });
  });

  it("never gives one caller's answer to another; control: with one name for all callers it does", async () => {
    const { application } = counting({ order: (call) => ({ body: { call } }) });
    const each = await served(application);
    await each.once("order", { user: "ann" });
    const hers = await each.once("order", { user: "bob" });
    expect([isReplayed(hers), await hers.json()]).toEqual([false, { call: 2 }]);

    const all = await served(application, { caller: "none" });
    await all.once("order", { user: "ann" });
    const shared = await all.once("order", { user: "bob" });
    expect([isReplayed(shared), await shared.json()]).toEqual([true, { call: 3 }]);
  });

  it("fails, and runs nothing, if the caller has no name", async () => {
    const { calls, application } = counting({ order: () => ({ body: "made" }) });
    const { once } = await served(application, { caller: "nobody" });
    expect([(await once("order")).status, calls]).toEqual([500, {}]);
  });

  it("answers 423 and when to come again if a route's lock is held, and records nothing of it", async () => {
    const { locks, once, post } = await served((name) => pay(name));
    const pay = locked({ locks, key: () => "ORDER_7", whenHeld: "throw" }, async (_name: string): Promise<Reply> => ({ body: "paid" }));
    const rival = createLockClient({ clock: locks.clock, store: locks.store, owner: "rival" });
    const lease = await rival.acquire("ORDER_7");
    for (const ask of [() => once("order"), () => post("free/order")]) {
      const refused = await ask();
      const text = await refused.text();
      expect([refused.status, refused.headers.get("content-type")?.split(";")[0], (JSON.parse(text) as { code: string }).code]).toEqual([
        ...[423, "application/problem+json", "locked"],
      ]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(text).not.toContain("rival");
    }
    await lease.release();
    for (const ask of [() => once("order"), () => post("free/order")]) expect(await (await ask()).text()).toBe("paid");
  });

  it("answers 503 and runs nothing if the locks can't be reached", async () => {
    const { calls, application } = counting({ order: () => ({ body: "made" }) });
    const { locks, once } = await served(application);
    lose(locks, "start");
    const refused = await once("order");
    expect([refused.status, ((await refused.json()) as { code: string }).code, calls]).toEqual([503, "unavailable", {}]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  });

  it("answers with the response itself, once it is recorded, after an outage that is shorter than the lease", async () => {
    const { calls, application } = counting({ order: (call) => ({ status: 201, body: { call } }) });
    const { locks, once } = await served(application);
    lose(locks, "complete", TWELVE_SECONDS);
    const [first, second] = [await once("order"), await once("order")];
    expect([first.status, await first.json()]).toEqual([201, { call: 1 }]);
    expect([isReplayed(second), await second.json(), calls]).toEqual([true, { call: 1 }, { order: 1 }]);
  });

  it("answers 503 `not-recorded` in place of a response that could not be recorded, with nothing of it", async () => {
    const { application } = counting({
      order: () => ({ status: 201, headers: { "set-cookie": "session=1", location: "/orders/1" }, body: "made" }),
    });
    const { locks, once } = await served(application);
    lose(locks, "complete");
    const refused = await once("order");
    const { code, definite } = (await refused.json()) as { code: string; definite: boolean };
    expect([refused.status, code, definite]).toEqual([503, "not-recorded", false]);
    expect([refused.headers.get("location"), refused.headers.get("set-cookie")]).toEqual([null, null]);
    expect(refused.headers.get("access-control-allow-origin")).toBe(ORIGIN);
  });
});

/** Lets time pass until `asked` settles. */
async function answered<T>(locks: TestLockClient, asked: Promise<T>): Promise<T> {
  let done = false as boolean;
  const mark = (): void => void (done = true);
  asked.then(mark, mark);
  for (let turns = 0; !done && turns < MOST_TURNS; turns++) {
    await turn();
    await locks.clock.advance(STEP_MS);
  }
  return asked;
}

/** Loses the next requests of an operation; by default all. */
function lose({ faults }: TestLockClient, operation: Operation, requests = MANY): void {
  for (let fault = 0; fault < requests; fault++) faults.loseNextRequest(operation);
}
