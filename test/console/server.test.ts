/** The console over HTTP: its page, its data, and the requests that it refuses. */
import type { AddressInfo } from "node:net";
import { request } from "node:http";
import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { consoleOf, loadAssets } from "../../console/server.js";
import type { KeyView, LimitData, Line, RunOfKey, ScheduleData } from "../../console/data.js";
import { RecentLines } from "../../console/recent-lines.js";
import type { ConsoleOptions } from "../../console/server.js";
import { createLocalServer } from "../../infra/local/local-server.js";
import { startLocalService } from "../../infra/local/local-service.js";
import { PRINCIPAL_HEADER } from "../../infra/local/gateway-event.js";
import type { Gateway } from "../../infra/local/gateway.js";
import { type LockClient, createLockClient, FinalError, LockError } from "../../lib/index.js";
import type { LogLine } from "../../lib/dynamodb.js";

/**
 * The most that the page may weigh, gzipped, in bytes: its script, its style and its HTML together. It was 34 500 before the page told what a
 * break does, the state of each request in words, and a skew of the clocks; 36 500 before a schedule and a limit had
 * a page of their own; and 40 500 before its pictures had dates.
 */
const PAGE_MAX_BYTES = 41_000;

const SAME_ORIGIN = { "sec-fetch-site": "same-origin", "content-type": "application/json" };

interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly body: ReturnType<typeof JSON.parse>;
}

let service: Gateway;
let locks: LockClient;
const lines = new RecentLines(5);
const closing: (() => void)[] = [];

beforeAll(async () => {
  service = await startLocalService({ ports: [0], log: (line) => lines.add(line), onFailure: () => undefined });
  locks = createLockClient({ url: service.url, owner: "me" });
  service.mount(consoleOf(options()));
});
afterAll(async () => {
  for (const close of closing) close();
  await locks.close();
  await service.close();
});

function options(more: Partial<ConsoleOptions> = {}): ConsoleOptions {
  return { locks, where: "here", canChange: true, pollMs: 1000, lines, ...more };
}

/** Sends a request as another principal than the console's. */
const asAnother: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set(PRINCIPAL_HEADER, "somebody-else");
  return fetch(input, { ...init, headers });
};

/** Sends a request with any headers, also those that fetch would not send. */
async function ask(path: string, headers: Readonly<Record<string, string>> = {}, body?: unknown, port = service.port): Promise<Told> {
  const sent = request({ host: "127.0.0.1", port, path, method: body === undefined ? "GET" : "POST", headers });
  sent.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
  const [response] = await once(sent, "response");
  let text = "";
  for await (const chunk of response) text += String(chunk);
  return {
    status: response.statusCode,
    headers: response.headers,
    text,
    body: /json/.test(response.headers["content-type"]) ? JSON.parse(text) : undefined,
  };
}

/** Serves another console, and returns its port. */
async function serve(more: Partial<ConsoleOptions>): Promise<number> {
  const page = consoleOf(options(more));
  const server = createLocalServer((incoming, response) => void page(incoming, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe("the page", () => {
  it("is served beside the API, with a policy that lets it load nothing but its own files", async () => {
    const page = await ask("/console");
    expect(page.status).toBe(200);
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; .*frame-ancestors 'none'; require-trusted-types-for 'script'$/,
      ),
    });
    expect(page.headers["content-security-policy"]).not.toMatch(/unsafe|\*|http/);
    const files = [...page.text.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, path]) => path!);
    expect(files.length).toBeGreaterThan(2);
    for (const path of files) expect([path, (await ask(path)).status]).toEqual([path, 200]);
    expect((await ask("/v1/health")).body.status).toBe("ok");
    expect((await ask("/consoles")).headers["content-type"]).toBe("application/problem+json");
  });

  it.each(["/console/none.js", "/console/api/none", "/console/api/constructor", "/console/toString"])("has nothing at %s", async (path) => {
    expect((await ask(path)).status).toBe(404);
  });

  it("is where a browser comes to that opens the service's address; a program gets the API's answer", async () => {
    expect(await ask("/", { accept: "text/html,*/*" })).toMatchObject({ status: 302, headers: { location: "/console" } });
    expect(await ask("/", { accept: "*/*" })).toMatchObject({ status: 404, text: expect.stringContaining("not-found") as string });
    expect(await ask("/v1/locks", { accept: "text/html" })).toMatchObject({ status: 200 });
  });

  it("weighs little, and names no other host", async () => {
    const assets = await loadAssets();
    const { "icon.svg": _icon, ...counted } = assets;
    const bytes = Object.values(counted).reduce((sum, { body }) => sum + gzipSync(body).length, 0);
    expect(bytes).toBeLessThan(PAGE_MAX_BYTES);
    expect(bytes).toBeGreaterThan(PAGE_MAX_BYTES / 2);
    const named = Object.values(assets).flatMap(({ body }) => [...body.matchAll(/https?:\/\/[\w.-]+/g)].map(([url]) => url));
    // Names of languages, which nothing fetches.
    expect(named.filter((url) => url !== "http://www.w3.org")).toEqual([]);
  });
});

