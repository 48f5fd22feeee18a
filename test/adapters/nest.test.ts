/** The rules of Nest alone: its decorators, the module's options, and routes that send their response themselves. */
import "reflect-metadata";
import type { ServerResponse } from "node:http";
import {
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  Controller,
  GatewayTimeoutException,
  Module,
  Post,
  Res,
  SetMetadata,
  UseInterceptors,
} from "@nestjs/common";
import { ExternalContextCreator, NestFactory } from "@nestjs/core";
import { type Observable, from, map, race, timer } from "rxjs";
import { describe, expect, it } from "vitest";
import { HoldfastModule, Idempotent, Locked, LOCKS, RateLimit } from "../../lib/nest.js";
import { type LockClient, createLockClient as inMemory, key } from "../../lib/testing.js";
import { createGate, thrownBy } from "../support/run-gate.js";
import { ASKED, closingAfterEach, replayed } from "./app-server.js";

const open = closingAfterEach();

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

  async function served(controllers: (new (...args: never[]) => object)[], locks: LockClient, options = {}): Promise<string> {
    class AppModule {} // eslint-disable-line @typescript-eslint/no-extraneous-class -- so is every module of Nest
    const settings = { provide: "settings", useValue: "none" };
    class SettingsModule {} // eslint-disable-line @typescript-eslint/no-extraneous-class -- so is every module of Nest
    Module({ providers: [settings], exports: ["settings"] })(SettingsModule);
    const useFactory = async (caller: "none") => ({ locks, service: "shop", caller, ...options });
    const holdfast = HoldfastModule.forRootAsync({ imports: [SettingsModule], inject: ["settings"], useFactory });
    Module({ controllers, imports: [holdfast] })(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, "127.0.0.1");
    open({ close: () => app.close() });
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
    const url = await served([Payments], locks);
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
    const url = await served([Orders], inMemory());
    expect([await fetch(`${url}/orders`, ASKED), await fetch(`${url}/orders`, ASKED)].map(replayed)).toEqual([null, "true"]);
    expect((await fetch(`${url}/orders`, { method: "POST" })).status).toBe(201);
    expect(calls).toBe(2);
  });

  it("takes an option that is given as undefined for one that is left out, as the module has it", async () => {
    class Orders {
      create(): string {
        return "made";
      }
    }
    const limit = RateLimit({ name: "create", rates: [{ count: 1, perMs: 60_000 }], service: undefined }) as MethodDecorator;
    decorated(Orders, { create: [Post("orders"), Idempotent({ required: undefined, service: undefined }), limit] });
    const locks = inMemory();
    const url = await served([Orders], locks, { required: false });
    expect((await fetch(`${url}/orders`, { method: "POST" })).status).toBe(201);
    expect((await locks.limits.list()).items.map(({ key: name }) => name)).toEqual(["shop_~limit_create_1:60000:1"]);
  });

  it("limits a route, then all routes of its controller together, before it runs once per key", async () => {
    const locks = inMemory();
    class Orders {
      create(): string {
        return "made";
      }
      list(): string {
        return "found";
      }
    }
    const limit = RateLimit({ name: "create", rates: [{ count: 1, perMs: 60_000 }] }) as MethodDecorator;
    decorated(Orders, { create: [Post("orders"), Idempotent(), limit], list: [Post("lists")] });
    RateLimit({ name: "all", rates: [{ count: 3, perMs: 60_000, burst: 3 }] })(Orders);
    const url = await served([Orders], locks);
    const told = async (path: string) => (await fetch(url + path, ASKED)).headers.get("ratelimit");
    expect(await told("/orders")).toBe('"create";r=0;t=60, "all";r=2;t=20');
    expect(await told("/lists")).toBe('"all";r=1;t=20');
    const refused = await fetch(`${url}/orders`, { method: "POST", headers: { "idempotency-key": "form-2" } });
    expect([refused.status, (await locks.runs.list()).items.length]).toEqual([429, 1]);
  });

  it("gives a method that two controllers inherit the options of each", async () => {
    let calls = 0;
    class Base {
      create(): object {
        return { call: ++calls };
      }
    }
    decorated(Base, { create: [Post("orders")] });
    class First extends Base {}
    class Second extends Base {}
    Controller("first")(First);
    Controller("second")(Second);
    Idempotent({ service: "one", caller: "none" })(First);
    Idempotent({ service: "two", caller: () => "ann" })(Second);
    const locks = inMemory();
    const url = await served([First, Second], locks);
    for (const path of ["first", "second"]) expect((await fetch(`${url}/${path}/orders`, ASKED)).status).toBe(201);
    const runs = (await locks.runs.list()).items.map(({ key: name }) => name);
    expect(runs).toEqual([expect.stringMatching(/^one_~http_POST_/), expect.stringMatching(/^two_~http_ann_POST_/)]);
  });

  describe("work that goes on after an interceptor gave it up", () => {
    class GivesUp implements NestInterceptor {
      intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
        const late = timer(1).pipe(
          map(() => {
            throw new GatewayTimeoutException();
          }),
        );
        return race(next.handle(), late);
      }
    }
    const once = Idempotent({ waitMs: 0 });
    const routes = { pay: [Post("pay"), UseInterceptors(GivesUp)] };

    /** Returns the statuses of a request and its retry, and how many of the works that pass the gate were there at once. */
    async function retried(make: (work: () => Promise<string>) => new () => object): Promise<readonly unknown[]> {
      const freed = createGate();
      let [inside, most] = [0, 0];
      const controller = make(async () => {
        most = Math.max(most, ++inside);
        await freed.opened;
        inside--;
        return "paid";
      });
      const url = await served([controller], inMemory());
      const [first, retry] = [await fetch(`${url}/pay`, ASKED), await fetch(`${url}/pay`, ASKED)];
      freed.open();
      return [first.status, retry.status, most];
    }

    it.each<[string, (work: () => Promise<string>) => new () => object]>([
      [
        "a method",
        (work) => {
          class Orders {
            async pay(): Promise<string> {
              return work();
            }
          }
          decorated(Orders, { pay: [...routes.pay, once] });
          return Orders;
        },
      ],
      [
        "a controller",
        (work) => {
          class Orders {
            async pay(): Promise<string> {
              return work();
            }
          }
          decorated(Orders, routes);
          once(Orders);
          return Orders;
        },
      ],
      [
        "a controller that inherits the method",
        (work) => {
          class Base {
            async pay(): Promise<string> {
              return work();
            }
          }
          class Between extends Base {}
          class Orders extends Between {}
          decorated(Base, routes);
          Controller()(Orders);
          once(Orders);
          return Orders;
        },
      ],
      [
        "a method that returns a thenable",
        (work) => {
          class Orders {
            pay(): object {
              const working = work();
              return { then: working.then.bind(working) };
            }
          }
          decorated(Orders, { pay: [...routes.pay, once] });
          return Orders;
        },
      ],
      [
        "a controller whose method calls others, which end before it",
        (work) => {
          class Orders {
            async pay(): Promise<string> {
              await this.order();
              await Promise.all([this.order(), this.open()]);
              return work();
            }
            async open(): Promise<void> {
              return undefined;
            }
            async order(): Promise<void> {
              return undefined;
            }
          }
          decorated(Orders, { ...routes, order: [Post("orders")] });
          once(Orders);
          return Orders;
        },
      ],
    ])("has no other beside it: %s", async (_which, make) => {
      expect(await retried(make)).toEqual([504, 409, 1]);
    });

    it("control: has one beside it where the method returns an Observable, whose work can't be seen", async () => {
      const unseen = retried((work) => {
        class Orders {
          pay(): Observable<string> {
            return from(work());
          }
        }
        decorated(Orders, { pay: [...routes.pay, once] });
        return Orders;
      });
      expect(await unseen).toEqual([504, 504, 2]);
    });
  });

  it("begins a query that a method returns once, and leaves one that a method builds on as it is", async () => {
    let begun = 0;
    class Orders {
      find(): object {
        return this.query().where();
      }
      query(): { where(): object; then: unknown } {
        const then = (done: (rows: string[]) => void): void => done([`row ${++begun}`]);
        return { where: () => ({ then }), then };
      }
    }
    decorated(Orders, { find: [Post("find")] });
    Idempotent()(Orders);
    const url = await served([Orders], inMemory());
    expect(await (await fetch(`${url}/find`, ASKED)).json()).toEqual(["row 1"]);
  });

  describe("outside of HTTP", () => {
    /** An application's handler as GraphQL, a transport or a gateway of WebSockets calls it: Nest makes all of them by this creator. */
    async function handled(type: string, method: (args: object) => unknown, isPlain = false) {
      class Payments {
        pay(_parent: unknown, args: object): unknown {
          return method(args);
        }
      }
      const limit = RateLimit({ name: "pay", rates: [{ count: 3, perMs: 60_000, burst: 3 }] }) as MethodDecorator;
      decorated(Payments, { pay: isPlain ? [] : [limit, Idempotent()] });
      class AppModule {} // eslint-disable-line @typescript-eslint/no-extraneous-class -- so is every module of Nest
      const holdfast = HoldfastModule.forRoot({ locks: inMemory(), service: "shop", caller: "none" });
      Module({ providers: [Payments], imports: [holdfast] })(AppModule);
      const app = await NestFactory.create(AppModule, { logger: false });
      await app.init();
      open({ close: () => app.close() });
      const payments = app.get(Payments);
      const enhanced = { guards: true, interceptors: true, filters: true };
      return app
        .get(ExternalContextCreator)
        .create(payments, payments.pay as never, "pay", undefined, undefined, undefined, undefined, enhanced, type);
    }
    const req = { method: "POST", url: "/graphql", headers: { "idempotency-key": "form-1" } };
    const info = { fieldName: "pay", path: { key: "pay" } };
    const extensions = (code: string): unknown => expect.objectContaining({ extensions: expect.objectContaining({ code }) as unknown });

    it("resolves a field of GraphQL once per key, compares its arguments, and limits it", async () => {
      let calls = 0;
      const pay = await handled("graphql", ({ cents }: { cents?: number }) => ({ call: ++calls, cents }));
      const headers = new Map<string, unknown>();
      const res = { getHeaders: () => ({}), header: (name: string, value: unknown) => headers.set(name, value) };
      const ask = (cents: number) => thrownBy(pay(undefined, { cents }, { req, res }, info) as Promise<unknown>);
      expect([await ask(7), await ask(7), calls]).toEqual([{ call: 1, cents: 7 }, { call: 1, cents: 7 }, 1]);
      expect(await ask(8)).toEqual(extensions("fingerprint-mismatch"));
      expect([headers.get("RateLimit"), await ask(7)]).toEqual(['"pay";r=0;t=20', extensions("rate-limited")]);
    });

    it("tells a client of GraphQL of a lock that a resolver found held by the problem, and names no key and no holder", async () => {
      const locks = inMemory();
      await using _held = await locks.acquire("ORDER_1231", { owner: "checkout-7" });
      const pay = await handled("graphql", () => locks.withLock("ORDER_1231", { waitMs: 0 }, () => "paid"), true);
      const error = (await thrownBy(pay(undefined, {}, { req }, info) as Promise<unknown>)) as Error;
      expect(error).toEqual(extensions("locked"));
      expect(JSON.stringify([error.message, error])).not.toMatch(/ORDER_1231|checkout-7/);
    });

    it("refuses a field that is in one operation twice, at both places; control: another field, and the same place twice, are none", async () => {
      let calls = 0;
      const pay = await handled("graphql", () => ++calls);
      const field = (value: string, alias?: string) => ({ kind: "Field", name: { value }, ...(alias && { alias: { value: alias } }) });
      const spread = { kind: "FragmentSpread", name: { value: "more" } };
      const ask = (at: string, selections: object[], fragments = {}) => {
        const told = { ...info, path: { key: at }, operation: { selectionSet: { selections } }, fragments };
        return thrownBy(pay(undefined, {}, { req }, told) as Promise<unknown>);
      };
      const fragments = { more: { kind: "FragmentDefinition", name: { value: "pay" }, selectionSet: { selections: [field("pay", "b")] } } };
      const refused = extensions("invalid-request");
      expect(await ask("a", [field("pay", "a"), field("pay", "b")])).toEqual(refused);
      expect([await ask("b", [field("pay", "a"), spread], fragments), calls]).toEqual([refused, 0]);
      expect(await ask("pay", [field("pay"), field("pay"), field("refund", "b")])).toBe(1);
    });

    it("has no key in a request without one, and runs nothing then", async () => {
      const pay = await handled("graphql", () => expect.unreachable("it has no key"));
      expect(await thrownBy(pay(undefined, {}, { req: { ...req, headers: {} } }, info) as Promise<unknown>)).toEqual(
        extensions("invalid-request"),
      );
    });

    it.each(["rpc", "ws", "graphql"])("refuses by name a call of %s that has no request", async (type) => {
      const pay = await handled(type, () => expect.unreachable("it is refused"));
      const refused = { name: "InvalidRequestError", message: expect.stringMatching(/^@RateLimit\(\) on pay: /) as string };
      expect(await thrownBy(pay(undefined, {}, {}, info) as Promise<unknown>)).toMatchObject(refused);
    });
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
    const url = await served([Orders], inMemory());
    expect([(await fetch(`${url}/orders`, ASKED)).status, calls]).toEqual([500, 0]);
  });
});
