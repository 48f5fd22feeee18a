/** The rules of one framework each, what options are refused, and every framework on the service over HTTP. */
import "reflect-metadata";
import type { ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { createBrotliCompress, createDeflate, createGzip } from "node:zlib";
import { Controller, Module, Post, Res, SetMetadata } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { stream } from "hono/streaming";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "../../infra/local/gateway.js";
import { startGateway } from "../../infra/local/gateway.js";
import { compose, policyOf } from "../../lambda/compose.js";
import { idempotent as ofExpress } from "../../lib/express.js";
import { idempotent as ofFastify } from "../../lib/fastify.js";
import { idempotent as ofHono } from "../../lib/hono.js";
import { createLockClient } from "../../lib/index.js";
import { HoldfastModule, Idempotent, Locked, LOCKS } from "../../lib/nest.js";
import type { LockClient } from "../../lib/testing.js";
import { createLockClient as inMemory, currentRun, key } from "../../lib/testing.js";
import { createMemoryStore } from "../../lib/store/memory-store.js";
import { gate } from "../examples/gate.js";
import type { AppServer } from "../middy/app-server.js";
import { listening } from "../middy/app-server.js";
import { FRAMEWORKS } from "./servers.js";

/** Nest's parser of forms with files, which comes without types. */
const multer = createRequire(import.meta.url)("multer") as {
  (options: { readonly storage: unknown }): { single(field: string): express.RequestHandler };
  memoryStorage(): unknown;
};
type Uploaded = express.Request & { readonly file: { readonly buffer: Buffer } };

const open: AppServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const MB = 1024 * 1024;
const ASKED = { method: "POST", headers: { "idempotency-key": "form-1", "x-user": "ann" } };
const replayed = ({ headers }: Response): string | null => headers.get("idempotent-replayed");

describe("options", () => {
  const locks = inMemory();
  it.each<[what: string, options: object, field: string]>([
    ["no caller", { locks, service: "shop" }, "caller"],
    ["a caller that is text", { locks, service: "shop", caller: "ann" }, "caller"],
    ["no service, outside of Lambda", { locks, caller: "none" }, "service"],
    ["a service without a name", { locks, service: "", caller: "none" }, "service"],
    ["a service whose name can't stand in a prefix", { locks, service: "web shop", caller: "none" }, "service"],
    ["no client", { service: "shop", caller: "none" }, "locks"],
    ["a header of one response", { locks, service: "shop", caller: "none", replayHeaders: ["Set-Cookie"] }, "replayHeaders"],
    ["a rate limit", { locks, service: "shop", caller: "none", replayHeaders: ["X-RateLimit-Limit"] }, "replayHeaders"],
    ["headers that are no list", { locks, service: "shop", caller: "none", replayHeaders: "etag" }, "replayHeaders"],
    ["an option that there isn't", { locks, service: "shop", caller: "none", ttlMs: 1 }, "ttlMs"],
    ["a large result", { locks, service: "shop", caller: "none", largeResult: "omit" }, "largeResult"],
    ["a decision that is no function", { locks, service: "shop", caller: "none", isRecorded: true }, "isRecorded"],
    ["a requirement that is no boolean", { locks, service: "shop", caller: "none", required: "no" }, "required"],
    ["a decision on errors, which a route answers", { locks, service: "shop", caller: "none", isFinal: () => true }, "isFinal"],
    ["a wait below zero", { locks, service: "shop", caller: "none", waitMs: -1 }, "waitMs"],
  ])("with %s are refused at once, by every entry", (_what, options, field) => {
    const refused = expect.objectContaining({ code: "invalid-request", field }) as Error;
    const made = [ofExpress, ofHono, HoldfastModule.forRoot, (all: never) => ofFastify(all, () => 1)] as ((all: object) => unknown)[];
    for (const make of made) expect(() => make(options)).toThrow(refused);
  });
});

describe("Express", () => {
  it("refuses a body that no parser took with 415, because all bodies would be equal; with a fingerprint it serves it", async () => {
    let calls = 0;
    const route = (_req: unknown, res: express.Response): void => void res.send(`made ${++calls}`);
    const app = express().use(express.json());
    app.post("/unparsed", ofExpress({ locks: inMemory(), service: "shop", caller: "none" }), route);
    app.post("/chosen", ofExpress({ locks: inMemory(), service: "shop", caller: "none", fingerprint: () => "form" }), route);
    const server = await listening(app);
    open.push(server);
    const post = (path: string) => fetch(server.url + path, { ...ASKED, body: "text" });
    const refused = await post("/unparsed");
    expect([refused.status, calls, await refused.json()]).toMatchObject([
      ...[415, 0, { code: "unsupported-media-type", detail: expect.stringMatching(/^body: no parser took text\/plain/), retry: "never" }],
    ]);
    expect([await post("/chosen"), await post("/chosen")].map(replayed)).toEqual([null, "true"]);
  });

  it("refuses a form with files, of which a parser leaves the fields alone; with a fingerprint that covers them it tells them apart", async () => {
    const upload = multer({ storage: multer.memoryStorage() }).single("photo");
    const route = (req: express.Request, res: express.Response): void => void res.send((req as Uploaded).file.buffer.toString());
    const app = express();
    app.post("/fields", upload, ofExpress({ locks: inMemory(), service: "shop", caller: "none" }), route);
    const fingerprint = (req: express.Request): unknown => [req.body, (req as Uploaded).file.buffer.toString("base64")];
    app.post("/whole", upload, ofExpress({ locks: inMemory(), service: "shop", caller: "none", fingerprint }), route);
    const server = await listening(app);
    open.push(server);
    const post = (path: string, photo: string) => {
      const form = new FormData();
      form.set("title", "mine");
      form.set("photo", new Blob([photo]), "photo.jpg");
      return fetch(server.url + path, { ...ASKED, body: form });
    };
    expect((await post("/fields", "one")).status).toBe(415);
    expect(await (await post("/whole", "one")).text()).toBe("one");
    expect(replayed(await post("/whole", "one"))).toBe("true");
    expect((await post("/whole", "two")).status).toBe(422);
  });

  it.each<[what: string, route: (res: ServerResponse) => void, kept: boolean]>([
    ["writes a body of known length", (res) => (res.writeHead(201, "Made", { "content-length": 4 }), res.write("ma"), res.end("de")), true],
    ["gives its headers as a list", (res) => (res.writeHead(201, ["location", "/1", "etag", '"1"']), res.end("made")), true],
    ["gives its headers as pairs", (res) => void res.writeHead(201, [["location", "/1"]] as never).end(Buffer.from("made")), true],
    ["ends in another encoding", (res) => void res.writeHead(201).end("6d616465", "hex"), true],
    ["ends twice", (res) => (res.writeHead(201).end("made"), (res.statusCode = 500), res.writeHead(500).end("again")), true],
    ["writes a body of unknown length", (res) => (res.writeHead(201), res.write("ma"), res.end("de")), false],
    ["sends its headers first", (res) => (res.writeHead(201), res.flushHeaders(), res.end("made")), false],
    ["is encoded", (res) => void res.writeHead(201, { "content-encoding": "identity" }).end("made"), false],
  ])("sends the response of a route that %s as it is, and replays it if it was held", async (_what, route, isKept) => {
    const serve = ofExpress({ locks: inMemory(), service: "shop", caller: "none" });
    const server = await listening((req, res) => serve(req, res, () => route(res)));
    open.push(server);
    const first = await fetch(server.url, ASKED);
    expect([first.status, await first.text()]).toEqual([201, "made"]);
    const again = await fetch(server.url, ASKED);
    expect([again.status, replayed(again)]).toEqual(isKept ? [201, "true"] : [409, null]);
    if (isKept) expect([await again.text(), again.headers.get("location")]).toEqual(["made", first.headers.get("location")]);
  });
});

describe("Express, in routers and before routes", () => {
  /** An application whose routes tell how often they ran. */
  async function served(build: (app: express.Express, route: express.RequestHandler, once: express.RequestHandler) => void) {
    const calls: string[] = [];
    const app = express();
    build(
      app,
      (req, res) => void res.send(String(calls.push(req.originalUrl))),
      ofExpress({ locks: inMemory(), service: "shop", caller: "none" }),
    );
    const server = await listening(app);
    open.push(server);
    return { calls, post: async (path: string) => (await fetch(server.url + path, ASKED)).status };
  }

  it("knows a route of a mounted router, however its request spells the end of the path", async () => {
    const { calls, post } = await served((app, route, once) => {
      app.use("/shops/:shop", express.Router().post("/orders", once, route).post("/", once, route));
    });
    for (const path of ["/shops/7/orders", "/shops/7/Orders/", "/shops/7", "/shops/7/"]) expect(await post(path)).toBe(200);
    expect(calls).toEqual(["/shops/7/orders", "/shops/7"]);
    expect(await post("/shops/8/orders")).toBe(200);
  });

  it("refuses a mount in another case, which may be a parameter", async () => {
    const { calls, post } = await served((app, route, once) => void app.use("/orders", express.Router().post("/", once, route)));
    expect([await post("/orders"), await post("/Orders")]).toEqual([200, 422]);
    expect(calls).toHaveLength(1);
  });

  it("tells routes apart before one is chosen, also after another route that took the request", async () => {
    const { calls, post } = await served((app, route, once) => {
      app.all("/*all", (_req, _res, next) => next());
      app.use(once).post("/orders", route).post("/refunds", route);
    });
    expect([await post("/orders"), await post("/refunds"), await post("/orders"), await post("/Orders")]).toEqual([200, 200, 200, 422]);
    expect(calls).toEqual(["/orders", "/refunds"]);
  });
});

describe("Fastify", () => {
  /** An application whose hooks change each response, and its answers to one request and the same again. */
  async function twice(change: (app: fastify.FastifyInstance) => void, made: unknown, headers: Readonly<Record<string, string>> = {}) {
    const app = fastify();
    let calls = 0;
    change(app);
    app.post(
      "/orders",
      ofFastify({ locks: inMemory(), service: "shop", caller: "none" }, async (_request, reply: fastify.FastifyReply) => {
        calls++;
        return reply.header("etag", '"1"').send(made);
      }),
    );
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    open.push({ url, close: () => app.close() });
    const ask = async () => {
      const answer = await fetch(`${url}/orders`, { ...ASKED, headers: { ...ASKED.headers, ...headers } });
      // The next request comes after the end of this one: it would wait for a stream, on a clock that nobody turns.
      return { answer, text: await answer.text() };
    };
    const both = [await ask(), await ask()];
    return { answers: both.map(({ answer }) => answer), texts: both.map(({ text }) => text), calls };
  }

  it("replays the body as hooks changed it, and no change is made twice; headers that hooks set are on each answer", async () => {
    let hooks = 0;
    const { answers, texts, calls } = await twice(
      (app) => {
        app.addHook("onSend", async (_request, reply, payload) => {
          reply.header("x-hook", String(++hooks));
          return `{"data":${String(payload)}}`;
        });
      },
      { id: 1 },
    );
    expect(texts).toEqual(Array(2).fill('{"data":{"id":1}}'));
    expect(answers.map(({ headers }) => [headers.get("x-hook"), headers.get("etag"), headers.get("content-length")])).toEqual([
      ["1", '"1"', "17"],
      ["2", '"1"', "17"],
    ]);
    expect([answers.map(replayed), calls]).toEqual([[null, "true"], 1]);
  });

  /** Compresses each payload as @fastify/compress does: the compressed one is a stream. */
  const compresses =
    (encoding: "gzip" | "br" | "deflate") =>
    (app: fastify.FastifyInstance): void => {
      const compressor = { gzip: createGzip, br: createBrotliCompress, deflate: createDeflate }[encoding];
      app.addHook("onSend", async (_request, reply, payload) => {
        reply.header("content-encoding", encoding).header("vary", "accept-encoding").removeHeader("content-length");
        const whole = typeof payload === "string" || Buffer.isBuffer(payload) ? Readable.from([payload]) : (payload as Readable);
        return whole.pipe(compressor());
      });
    };

  it.each(["gzip", "br", "deflate"] as const)(
    "records a response that a hook compresses (%s), and replays it uncompressed",
    async (encoding) => {
      const made = { id: 1, text: "x".repeat(50_000) };
      const { answers, texts, calls } = await twice(compresses(encoding), made);
      expect(texts).toEqual(Array(2).fill(JSON.stringify(made)));
      expect(answers.map(({ headers }) => headers.get("content-encoding"))).toEqual([encoding, null]);
      expect([answers.map(replayed), calls]).toEqual([[null, "true"], 1]);
    },
  );

  it("passes a stream that a hook compresses through, and one that would be too large uncompressed", async () => {
    for (const made of [Readable.from(["one ", "two"]), "x".repeat(300 * 1024)]) {
      const { answers, texts, calls } = await twice(compresses("gzip"), made);
      expect([texts[0], answers[1]!.status, calls]).toEqual([typeof made === "string" ? made : "one two", 409, 1]);
    }
  });

  it("replays the response of a handler that sends its reply later, by either of its ways", async () => {
    const app = fastify();
    const locks = inMemory();
    const options = { locks, service: "shop", caller: "none" } as const;
    app.post(
      "/later",
      ofFastify(options, (_request, reply) => void setTimeout(() => void reply.code(201).send("made"), 1)),
    );
    app.post(
      "/awaited",
      ofFastify(options, async (_request, reply) => {
        setTimeout(() => void reply.code(201).send("made"), 1);
        return reply;
      }),
    );
    app.post(
      "/sent",
      ofFastify(options, async (_request, reply) => void reply.code(201).send("made")),
    );
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    for (const path of ["/later", "/awaited", "/sent"]) {
      for (const isAgain of [null, "true"]) {
        const response = await fetch(url + path, ASKED);
        expect([path, response.status, replayed(response), await response.text()]).toEqual([path, 201, isAgain, "made"]);
      }
    }
    await app.close();
  });
});

describe("Hono", () => {
  it("fails if the route returns nothing, as it does without a key, and records nothing", async () => {
    let calls = 0;
    const app = new Hono();
    const nothing = (() => void calls++) as unknown as () => Response;
    app.post("/", ofHono({ locks: inMemory(), service: "shop", caller: "none" }), nothing).onError((_error, c) => c.text("broken", 500));
    const answers = [await app.request("/", ASKED), await app.request("/", ASKED)];
    expect([answers.map(({ status }) => status), answers.map(replayed), calls]).toEqual([[500, 500], [null, null], 2]);
  });

  it.each<[what: string, headers: Readonly<Record<string, string>>]>([
    ["that tells its length", { "content-length": String(100 * MB) }],
    ["that tells no length", {}],
  ])("reads no more than it may of a body %s, and answers 413", async (_what, headers) => {
    let calls = 0;
    let chunks = 0;
    const app = new Hono();
    app.post("/", ofHono({ locks: inMemory(), service: "shop", caller: "none", maxBodyBytes: 2 * MB }), (c) => c.text(String(++calls)));
    const body = new ReadableStream({
      pull: (controller) => (chunks++ < 100 ? controller.enqueue(new Uint8Array(MB)) : controller.close()),
    });
    const refused = await app.request("/", { ...ASKED, headers: { ...ASKED.headers, ...headers }, body, duplex: "half" } as RequestInit);
    expect([refused.status, calls, ((await refused.json()) as { code: string }).code]).toEqual([413, 0, "too-large"]);
    expect(chunks).toBeLessThan(6);
    expect((await app.request("/", { ...ASKED, body: new Uint8Array(2 * MB) })).status).toBe(200);
  });

  it("sends a stream that says nothing of being one as it comes, and doesn't repeat its work", async () => {
    const [freed, app] = [gate(), new Hono()];
    app.post("/", ofHono({ locks: inMemory(), service: "shop", caller: "none", waitMs: 0 }), (c) =>
      stream(c, async (out) => {
        await out.write("one ");
        await freed.opened;
        await out.write("two");
      }),
    );
    const first = await app.request("/", ASKED);
    const reader = first.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe("one ");
    expect((await app.request("/", ASKED)).status).toBe(409); // still in progress
    freed.open();
    expect((await reader.read()).value).toBe("two");
    expect((await reader.read()).done).toBe(true);
    await expect.poll(async () => ((await (await app.request("/", ASKED)).json()) as { code: string }).code).toBe("result-omitted");
  });

  it("leaves the body to the route, whatever form it has and whoever read it before", async () => {
    const app = new Hono();
    app.use("/read/*", async (c, next) => {
      await c.req.text();
      await next();
    });
    const once = ofHono({ locks: inMemory(), service: "shop", caller: "none" });
    app.post("/form", once, async (c) => c.json(await c.req.parseBody()));
    app.post("/read/json", once, async (c) => c.json(await c.req.json()));
    const form = new FormData();
    form.set("product", "camera");
    expect(await (await app.request("/form", { ...ASKED, body: form })).json()).toEqual({ product: "camera" });
    const json = { ...ASKED, body: '{"product":"camera"}' };
    expect(await (await app.request("/read/json", json)).json()).toEqual({ product: "camera" });
    expect(replayed(await app.request("/read/json", json))).toBe("true");
    // Spaces make no difference, a number that JavaScript can't represent does.
    expect(replayed(await app.request("/read/json", { ...ASKED, body: '{ "product": "camera" }' }))).toBe("true");
    expect((await app.request("/read/json", { ...ASKED, body: '{"product":"lens"}' })).status).toBe(422);
  });
});

describe("Hono, before routes", () => {
  it("tells routes apart", async () => {
    const calls: string[] = [];
    const app = new Hono().use("*", ofHono({ locks: inMemory(), service: "shop", caller: "none" }));
    for (const path of ["/orders", "/refunds"]) app.post(path, (c) => c.text(String(calls.push(path))));
    for (const path of ["/orders", "/refunds", "/orders"]) expect((await app.request(path, ASKED)).status).toBe(200);
    expect(calls).toEqual(["/orders", "/refunds"]);
  });
});

describe("Nest", () => {
  /** A controller whose methods are decorated by calls, because Nest uses the legacy decorators. */
  function decorated(controller: new (...args: never[]) => object, decorators: Readonly<Record<string, readonly MethodDecorator[]>>): void {
    const { prototype } = controller as { readonly prototype: object };
    for (const [name, all] of Object.entries(decorators)) {
      const descriptor = Object.getOwnPropertyDescriptor(prototype, name)!;
      for (const decorate of all.toReversed()) decorate(prototype, name, descriptor);
      Object.defineProperty(prototype, name, descriptor);
    }
    Controller()(controller);
  }

  async function served(controller: new (...args: never[]) => object, locks: LockClient): Promise<string> {
    class AppModule {} // eslint-disable-line @typescript-eslint/no-extraneous-class -- so is every module of Nest
    const settings = { provide: "settings", useValue: "none" };
    class SettingsModule {} // eslint-disable-line @typescript-eslint/no-extraneous-class -- so is every module of Nest
    Module({ providers: [settings], exports: ["settings"] })(SettingsModule);
    const useFactory = async (caller: "none") => ({ locks, service: "shop", caller });
    const holdfast = HoldfastModule.forRootAsync({ imports: [SettingsModule], inject: ["settings"], useFactory });
    Module({ controllers: [controller], imports: [holdfast] })(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, "127.0.0.1");
    open.push({ url: "", close: () => app.close() });
    expect(app.get(LOCKS)).toBe(locks);
    return app.getUrl();
  }

  it("locks a method whether @Locked() is above or below Nest's own, and keeps its name and metadata", async () => {
    const locks = inMemory();
    class Payments {
      readonly locks = locks;
      async above(): Promise<object> {
        return { holders: (await locks.inspect("ORDER_7")).holders.length };
      }
      async free(): Promise<object> {
        return { holders: (await locks.inspect("ORDER_7")).holders.length };
      }
      async held(): Promise<object> {
        return { holders: (await locks.inspect("ORDER_7")).holders.length };
      }
    }
    const lock = Locked({ key: () => key("ORDER", 7), waitMs: 0 }) as MethodDecorator;
    decorated(Payments, {
      above: [lock, Post("above")],
      free: [Post("free")],
      held: [Post("held"), lock, SetMetadata("role", "clerk")],
    });
    const url = await served(Payments, locks);
    const { held } = Payments.prototype;
    expect([held.name, Reflect.getMetadata("role", held)]).toEqual(["held", "clerk"]);
    for (const path of ["above", "held"]) expect(await (await fetch(`${url}/${path}`, ASKED)).json()).toEqual({ holders: 1 });
    expect(await (await fetch(`${url}/free`, ASKED)).json()).toEqual({ holders: 0 });
    await locks.acquire("ORDER_7");
    for (const path of ["above", "held"]) expect((await fetch(`${url}/${path}`, ASKED)).status).toBe(423);
    expect(() => lock(Payments.prototype, "locks", undefined as never)).toThrow("@Locked() on locks: is a legacy decorator of methods");
  });

  it("makes all routes of a controller idempotent, with options of their own", async () => {
    let calls = 0;
    class Orders {
      create(): object {
        return { call: ++calls };
      }
    }
    decorated(Orders, { create: [Post("orders")] });
    Idempotent({ required: false })(Orders);
    const url = await served(Orders, inMemory());
    expect([await fetch(`${url}/orders`, ASKED), await fetch(`${url}/orders`, ASKED)].map(replayed)).toEqual([null, "true"]);
    expect((await fetch(`${url}/orders`, { method: "POST" })).status).toBe(201);
    expect(calls).toBe(2);
  });

  it("refuses a route that sends its response itself, before it runs", async () => {
    let calls = 0;
    class Orders {
      create(response: ServerResponse): void {
        calls++;
        response.end("made");
      }
    }
    Res()(Orders.prototype, "create", 0);
    decorated(Orders, { create: [Post("orders"), Idempotent()] });
    const url = await served(Orders, inMemory());
    expect([(await fetch(`${url}/orders`, ASKED)).status, calls]).toEqual([500, 0]);
  });
});

describe.each(FRAMEWORKS)("$name on the service over HTTP", ({ serve }) => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({
      handler: compose({}, { store: createMemoryStore({ policy: policyOf({}) }), log: () => undefined }),
      port: 0,
    });
  });
  afterAll(() => gateway.close());

  it("runs a route once for two servers, in which the route sees its run", async () => {
    const runs: unknown[] = [];
    const application = () => {
      runs.push(currentRun()?.attempt);
      return { status: 201, body: { id: 1 } };
    };
    const clients = [1, 2].map(() => createLockClient({ url: gateway.url }));
    const servers = await Promise.all(clients.map((locks) => serve({ locks, service: "shop", caller: "header" }, application)));
    open.push(...servers);
    const answers = await Promise.all(servers.map(({ url }) => fetch(`${url}/idempotent/order`, ASKED)));
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers.map(replayed).toSorted()).toEqual([null, "true"].toSorted());
    expect(runs).toEqual([1]);
    await Promise.all(clients.map((client) => client.close()));
  });
});
