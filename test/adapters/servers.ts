/** One application in each host, listening on localhost: all of its routes hand the request to the same function. */
import { type ServerResponse, createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import "reflect-metadata";
import { serve as serveHono } from "@hono/node-server";
import { type INestApplication, type Type, Controller, Module, Param, Post, Res, StreamableFile } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import type { Request } from "express";
import express from "express";
import fastify from "fastify";
import { type Context, Hono } from "hono";
import { cors } from "hono/cors";
import * as ofExpress from "../../lib/express.js";
import * as ofFastify from "../../lib/fastify.js";
import * as ofHono from "../../lib/hono.js";
import { type IdempotentOptions, type RateLimitOptions, HoldfastModule, Idempotent, RateLimit } from "../../lib/nest.js";
import { isThorough } from "../support/tier.js";
import { type AppServer, listening, serveApp } from "./app-server.js";
import type { RequestV2 } from "./events.js";
import { ONCE_SHAPES } from "./shapes.js";

/** A response of the application. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, an iterable as a stream. */
  readonly body?: object | string | Uint8Array | AsyncIterable<string>;
}

/** The application: a reply to `POST /idempotent/:name`, which runs once per key, `POST /limited/:name` and `POST /free/:name`. */
export type Application = (name: string) => Promise<Reply> | Reply;

/** Options that are the same in every framework. */
export type Options = Omit<IdempotentOptions<unknown>, "caller" | "fingerprint" | "isRecorded"> & {
  readonly caller: "header" | "none" | "nobody";
  /** The limits of `/limited/:name`, the most specific first. */
  readonly limits?: readonly LevelOptions[];
};

/** Options of a limit that are the same in every framework. */
export type LevelOptions = Pick<RateLimitOptions<never>, "name" | "rates" | "whenUnavailable"> & {
  readonly caller?: "none";
  readonly cost?: number;
};

/** A framework, and a server of the application in it. */
export interface Framework {
  readonly name: string;
  serve(options: Options, application: Application): Promise<AppServer>;
}

/** The origin of the pages whose scripts may read the responses. */
export const ORIGIN = "https://shop.example";
const EXPOSES = "X-Page";

function callerIn(caller: Options["caller"], header: (name: string) => unknown): string {
  return caller === "nobody" ? (undefined as unknown as string) : (header("x-user") as string);
}

const isStream = (body: Reply["body"]): body is AsyncIterable<string> => typeof body === "object" && Symbol.asyncIterator in body;

async function serveExpress({ limits = [], ...options }: Options, application: Application): Promise<AppServer> {
  const app = express().use((_req, res, next) => {
    res.set({ "access-control-allow-origin": ORIGIN, "access-control-expose-headers": EXPOSES });
    next();
  });
  app.use(express.json());
  const { caller: who, locks, service } = options;
  const caller = who === "none" ? who : (req: Request) => callerIn(who, (name) => req.get(name));
  const once = ofExpress.idempotent({ ...options, caller });
  const levels = limits.map((level) => ofExpress.rateLimit({ locks, service, caller, ...level }));
  const route = async (req: Request, res: express.Response): Promise<void> => {
    const { status = 200, headers = {}, body } = await application(req.params["name"] as string);
    res.status(status).set(headers);
    if (isStream(body)) await pipeline(Readable.from(body), res);
    else res.send(body instanceof Uint8Array ? Buffer.from(body) : body);
  };
  app.post("/idempotent/:name", once, route).post("/free/:name", route).get("/idempotent/:name", once, route);
  app.post("/limited/:name", levels, route);
  app.use(ofExpress.lockErrors);
  return listening(app);
}

