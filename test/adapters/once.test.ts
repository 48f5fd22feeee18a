/** The same requests to the same application in each host, on localhost: what is replayed, refused, recorded and passed through. */
import { request as send } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { currentRun } from "../../lib/index.js";
import { type Operation, type TestLockClient, createLockClient, locked } from "../../lib/testing.js";
import { createGate } from "../support/run-gate.js";
import { answered, closingAfterEach } from "./app-server.js";
import { type Application, type Framework, type Options, type Reply, FRAMEWORKS, HOSTS, ORIGIN } from "./servers.js";

/** Enough for every retry of a request. */
const MANY = 500;
/** The requests with an outcome that a client sends in 12 s without an answer. */
const TWELVE_SECONDS = 26;
const KB = 1024;
/** A poll is a request on loopback, so it needs no pause of a twentieth of a second. */
const POLLS = { interval: 2 };

const open = closingAfterEach();

interface Sent {
  readonly body?: unknown;
  readonly key?: string | undefined;
  readonly user?: string;
  readonly method?: string;
  readonly query?: string;
}

/** The routes of an application, each with the number of its call. */
type Routes = Readonly<Record<string, (call: number) => Promise<Reply> | Reply>>;

/** Serves an application that counts the calls of each route. */
async function served({ serve }: Framework, routes: Routes, options: Partial<Options> = {}) {
  const locks = createLockClient();
  const calls: Record<string, number> = {};
  const application: Application = (name) => {
    calls[name] = (calls[name] ?? 0) + 1;
    return routes[name]!(calls[name]);
  };
  const server = open(await serve({ locks, service: "shop", caller: "header", waitMs: 0, ...options }, application));

  const post = (path: string, { body = { product: "camera" }, key = "form-1", user = "ann", method = "POST", query = "" }: Sent = {}) =>
    answered(
      locks,
      fetch(`${server.url}/${path}${query}`, {
        method,
        redirect: "manual",
        headers: { "content-type": "application/json", "x-user": user, origin: ORIGIN, ...(key !== "" && { "Idempotency-Key": key }) },
        ...(method === "POST" && { body: JSON.stringify(body) }),
      }),
    );
  const once = (name: string, sent?: Sent) => post(`idempotent/${name}`, sent);
  return { locks, server, calls, post, once };
}

const isReplayed = ({ headers }: Response): boolean => headers.get("idempotent-replayed") === "true";
const exposed = ({ headers }: Response): string | null => headers.get("access-control-expose-headers");

/** The status of a problem, its code, whether it is definite, and whether it says when to come again. */
async function problemIn(answer: Response): Promise<readonly unknown[]> {
  expect(answer.headers.get("content-type")?.split(";")[0]).toBe("application/problem+json");
  const { code, definite } = (await answer.json()) as { code: string; definite: boolean };
  return [answer.status, code, definite, Number(answer.headers.get("retry-after") ?? 0) >= 1];
}

const IN_PROGRESS = [409, "run-in-progress", true, true];
const OMITTED = [409, "result-omitted", false, false];