describe("its data", () => {
  it("are of a schedule's name that its occurrences have runs, and of a run's state what never ran apart from what failed", async () => {
    const [occurrence, later] = [new Date("2026-01-31T02:00:00.000Z"), new Date("2026-02-07T02:00:00.000Z")];
    await locks.tick("weekly", { occurrence, maxLateMs: 1000 }, () => 1);
    await locks.withLock("weekly", () => locks.tick("weekly", { occurrence: later }, () => 1));
    await locks.runOnce("weekly_run", () => Promise.reject(new FinalError("down"))).catch(() => undefined);
    const [ofSchedule, of] = [await ask("/console/api/run?key=weekly"), await ask("/console/api/run?key=week")];
    expect([ofSchedule.body, of.body]).toEqual([
      { run: null, isSchedule: true },
      { run: null, isSchedule: false },
    ]);
    const keysIn = async (state: string) =>
      (await ask(`/console/api/runs?find=weekly_&state=${state}`)).body.items.map(({ key, errorName }: RunOfKey) => [key, errorName]);
    expect([await keysIn("failed"), await keysIn("skipped"), await keysIn("too-late")]).toEqual([
      [["weekly_run", "FinalError"]],
      [[`weekly_${later.toISOString()}`, "TickSkipped"]],
      [[`weekly_${occurrence.toISOString()}`, "TickTooLate"]],
    ]);
  });

  it("are a schedule's occurrences of some days until a time, without runs that only begin with its name", async () => {
    const at = (day: string): Date => new Date(`2026-03-${day}T02:00:00.000Z`);
    for (const day of ["01", "08", "09", "10"]) await locks.tick("monthly", { occurrence: at(day) }, () => 1);
    await locks.runOnce("monthly_2026-03-09", () => 1);
    const told = async (days: number) =>
      (await ask(`/console/api/schedule?key=monthly&until=${at("09").getTime() + 1}&days=${days}`)).body as ScheduleData;
    expect([await told(1), await told(7)]).toMatchObject([
      { items: [{ key: "monthly_2026-03-09T02:00:00.000Z", state: "succeeded" }], more: false },
      { items: [{ key: "monthly_2026-03-08T02:00:00.000Z" }, {}], more: false },
    ]);
    const { headers, body } = await ask("/console/api/schedule");
    expect([headers["content-type"], body.items]).toEqual(["application/json", []]);
  });

  it("are a limit by its name, with its rates and its permits, and nothing of another that begins with it", async () => {
    const rates = [{ count: 5, perMs: 3_600_000, burst: 5 }];
    await locks.limiter("rated_more", { rates }).take();
    const told = async (): Promise<LimitData> => (await ask("/console/api/limit?key=rated")).body as LimitData;
    expect(await told()).toEqual({ limit: null, lock: null });
    await locks.limiter("rated", { rates }).take({ cost: 2 });
    expect(await told()).toMatchObject({ limit: { key: "rated", remaining: [3] }, lock: null });
    await locks.acquire("rated", { limit: 4, permits: 3 });
    expect(await told()).toMatchObject({ limit: { permits: { out: 3, of: 4, waiting: 0 } }, lock: { holders: [{ owner: "me" }] } });
  });

  it("are the held keys by a part of key or owner, with the parts of a key, and one of them", async () => {
    const [one] = await Promise.all([locks.acquire("data_evt~5F1"), locks.acquire("data_2", { owner: "other" })]);
    const listed = await ask("/console/api/locks?find=data_&order=key");
    expect(listed.body).toMatchObject({ more: false, namespace: "default" });
    expect(listed.body.items.map(({ key, parts, holders }: KeyView) => [key, parts, holders[0]?.owner])).toEqual([
      ["data_2", undefined, "other"],
      ["data_evt~5F1", "data, evt_1", "me"],
    ]);
    expect((await ask("/console/api/locks?find=OTHER")).body.items).toHaveLength(1);
    expect((await ask("/console/api/locks?find=data_&order=key&max=1")).body).toMatchObject({
      items: [{ key: "data_2" }],
      fits: 2,
      more: false,
    });
    expect((await ask("/console/api/lock?key=data_evt~5F1")).body.holders).toMatchObject([
      { fencingToken: one.fencingToken, leaseMs: 30_000 },
    ]);
  });

  it("never have a leaseId, a holder's principal, a request's id or a lease's meta", async () => {
    await locks.acquire("secretive", { meta: { password: "hunter2" } });
    await locks.tryAcquire("secretive", { scope: undefined } as never).catch(() => null);
    const texts = await Promise.all(
      ["locks", "lock?key=secretive", "lines", "about", "runs"].map(async (path) => (await ask(`/console/api/${path}`)).text),
    );
    expect(texts.join()).toContain("secretive");
    expect(texts.join()).not.toMatch(/hunter2|principal|requestId|arn:aws|[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  it("are the runs by state, and one with its values as text", async () => {
    await locks.runOnce("run_1", () => ({ sent: 1n, at: new Date(0) }));
    await locks.runOnce("run_2", () => Promise.reject(new FinalError("no address"))).catch(() => undefined);
    expect((await ask("/console/api/runs?find=run_&state=failed")).body).toMatchObject({
      items: [{ key: "run_2", state: "failed" }],
      more: false,
    });
    const { run } = (await ask("/console/api/run?key=run_1")).body;
    expect(run).toMatchObject({ state: "succeeded", attempt: 1, result: expect.stringContaining('"sent": "1"') });
    expect((await ask("/console/api/run?key=run_2")).body.run.error).toContain("no address");
    expect((await ask("/console/api/run?key=run_3")).body).toMatchObject({ run: null });
  });

  it("are the limits in use by a part of their name, with the parts of a key", async () => {
    const rates = [{ count: 9, perMs: 3_600_000, burst: 3 }];
    for (const name of ["limits_a~5F1", "limits_b", "other_c"]) await locks.limiter(name, { rates }).take({ cost: 3 });
    const { body } = await ask("/console/api/limits?find=IMITS_");
    expect(body).toMatchObject({ fits: 2, more: false });
    expect(body.items).toMatchObject([
      { key: "limits_a~5F1", parts: "limits, a_1", rates, remaining: [0] },
      { key: "limits_b", rates, remaining: [0] },
    ]);
    expect((await ask("/console/api/limits?find=limits_&max=1")).body).toMatchObject({ items: [{ key: "limits_a~5F1" }], fits: 2 });
  });

  it("tell that the service is gone, and don't pretend that it is well", async () => {
    const port = await serve({ locks: { health: () => Promise.reject(new Error("nobody there")) } as unknown as LockClient });
    expect(await ask("/console/api/about", {}, undefined, port)).toMatchObject({
      status: 502,
      body: { code: "internal", message: "nobody there" },
    });
  });

  it("tell the status of a refusal, but none where the client is straight on the table: nothing answered with one", async () => {
    const told = async (httpStatus?: number) => {
      const refusal = new LockError("health: Too many requests", { code: "throttled", definite: true, retry: "later", httpStatus });
      const throttled = { health: () => Promise.reject(refusal) } as unknown as LockClient;
      const { code, status } = (await ask("/console/api/about", {}, undefined, await serve({ locks: throttled }))).body;
      return [code, status];
    };
    expect([await told(429), await told()]).toEqual([
      ["throttled", 429],
      ["throttled", undefined],
    ]);
  });

  it("tell a refusal of the service in its own words", async () => {
    expect((await ask("/console/api/lock?key=a%20b")).body).toMatchObject({ code: "invalid-request" });
    expect(await ask("/console/api/runs?state=none")).toMatchObject({ status: 400, body: { code: "invalid-request" } });
  });
});

describe("a change", () => {
  it("breaks the hold with this token, and no other", async () => {
    const lease = await locks.acquire("stuck");
    const { fencingToken } = lease;
    expect(await ask("/console/api/break", SAME_ORIGIN, { key: "stuck", fencingToken: fencingToken - 1, reason: "x" })).toMatchObject({
      status: 502,
      body: { code: "other-hold" },
    });
    expect((await ask("/console/api/break", SAME_ORIGIN, { key: "stuck", fencingToken })).body.code).toBe("invalid-request");
    expect((await ask("/console/api/break", SAME_ORIGIN, { key: "stuck", fencingToken, reason: "gone", drainMs: 0 })).body).toEqual({
      breakInMs: 0,
    });
    const { body } = await ask("/console/api/lines");
    expect(body.lines.filter((line: Line) => line.key === "stuck").at(-1)).toMatchObject({ event: "ended", reason: "broken: gone" });
  });

  it("is told with the operator's principal, in full also where the holder is another; no other line has one", async () => {
    const theirs = createLockClient({ url: service.url, owner: "them", fetch: asAnother });
    const { fencingToken } = await theirs.acquire("theirs", { heartbeat: false });
    for (const drainMs of [undefined, 0])
      await ask("/console/api/break", SAME_ORIGIN, { key: "theirs", fencingToken, reason: "gone", ...(drainMs === 0 && { drainMs }) });
    await locks.runOnce("told", () => 1);
    await ask("/console/api/reset", SAME_ORIGIN, { key: "told", reason: "wrong" });
    const { body } = await ask("/console/api/lines");
    const told = body.lines.filter(({ key }: Line) => key === "theirs" || key === "told");
    expect(told.map(({ event, by, owner }: Line) => [event, by, owner])).toEqual([
      ["granted", undefined, "them"],
      ["breaking", "local/local", "them"],
      ["ended", "local/local", "them"],
      ["granted", undefined, "me"],
      ["ended", undefined, "me"],
      ["recorded", undefined, "me"],
      ["reset", "local/local", ""],
    ]);
    await theirs.close();
  });

  it("resets a run", async () => {
    await locks.runOnce("again", () => 1);
    expect((await ask("/console/api/reset", SAME_ORIGIN, { key: "again", reason: "wrong" })).body).toEqual({ reset: true });
    expect((await ask("/console/api/run?key=again")).body.run).toBe(null);
  });

  it.each<[string, Readonly<Record<string, string>>, unknown, number]>([
    ["from another site", { ...SAME_ORIGIN, "sec-fetch-site": "cross-site" }, {}, 403],
    ["from another port of this machine", { ...SAME_ORIGIN, "sec-fetch-site": "same-site" }, {}, 403],
    ["without a word of its origin", { "content-type": "application/json" }, {}, 403],
    ["as a form", { ...SAME_ORIGIN, "content-type": "application/x-www-form-urlencoded" }, "key=a", 403],
    ["that is no object", SAME_ORIGIN, "[]", 400],
    ["that is no JSON", SAME_ORIGIN, "{", 400],
    ["that is too long", SAME_ORIGIN, { reason: "x".repeat(20_000) }, 400],
  ])("is refused %s", async (_, headers, body, status) => {
    expect((await ask("/console/api/break", headers, body)).status).toBe(status);
  });

  it("is refused by a console that only reads", async () => {
    const port = await serve({ canChange: false });
    const { status, body } = await ask("/console/api/break", SAME_ORIGIN, { key: "k" }, port);
    expect([status, body.message]).toEqual([403, "This console may only read: start it with --allow-changes to make changes"]);
    expect((await ask("/console/api/about", {}, undefined, port)).body).toMatchObject({ canChange: false, where: "here" });
  });
});

describe("the guard", () => {
  it("refuses a request for another host; control: for this one, by a tunnel's port, it doesn't", async () => {
    for (const path of ["/console", "/console/api/locks"]) {
      expect((await ask(path, { host: "evil.example" })).status).toBe(403);
      expect((await ask(path, { host: `localhost:${service.port + 1}` })).status).toBe(200);
    }
  });

  it("wants a cookie for data, and not for the page, where the secret was asked for", async () => {
    const port = await serve({ secret: "s3cret" });
    expect((await ask("/console", {}, undefined, port)).status).toBe(200);
    for (const headers of [{}, { "x-holdfast-console": "s3cret" }, { cookie: `holdfast-${port}=s3cret` }])
      expect(await ask("/console/api/locks", headers, undefined, port)).toMatchObject({ status: 403, body: { code: "console" } });
    expect((await ask("/console/api/break", SAME_ORIGIN, {}, port)).status).toBe(403);
  });

  it("exchanges the secret once, for a cookie of the session that no script reads and no other site sends", async () => {
    const port = await serve({ secret: "s3cret" });
    const exchange = (secret: unknown, headers = SAME_ORIGIN) => ask("/console/api/session", headers, { secret }, port);
    for (const secret of ["s3cre", "s3cret2", "", undefined, 7]) expect((await exchange(secret)).status).toBe(403);
    expect((await exchange("s3cret", { ...SAME_ORIGIN, "sec-fetch-site": "same-site" })).status).toBe(403);
    const { status, headers } = await exchange("s3cret");
    const [cookie = "", ...attributes] = String(headers["set-cookie"]).split("; ");
    expect([status, attributes]).toEqual([200, ["Path=/console", "HttpOnly", "SameSite=Strict"]]);
    expect(cookie).toMatch(new RegExp(`^holdfast-${port}=[\\w-]{32}$`));
    expect(cookie).not.toContain("s3cret");
    expect(await exchange("s3cret")).toMatchObject({ status: 403, body: { message: expect.stringContaining("works once") } });
    const opened = (more: Readonly<Record<string, string>> = {}) => ({ cookie: `other=1; ${cookie}`, ...more });
    expect((await ask("/console/api/locks", opened(), undefined, port)).status).toBe(200);
    expect((await ask("/console/api/locks", opened({ "sec-fetch-site": "same-site" }), undefined, port)).status).toBe(403);
    expect((await ask("/console/api/reset", opened(SAME_ORIGIN), { key: "none" }, port)).body.code).toBe("invalid-request");
    expect((await ask("/console/api/locks", opened(), undefined, await serve({ secret: "s3cret" }))).status).toBe(403);
  });
});

describe("the last lines", () => {
  const told = (id: string, operateAtMs: number, namespace = "default"): LogLine => ({
    event: "granted",
    namespace,
    kind: "lock",
    model: "",
    id,
    operateAtMs,
    principal: "p",
    requestId: "r",
  });

  it("are bounded, and say from when on none is missing", () => {
    const ring = new RecentLines(1, 3);
    for (const at of [10, 20, 30]) ring.add(told(`k${at}`, at));
    expect(ring.fromMs).toBe(1);
    ring.add(told("k40", 40));
    expect(ring.since(0, "default")).toMatchObject({ lines: [{ key: "k20" }, { key: "k30" }, { key: "k40" }], next: 4, fromMs: 10 });
    expect(ring.since(3, "default")).toMatchObject({ lines: [{ key: "k40", seq: 3 }], next: 4 });
    expect(ring.since(4, "default")).toMatchObject({ lines: [], next: 4 });
    // A position of another start.
    expect(ring.since(99, "default").lines).toHaveLength(3);
  });

  it("are those of one namespace, in answers of bounded size", () => {
    const ring = new RecentLines(0);
    for (let at = 0; at < 2500; at++) ring.add(told("k", at, at % 2 ? "default" : "other"));
    const first = ring.since(0, "default");
    expect([first.lines.length, first.next]).toEqual([1000, 2000]);
    expect(ring.since(first.next, "default")).toMatchObject({ next: 2500 });
    expect(JSON.stringify(first)).not.toMatch(/other|principal|requestId/);
  });
});
