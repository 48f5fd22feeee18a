/** Checks that a route of each framework runs once per key, that a lock that is held is answered 423, and a limit without room 429. */
import assert from "node:assert/strict";
import { once } from "node:events";

const SERVERS = { express, fastify, hono, "nest on express": nestOn(), "nest on fastify": nestOn("FastifyAdapter") };

export async function checkFrameworks(load) {
  const { createLockClient, locked } = await load("holdfast/testing");
  for (const [name, serve] of Object.entries(SERVERS)) {
    const locks = createLockClient();
    let calls = 0;
    const create = async () => ({ order: ++calls });
    const pay = locked({ locks, key: () => "held", whenHeld: "throw" }, async () => ({ paid: true }));
    const { ask, close } = await serve(load, { locks, service: "shop", caller: "none" }, { create, pay });
    for (const replayed of [null, "true"]) {
      const { status, headers, body } = await ask("/create");
      assert.deepEqual([status, headers.get("idempotent-replayed"), body], [200, replayed, { order: 1 }], name);
    }
    await locks.tryAcquire("held");
    const { status, body } = await ask("/pay");
    assert.deepEqual([status, body.code], [423, "locked"], name);
    for (const expected of [200, 429]) {
      const { status, headers } = await ask("/limited");
      assert.deepEqual([status, headers.get("ratelimit")], [expected, '"one";r=0;t=60'], name);
    }
    await close();
  }
  return Object.keys(SERVERS).join(", ");
}

const ONE = { name: "one", rates: [{ count: 1, perMs: 60_000 }] };
const REQUEST = { method: "POST", headers: { "idempotency-key": "form-1" } };

/** Asks a server, or a function that is like `fetch`. */
function asking(fetch, url, close = () => undefined) {
  const ask = async (path) => {
    const response = await fetch(url + path, REQUEST);
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  return { ask, close };
}

async function express(load, options, { create, pay }) {
  const { default: framework } = await importable(load, "express");
  const { idempotent, lockErrors, rateLimit } = await load("holdfast/express");
  const app = framework();
  app.post("/create", idempotent(options), async (_req, res) => void res.json(await create()));
  app.post("/pay", async (_req, res) => void res.json(await pay()));
  app.post("/limited", rateLimit({ ...options, ...ONE }), (_req, res) => void res.json({}));
  app.use(lockErrors);
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return asking(fetch, `http://127.0.0.1:${server.address().port}`, () => server.close() && server.closeAllConnections());
}

async function fastify(load, options, { create, pay }) {
  const { default: framework } = await importable(load, "fastify");
  const { idempotent, lockErrors, rateLimit } = await load("holdfast/fastify");
  const app = framework();
  app.post("/create", idempotent(options, create));
  app.post("/pay", pay);
  app.post("/limited", { preHandler: rateLimit({ ...options, ...ONE }) }, async () => ({}));
  app.setErrorHandler(lockErrors);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return asking(fetch, url, () => app.server.closeAllConnections() ?? app.close());
}

async function hono(load, options, { create, pay }) {
  const { Hono } = await load("hono");
  const { idempotent, lockProblem, rateLimit } = await load("holdfast/hono");
  const app = new Hono();
  app.post("/create", idempotent(options), async (c) => c.json(await create()));
  app.post("/pay", async (c) => c.json(await pay()));
  app.post("/limited", rateLimit({ ...options, ...ONE }), (c) => c.json({}));
  app.onError((error, c) => lockProblem(error, c) ?? c.text("broken", 500));
  return asking(async (...request) => app.request(...request), "");
}

function nestOn(adapter) {
  return async (load, options, { create, pay }) => {
    const { Controller, HttpCode, Module, Post } = await load("@nestjs/common");
    const { NestFactory } = await load("@nestjs/core");
    const { HoldfastModule, Idempotent, RateLimit } = await load("holdfast/nest");
    class AppController {
      create() {
        return create();
      }
      pay() {
        return pay();
      }
      limited() {
        return {};
      }
    }
    for (const [name, ...own] of [["create", Idempotent()], ["pay"], ["limited", RateLimit(ONE)]])
      for (const decorate of [Post(name), HttpCode(200), ...own])
        decorate(AppController.prototype, name, Object.getOwnPropertyDescriptor(AppController.prototype, name));
    Controller()(AppController);
    class AppModule {}
    Module({ controllers: [AppController], imports: [HoldfastModule.forRoot(options)] })(AppModule);
    const platform = adapter ? [new (await load("@nestjs/platform-fastify"))[adapter]()] : [];
    const app = await NestFactory.create(AppModule, ...platform, { logger: false });
    await app.listen(0, "127.0.0.1");
    return asking(fetch, await app.getUrl(), () => app.getHttpServer().closeAllConnections() ?? app.close());
  };
}

/** Returns a CommonJS module as `import` gives it. */
async function importable(load, name) {
  const module = await load(name);
  return typeof module === "function" ? { default: module } : module;
}