async function serveFastify({ limits = [], ...options }: Options, application: Application): Promise<AppServer> {
  const app = fastify();
  app.addHook("onRequest", async (_request, reply) => {
    reply.headers({ "access-control-allow-origin": ORIGIN, "access-control-expose-headers": EXPOSES });
  });
  const { caller: who, locks, service } = options;
  const caller = who === "none" ? who : (request: fastify.FastifyRequest) => callerIn(who, (name) => request.headers[name]);
  const route = async (request: fastify.FastifyRequest, reply: fastify.FastifyReply): Promise<unknown> => {
    const { status = 200, headers = {}, body } = await application((request.params as { name: string }).name);
    reply.code(status).headers(headers);
    return isStream(body) ? Readable.from(body) : body instanceof Uint8Array ? Buffer.from(body) : body;
  };
  const once = ofFastify.idempotent({ ...options, caller }, route);
  const levels = limits.map((level) => ofFastify.rateLimit({ locks, service, caller, ...level }));
  app.post("/idempotent/:name", once);
  app.get("/idempotent/:name", once);
  app.post("/free/:name", route);
  app.post("/limited/:name", { preHandler: levels }, route);
  app.setErrorHandler(ofFastify.lockErrors);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    url,
    async close() {
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

async function serveInHono({ limits = [], ...options }: Options, application: Application): Promise<AppServer> {
  const app = new Hono().use(cors({ origin: ORIGIN, exposeHeaders: [EXPOSES] }));
  const { caller: who, locks, service } = options;
  const caller = who === "none" ? who : ({ req }: Context) => callerIn(who, (name) => req.raw.headers.get(name));
  const once = ofHono.idempotent({ ...options, caller });
  const levels = limits.map((level) => ofHono.rateLimit({ locks, service, caller, ...level }));
  const route = async (c: Context): Promise<Response> => {
    const { status = 200, headers = {}, body } = await application(c.req.param("name")!);
    for (const [name, value] of Object.entries(headers)) c.header(name, value, { append: name === "set-cookie" });
    c.status(status as 200);
    if (isStream(body)) return c.body(Readable.toWeb(Readable.from(body)) as ReadableStream);
    if (body instanceof Uint8Array) return c.body(new Uint8Array(body));
    return body === undefined ? c.body(null) : typeof body === "string" ? c.text(body) : c.json(body);
  };
  app.post("/idempotent/:name", once, route).get("/idempotent/:name", once, route).post("/free/:name", route);
  for (const level of levels) app.use("/limited/*", level);
  app.post("/limited/:name", route);
  app.onError((error, c) => ofHono.lockProblem(error, c) ?? c.text("broken", 500));
  return new Promise((resolve) => {
    const server = serveHono({ overrideGlobalObjects: false, fetch: app.fetch, port: 0, hostname: "127.0.0.1", createServer }, ({ port }) =>
      resolve({
        url: `http://127.0.0.1:${port}`,
        close: () =>
          new Promise((closed) => {
            (server as ReturnType<typeof createServer>).closeAllConnections();
            server.close(() => closed());
          }),
      }),
    );
  });
}

interface NestResponse {
  status(code: number): void;
  header(name: string, value: string): void;
}

/** Decorators of methods and parameters are called directly, because Nest uses the legacy ones. */
function nestModule({ limits = [], ...options }: Options, application: Application): Type {
  class AppController {
    async route(name: string, response: NestResponse): Promise<unknown> {
      const { status = 200, headers = {}, body } = await application(name);
      response.status(status);
      for (const [header, value] of Object.entries(headers)) response.header(header, value);
      if (isStream(body)) return new StreamableFile(Readable.from(body));
      return body instanceof Uint8Array ? new StreamableFile(body, { length: body.length }) : body;
    }
    free(name: string, response: NestResponse): Promise<unknown> {
      return this.route(name, response);
    }
    limited(name: string, response: NestResponse): Promise<unknown> {
      return this.route(name, response);
    }
    own(response: ServerResponse): void {
      response.end();
    }
  }
  const decorate = (name: "route" | "free" | "limited" | "own", ...decorators: MethodDecorator[]): void => {
    const descriptor = Object.getOwnPropertyDescriptor(AppController.prototype, name)!;
    for (const decorator of decorators) decorator(AppController.prototype, name, descriptor);
    Object.defineProperty(AppController.prototype, name, descriptor);
  };
  decorate("route", Post("idempotent/:name"), Idempotent());
  decorate("free", Post("free/:name"));
  decorate("limited", ...limits.map((level) => RateLimit(level)).toReversed(), Post("limited/:name"));
  decorate("own", Post("own"), Idempotent());
  for (const name of ["route", "free", "limited"] as const) {
    Param("name")(AppController.prototype, name, 0);
    Res({ passthrough: true })(AppController.prototype, name, 1);
  }
  Res()(AppController.prototype, "own", 0);
  Controller()(AppController);

  class AppModule {} // eslint-disable-line @typescript-eslint/no-extraneous-class -- so is every module of Nest
  const { caller } = options;
  const forAll = {
    ...options,
    caller: caller === "none" ? caller : (request: Request) => callerIn(caller, (name) => request.headers[name]),
  };
  Module({ controllers: [AppController], imports: [HoldfastModule.forRoot(forAll)] })(AppModule);
  return AppModule;
}

const CORS = { origin: ORIGIN, exposedHeaders: EXPOSES };

async function listeningNest(app: INestApplication): Promise<AppServer> {
  await app.listen(0, "127.0.0.1");
  return {
    url: await app.getUrl(),
    async close() {
      (app.getHttpServer() as ReturnType<typeof createServer>).closeAllConnections();
      await app.close();
    },
  };
}

/** Express and Fastify below decorators of which nest.test.ts tests what is their own. */
const NEST: readonly Framework[] = [
  {
    name: "Nest on Express",
    serve: async (options, application) =>
      listeningNest(await NestFactory.create(nestModule(options, application), { logger: false, cors: CORS })),
  },
  {
    name: "Nest on Fastify",
    serve: async (options, application) =>
      listeningNest(await NestFactory.create(nestModule(options, application), new FastifyAdapter(), { logger: false, cors: CORS })),
  },
];

/** The frameworks; Nest in the slow tier alone. */
export const FRAMEWORKS: readonly Framework[] = [
  { name: "Express", serve: serveExpress },
  { name: "Fastify", serve: serveFastify },
  { name: "Hono", serve: serveInHono },
  ...(isThorough() ? NEST : []),
];

/** Serves the application as a function behind an HTTP API, whose handler is wrapped in one of the ways. */
async function serveHandler({ deploy }: (typeof ONCE_SHAPES)[number], { caller, ...options }: Options, application: Application) {
  const route = async ({ rawPath }: RequestV2): Promise<object> => {
    const { status: statusCode = 200, headers: made = {}, body } = await application(rawPath.split("/")[2]!);
    if (body instanceof Uint8Array) return { statusCode, headers: made, body: Buffer.from(body).toString("base64"), isBase64Encoded: true };
    const isJson = typeof body === "object";
    const headers = { ...(isJson && { "content-type": "application/json" }), ...made };
    return { statusCode, headers, body: isJson ? JSON.stringify(body) : body };
  };
  const callerOf = ({ headers }: RequestV2): string => callerIn(caller, (name) => headers[name]);
  const once = deploy({ ...options, caller: caller === "none" ? caller : callerOf }, (_run, event: RequestV2) => route(event));
  return serveApp(async (event, context) => {
    const { method } = event.requestContext.http;
    if (!event.rawPath.startsWith("/idempotent/")) return { statusCode: 404 };
    return once({ ...event, routeKey: `${method} /idempotent/:name` }, context);
  });
}

/** All frameworks, and handlers of Lambda; in the quick tier the first way to wrap one, since lambda-once.test.ts compares the ways. */
export const HOSTS: readonly Framework[] = [
  ...FRAMEWORKS,
  ...ONCE_SHAPES.slice(0, isThorough() ? undefined : 1).map((shape): Framework => ({
    name: shape.name,
    serve: (options, application) => serveHandler(shape, options, application),
  })),
];
