/** The framework examples, each served on localhost with one client, as a reader would start them. */
import type { RequestListener } from "node:http";
import { text } from "node:stream/consumers";
import "reflect-metadata";
import type { DynamicModule } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ordersApp as expressApp } from "../../examples/frameworks/express.js";
import { ordersApp as fastifyApp } from "../../examples/frameworks/fastify.js";
import { ordersApp as honoApp } from "../../examples/frameworks/hono.js";
import * as plain from "../../examples/frameworks/lambda.js";
import * as inMiddy from "../../examples/frameworks/middy.js";
import type { Orders } from "../../examples/frameworks/orders.js";
import type { LockClient } from "../../lib/index.js";
import { type AppServer, listening, serveApp } from "../adapters/app-server.js";
import type { RequestV2 } from "../adapters/events.js";

/** A framework, and a server of its example. */
export interface Framework {
  readonly name: string;
  serve(locks: LockClient, orders: Orders): Promise<AppServer>;
}

export const FRAMEWORKS: readonly Framework[] = [
  {
    name: "express",
    async serve(locks, orders) {
      return listening(expressApp(locks, orders));
    },
  },
  {
    name: "fastify",
    async serve(locks, orders) {
      const app = fastifyApp(locks, orders);
      await app.ready();
      return listening((request, response) => app.routing(request, response));
    },
  },
  {
    name: "hono",
    async serve(locks, orders) {
      const app = honoApp(locks, orders);
      return listening((request, response) => {
        void (async () => {
          const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
          const body = await text(request);
          const answer = await app.fetch(new Request(`http://localhost${request.url ?? ""}`, { method: "POST", headers, body }));
          response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
        })();
      });
    },
  },
  { name: "nest", serve: serveNest },
  {
    name: "middy",
    async serve(locks, orders) {
      return serveApp(routed(inMiddy.createHandler(locks, orders) as Handler, inMiddy.shipHandler(locks, orders) as Handler));
    },
  },
  {
    name: "lambda",
    async serve(locks, orders) {
      return serveApp(routed(plain.createHandler(locks, orders) as Handler, plain.shipHandler(locks, orders) as Handler));
    },
  },
];

type Handler = (event: unknown, context: object) => Promise<unknown>;

/** The two functions behind the routes of one API. */
function routed(create: Handler, ship: Handler): (event: RequestV2, context: object) => Promise<unknown> {
  return (event, context) => {
    const [, id] = /^\/orders\/([^/]+)\/ship$/.exec(event.rawPath) ?? [];
    return id === undefined ? create(event, context) : ship({ ...event, pathParameters: { id } }, context);
  };
}

/** The example's module. Its types are those of the legacy decorators, which this program doesn't have. */
async function serveNest(locks: LockClient, orders: Orders): Promise<AppServer> {
  const { OrdersModule } = (await import(["../../examples/frameworks", "nest.js"].join("/"))) as {
    OrdersModule: { of(...args: readonly unknown[]): DynamicModule };
  };
  const app = await NestFactory.create(OrdersModule.of(locks, orders), { logger: false });
  await app.init();
  return listening(app.getHttpAdapter().getInstance() as RequestListener);
}