describe.each(HOSTS)("$name", (host) => {
  it.each<[what: string, reply: Reply, text: string]>([
    ["text", { body: "grün" }, "grün"],
    ["an object", { status: 201, headers: { location: "/orders/1" }, body: { id: 1 } }, '{"id":1}'],
    ["no body", { status: 204 }, ""],
    ["a redirect", { status: 303, headers: { location: "/orders/1" } }, ""],
    ["a mistake of the caller", { status: 404, body: { error: "no such product" } }, '{"error":"no such product"}'],
    ["bytes that are no text", { headers: { "content-type": "image/png" }, body: Uint8Array.from([0xff, 0xfe, 0, 1]) }, "\xff\xfe\0\x01"],
  ])("replays %s", async (_what, reply, text) => {
    const { once, calls } = await served(host, { order: () => reply });
    for (const isAgain of [false, true]) {
      const answer = await once("order", { key: isAgain ? '"form-1"' : "form-1" });
      const encoding = reply.body instanceof Uint8Array ? "latin1" : "utf8";
      expect([answer.status, Buffer.from(await answer.arrayBuffer()).toString(encoding)]).toEqual([reply.status ?? 200, text]);
      expect([isReplayed(answer), answer.headers.get("location")]).toEqual([isAgain, reply.headers?.["location"] ?? null]);
    }
    expect(calls).toEqual({ order: 1 });
  });

  it("answers 422 to another body or query under the same key, and 400 without a key that can be one", async () => {
    const { once, calls } = await served(host, { order: () => ({ body: "made" }) });
    await once("order");
    for (const sent of [{ body: { product: "console" } }, { query: "?gift" }])
      expect(await problemIn(await once("order", sent))).toEqual([422, "fingerprint-mismatch", true, false]);
    for (const key of ["", '""', "x".repeat(256), "two words", "form-1,form-1", '"form-1", "form-1"'])
      expect([key, ...(await problemIn(await once("order", { key })))]).toEqual([key, 400, "invalid-request", true, false]);
    expect(isReplayed(await once("order", { body: { product: "camera" } }))).toBe(true);
    expect(calls).toEqual({ order: 1 });
  });

  it("answers 409 and when to come again while another request is in progress, and waits for it if it may", async () => {
    const [reached, freed] = [createGate(), createGate()];
    const { once } = await served(host, {
      async order() {
        reached.open();
        await freed.opened;
        return { body: "made" };
      },
    });
    const first = once("order");
    await reached.opened;
    const second = await once("order");
    expect(await problemIn(second)).toEqual(IN_PROGRESS);
    if (FRAMEWORKS.includes(host)) expect(exposed(second)).toBe("X-Page, Retry-After");
    freed.open();
    expect(await (await first).text()).toBe("made");
    expect(isReplayed(await once("order"))).toBe(true);
  });

  it("names a request by service, caller, route and key: in each spelling of its path that the router takes, not with another parameter", async () => {
    const { locks, post, calls } = await served(host, { order: () => ({ status: 201 }) });
    const answers: Response[] = [];
    for (const path of ["idempotent/order", "idempotent/order/", "Idempotent/order", "IDEMPOTENT/order/"]) answers.push(await post(path));
    const taken = answers.filter(({ status }) => status !== 404);
    expect(taken.map(isReplayed)).toEqual(taken.map((_one, at) => at > 0));
    expect([(await post("idempotent/Order")).status, calls]).toEqual([422, { order: 1 }]);
    const { items } = await locks.runs.list();
    expect(items.map((run) => run.key)).toEqual(["shop_~http_ann_POST_~2Fidempotent~2F:name_form-1"]);
  });

  it("gives requests that come together one answer", async () => {
    const { once, calls } = await served(host, { order: (call) => ({ body: { call } }) }, { waitMs: 5000 });
    const answers = await Promise.all([1, 2, 3].map(() => once("order")));
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(Array(3).fill({ call: 1 }));
    expect([answers.filter(isReplayed).length, calls]).toEqual([2, { order: 1 }]);
  });

  it("runs again after an error of the route", async () => {
    const { once } = await served(host, {
      order(call) {
        if (call === 1) throw new Error("the database is down");
        return { body: { call } };
      },
    });
    expect((await once("order")).status).toBe(500);
    expect(await (await once("order")).json()).toEqual({ call: 2 });
    expect(isReplayed(await once("order"))).toBe(true);
  });

  it.each([503, 429])("passes %i on and doesn't record it", async (status) => {
    const { once } = await served(host, { order: (call) => (call === 1 ? { status, body: "not now" } : { body: "made" }) });
    const first = await once("order");
    expect([first.status, await first.text()]).toEqual([status, "not now"]);
    const second = await once("order");
    expect([second.status, await second.text(), isReplayed(second)]).toEqual([200, "made", false]);
  });

  it("passes a large body through, and doesn't repeat its work", async () => {
    const large = "x".repeat(300 * KB);
    const { once, calls } = await served(host, { report: () => ({ body: large }) });
    expect(await (await once("report")).text()).toBe(large);
    expect(await problemIn(await once("report"))).toEqual(OMITTED);
    expect(calls).toEqual({ report: 1 });
  });

  it("never gives one caller's answer to another; control: with one name for all callers it does", async () => {
    for (const [caller, isShared] of [["header", false] as const, ["none", true] as const]) {
      const { once } = await served(host, { order: (call) => ({ body: { call } }) }, { caller });
      await once("order", { user: "ann" });
      const ofBob = await once("order", { user: "bob" });
      expect([isReplayed(ofBob), await ofBob.json()]).toEqual([isShared, { call: isShared ? 1 : 2 }]);
    }
  });

  it("fails, and runs nothing, if the caller has no name", async () => {
    const { once, calls } = await served(host, { order: () => ({ body: "made" }) }, { caller: "nobody" });
    expect([(await once("order")).status, calls]).toEqual([500, {}]);
  });

  it("answers 503 and runs nothing if the locks can't be reached", async () => {
    const { locks, once, calls } = await served(host, { order: () => ({ body: "made" }) });
    lose(locks, "start");
    expect(await problemIn(await once("order"))).toEqual([503, "unavailable", true, true]);
    expect(calls).toEqual({});
  });

  it("answers with the response itself, once it is recorded, after an outage that is shorter than the lease", async () => {
    const { locks, once, calls } = await served(host, { order: (call) => ({ status: 201, body: { call } }) });
    lose(locks, "complete", TWELVE_SECONDS);
    const [first, second] = [await once("order"), await once("order")];
    expect([first.status, await first.json()]).toEqual([201, { call: 1 }]);
    expect([isReplayed(second), await second.json(), calls]).toEqual([true, { call: 1 }, { order: 1 }]);
  });

  it("answers 503 `not-recorded` in place of a response that could not be recorded, with nothing of it", async () => {
    const headers = { "set-cookie": "session=1", location: "/orders/1" };
    const { locks, once } = await served(host, { order: () => ({ status: 201, headers, body: "made" }) });
    lose(locks, "complete");
    const refused = await once("order");
    expect(await problemIn(refused)).toEqual([503, "not-recorded", false, true]);
    expect([refused.headers.get("location"), refused.headers.get("set-cookie")]).toEqual([null, null]);
    if (FRAMEWORKS.includes(host)) expect(refused.headers.get("access-control-allow-origin")).toBe(ORIGIN);
  });
});

describe.each(FRAMEWORKS)("$name", (framework) => {
  it("shows the route its run", async () => {
    const { once } = await served(framework, { order: () => ({ body: { attempt: currentRun()?.attempt } }) });
    expect(await (await once("order")).json()).toEqual({ attempt: 1 });
  });

  it("replays the headers that describe the result, and none that belong to one response", async () => {
    const { once } = await served(
      framework,
      {
        order: (call) => ({
          headers: {
            ...{ location: `/orders/${call}`, etag: `"${call}"`, link: "</orders>; rel=up", "cache-control": "no-store" },
            ...{ "set-cookie": "session=1", "x-ratelimit-remaining": "7", "x-request-id": "r", "x-total": "3" },
          },
          body: { id: call },
        }),
      },
      { replayHeaders: ["X-Total"] },
    );
    const [first, second] = [await once("order"), await once("order")];
    const kept = ["location", "etag", "link", "cache-control", "content-type", "x-total"];
    for (const name of kept) expect([name, second.headers.get(name)]).toEqual([name, first.headers.get(name) ?? "none"]);
    const dropped = ["set-cookie", "x-ratelimit-remaining", "x-request-id"];
    for (const name of dropped) expect([name, first.headers.has(name), second.headers.has(name)]).toEqual([name, true, false]);
    // Scripts of other origins see the replay's header, beside those that are exposed already.
    for (const { headers } of [first, second]) expect(headers.get("access-control-allow-origin")).toBe(ORIGIN);
    expect([first, second].map(exposed)).toEqual(["X-Page", "X-Page, Idempotent-Replayed"]);
  });

  it("serves requests without a key as if nothing were there, if none is required, and safe methods always", async () => {
    const { once, calls } = await served(framework, { order: (call) => ({ body: { call } }) }, { required: false });
    for (const call of [1, 2]) expect(await (await once("order", { key: "" })).json()).toEqual({ call });
    for (const isAgain of [false, true]) expect(isReplayed(await once("order"))).toBe(isAgain);
    const hasGet = !framework.name.startsWith("Nest");
    if (hasGet) for (const call of [4, 5]) expect(await (await once("order", { method: "GET" })).json()).toEqual({ call });
    expect(calls["order"]).toBe(hasGet ? 5 : 3);
  });

  it.each<[what: string, body: string | Uint8Array, isKept: boolean]>([
    ["195,000 bytes that are no text", new Uint8Array(195_000).fill(0xff), true],
    ["197,000 bytes that are no text", new Uint8Array(197_000).fill(0xff), false],
    ["261,000 bytes of plain text", "x".repeat(261_000), true],
    ["132,000 quotes, which JSON escapes", '"'.repeat(132_000), false],
  ])("records what fits into 256 KB as JSON: %s", async (_what, body, isKept) => {
    const { once } = await served(framework, { report: () => ({ headers: { "content-type": "application/octet-stream" }, body }) });
    const [first, second] = [await once("report"), await once("report")];
    expect(Buffer.from(await first.arrayBuffer()).equals(Buffer.from(body))).toBe(true);
    expect([second.status, isReplayed(second)]).toEqual(isKept ? [200, true] : [409, false]);
    if (isKept) expect(Buffer.from(await second.arrayBuffer()).equals(Buffer.from(body))).toBe(true);
  });

  const streamed = (body: AsyncIterable<string>): Reply => ({ headers: { "content-type": "text/event-stream" }, body });

  it("passes a stream through as it comes, and doesn't repeat its work", async () => {
    const freed = createGate();
    async function* lines(): AsyncGenerator<string> {
      yield "one ";
      await freed.opened;
      yield "two";
    }
    const { once, calls } = await served(framework, { report: () => streamed(lines()) });
    const reader = (await once("report")).body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe("one ");
    expect(await problemIn(await once("report"))).toEqual(IN_PROGRESS);
    freed.open();
    expect((await reader.read()).value).toBe("two");
    expect((await reader.read()).done).toBe(true);
    await expect.poll(async () => problemIn(await once("report")), POLLS).toEqual(OMITTED);
    expect(calls).toEqual({ report: 1 });
  });

  it("runs again after a stream that broke off", async () => {
    async function* broken(): AsyncGenerator<string> {
      yield "one ";
      throw new Error("the disk is gone");
    }
    const { once } = await served(framework, { report: (call) => (call === 1 ? streamed(broken()) : { body: "made" }) });
    // The adapter of Hono for Node prints the error of a stream.
    const printing = vi.spyOn(console, "error").mockReturnValue();
    await (await once("report")).text().catch(() => undefined);
    await expect.poll(async () => (await once("report")).status, POLLS).toBe(200);
    printing.mockRestore();
  });

  it.each([
    ["a body", { body: { id: 1 } }, '{"id":1}'],
    ["no body", {}, ""],
  ])("finishes and records when the client hangs up on %s", async (_what, rest, text) => {
    const [reached, freed] = [createGate(), createGate()];
    const { server, once, calls } = await served(framework, {
      async order() {
        reached.open();
        await freed.opened;
        return { status: 201, ...rest };
      },
    });
    await hangUp(`${server.url}/idempotent/order`, reached.opened);
    freed.open();
    await expect.poll(async () => isReplayed(await once("order")), POLLS).toBe(true);
    const again = await once("order");
    expect([again.status, await again.text(), calls]).toEqual([201, text, { order: 1 }]);
  });

  it("runs again after a stream whose client was gone before it began", async () => {
    const [reached, freed] = [createGate(), createGate()];
    async function* parts(): AsyncGenerator<string> {
      yield* ["one ", "two"];
    }
    const { server, once } = await served(framework, {
      async report(call) {
        if (call > 1) return { body: "made" };
        reached.open();
        await freed.opened;
        return streamed(parts());
      },
    });
    await hangUp(`${server.url}/idempotent/report`, reached.opened);
    freed.open();
    await expect.poll(async () => (await once("report")).status, POLLS).toBe(200);
  });

  it("answers 423 and when to come again if a route's lock is held, and records nothing of it", async () => {
    const { locks, once, post } = await served(framework, { order: () => pay() });
    const pay = locked({ locks, key: () => "ORDER_7", whenHeld: "throw" }, async (): Promise<Reply> => ({ body: "paid" }));
    const rival = createLockClient({ clock: locks.clock, store: locks.store, owner: "rival" });
    const lease = await rival.acquire("ORDER_7");
    const asks = [() => once("order"), () => post("free/order")];
    for (const ask of asks) {
      const refused = await ask();
      expect(await refused.clone().text()).not.toContain("rival");
      expect(await problemIn(refused)).toEqual([423, "locked", true, true]);
    }
    await lease.release();
    for (const ask of asks) expect(await (await ask()).text()).toBe("paid");
  });
});

/** Sends the request of `once`, and hangs up when the route is `reached`. Resolves when the server knows. */
async function hangUp(url: string, reached: Promise<unknown>): Promise<void> {
  const headers = { "content-type": "application/json", "x-user": "ann", "idempotency-key": "form-1" };
  const request = send(url, { method: "POST", headers }).on("error", () => undefined);
  request.end(JSON.stringify({ product: "camera" }));
  await reached;
  request.destroy();
  for (let turns = 0; turns < 50; turns++) await turn();
}

/** Loses the next requests of an operation; by default all. */
function lose({ faults }: TestLockClient, operation: Operation, requests = MANY): void {
  for (let fault = 0; fault < requests; fault++) faults.loseNextRequest(operation);
}
