/** Functions and methods under a lock whose key comes from their arguments: as a decorator and as a wrapper, with one key or a list. */
import { transform } from "esbuild";
import { Readable } from "node:stream";
import { defer } from "rxjs";
import { describe, expect, it } from "vitest";
import type { Lease, LeaseSet, LockClient } from "../../../lib/index.js";
import { type LockedOptions, currentLease, InvalidRequestError, key, locked, LockTimeoutError, runOnce } from "../../../lib/index.js";
import { idempotencyHandler, lockHandler } from "../../../lib/middy.js";
import { thrownBy } from "../../support/run-gate.js";
import { type Harness, createHarness } from "../harness.js";

interface Order {
  readonly id: number | undefined;
}

const keyOf = (order: Order): string => key("ORDER", order.id!);

function thrownIn(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

/** A service whose methods are locked with the harness's client. */
function ordersOn({ locks }: Harness) {
  class Orders {
    readonly locks = locks;
    readonly done: string[] = [];

    @locked({ key: keyOf })
    async accept(order: Order, note = ""): Promise<string> {
      this.done.push(`accept ${order.id} ${note}`);
      return `accepted ${order.id}`;
    }

    @locked({ key: keyOf, whenHeld: "skip" })
    async remind(order: Order): Promise<string | undefined> {
      this.done.push(`remind ${order.id}`);
      return "reminded";
    }

    @locked({ key: keyOf, whenHeld: "throw" })
    async cancel(order: Order): Promise<void> {
      this.done.push(`cancel ${order.id}`);
    }

    @locked({ key: (orders: readonly Order[]) => orders.map(keyOf) })
    async ship(orders: readonly Order[]): Promise<Lease | LeaseSet | undefined> {
      this.done.push(`ship ${orders.map(({ id }) => id).join(" ")}`);
      return currentLease();
    }

    @locked({ key: keyOf, locks: (self: Orders) => self.locks, leaseMs: 1000 })
    async hold(_order: Order, until: Promise<void>): Promise<boolean> {
      await until;
      return currentLease()?.isHeld() ?? false;
    }
  }
  return new Orders();
}

describe("a method", () => {
  it("runs under the key that its arguments name, with its own this, arguments and result, and frees it", async () => {
    const harness = createHarness();
    const orders = ordersOn(harness);
    expect(await orders.accept({ id: 1 }, "now")).toBe("accepted 1");
    expect(orders.done).toEqual(["accept 1 now"]);
    expect(harness.wire.of("acquire").map(({ request }) => request.key)).toEqual(["ORDER_1"]);
    expect((await harness.locks.inspect("ORDER_1")).holders).toEqual([]);
  });
});

describe("currentLease", () => {
  it("is the lease of the nearest lock around, whichever way it was taken, and none in a run or in what goes on after it", async () => {
    const { locks, clock } = createHarness();
    let left: Promise<unknown> | undefined;
    await locks.withLock("outer", async (outer) => {
      expect(currentLease()).toBe(outer);
      await locks.withLocks(["a", "b"], (set) => expect(currentLease()).toBe(set));
      await locks.runOnce("run", () => void expect(currentLease()).toBeUndefined());
      expect(currentLease()).toBe(outer);
      left = new Promise<void>((resolve) => void clock.after(1000, resolve)).then(() => currentLease());
    });
    expect(currentLease()).toBeUndefined();
    expect(await clock.settle(left!)).toBeUndefined();
    const end = new AbortController();
    const election = locks.elect("led", { signal: end.signal }, (lease) => {
      expect(currentLease()).toBe(lease);
      end.abort();
    });
    await clock.settle(election);
  });
});

describe("a key that is held", () => {
  const held = async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire("ORDER_1");
    return { harness, lease, orders: ordersOn(harness) };
  };

  it("is waited for by default", async () => {
    const { harness, lease, orders } = await held();
    const accepting = orders.accept({ id: 1 });
    await harness.clock.advance(1_000);
    expect(orders.done).toEqual([]);
    await lease.release();
    await harness.clock.advance(10_000);
    expect(await accepting).toBe("accepted 1");
  });

  it("is a call skipped, with undefined", async () => {
    const { orders } = await held();
    expect(await orders.remind({ id: 1 })).toBeUndefined();
    expect(await orders.remind({ id: 2 })).toBe("reminded");
    expect(orders.done).toEqual(["remind 2"]);
  });

  it("is LockTimeoutError at once", async () => {
    const { orders } = await held();
    await expect(orders.cancel({ id: 1 })).rejects.toThrow(LockTimeoutError);
    expect(orders.done).toEqual([]);
  });

  it("further in is that function's own affair: its LockTimeoutError skips nothing further out", async () => {
    const { harness } = await held();
    const inner = locked({ locks: harness.locks, key: () => "ORDER_1", whenHeld: "throw" }, async () => "inner");
    const outer = locked({ locks: harness.locks, key: () => "ORDER_2", whenHeld: "skip" }, async () => inner());
    await expect(outer()).rejects.toThrow(LockTimeoutError);
  });
});

describe("a list", () => {
  const ids = (count: number): Order[] => Array.from({ length: count }, (_, id) => ({ id }));

  it("of none locks nothing, and the method runs", async () => {
    const harness = createHarness();
    const orders = ordersOn(harness);
    expect(await orders.ship([])).toBeUndefined();
    expect([orders.done, harness.wire.sent]).toEqual([["ship "], []]);
  });

  it("of one, or of one several times, is a lock", async () => {
    const harness = createHarness();
    await ordersOn(harness).ship([{ id: 1 }, { id: 1 }]);
    expect([harness.wire.of("acquire").length, harness.wire.of("acquireSet").length]).toEqual([1, 0]);
  });

  it.each([2, 25])("of %d is one set", async (count) => {
    const harness = createHarness();
    const set = (await ordersOn(harness).ship(ids(count))) as LeaseSet;
    expect(set.keys).toHaveLength(count);
    expect([harness.wire.of("acquire").length, harness.wire.of("acquireSet").length]).toEqual([0, 1]);
  });

  it("of more than 25 is refused by name and number, and the method does not run", async () => {
    const harness = createHarness();
    const orders = ordersOn(harness);
    await expect(orders.ship(ids(26))).rejects.toThrow("Orders.ship: its arguments name 26 keys; a set has at most 25");
    expect([orders.done, harness.wire.sent]).toEqual([[], []]);
  });
});

describe("a key that can't be made", () => {
  it.each<[what: string, make: () => unknown, message: string]>([
    ["a part is undefined", () => keyOf({ id: undefined }), "its key could not be made: key(): part 2 is undefined"],
    ["a part is null", () => key("ORDER", null as never), "its key could not be made: key(): part 2 is null"],
    ["a part is empty", () => key("ORDER", ""), "its key could not be made: key(): part 2 is empty"],
    ["a part is NaN", () => key("ORDER", NaN), "its key could not be made: key(): part 2 is NaN"],
    ["a part is an object", () => key("ORDER", {} as never), "its key could not be made: key(): part 2 is an object"],
    ["the function throws", () => (undefined as unknown as Order).id, "its key could not be made: Cannot read properties of undefined"],
    ["it is undefined", () => undefined, "its key is undefined; it must be text"],
    ["it is null", () => null, "its key is null; it must be text"],
    ["it is empty", () => "", 'its key is ""; it must be text'],
    ["it is NaN", () => NaN, "its key is NaN; it must be text"],
    ["it is an object", () => ({}), "its key is an object; it must be text"],
    ["it is a promise", () => Promise.resolve("ORDER_1"), "its key is an object; it must be text"],
    ["one of a list is undefined", () => ["ORDER_1", undefined], "its key is undefined; it must be text"],
    ["one of a list is a list", () => [["ORDER_1"]], "its key is a list; it must be text"],
  ])("because %s: InvalidRequestError names the function and the rule, and the function does not run", async (_what, make, message) => {
    const harness = createHarness();
    let ran = 0;
    const pay = locked({ locks: harness.locks, key: make as () => string }, async function settle() {
      ran++;
    });
    const error = await pay().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect((error as InvalidRequestError).message).toContain(`settle: ${message}`);
    expect([(error as InvalidRequestError).field, ran, harness.wire.sent]).toEqual(["key", 0, []]);
  });

  it("is named by class and method", async () => {
    await expect(ordersOn(createHarness()).accept({ id: undefined })).rejects.toThrow("Orders.accept: its key could not be made");
  });

  it.each<[options: object, message: string]>([
    [{}, "key: undefined given; it must be a function of the arguments"],
    [{ key: keyOf, whenHeld: "maybe" }, 'whenHeld: "maybe" given; it must be "wait" or "skip" or "throw"'],
    [{ key: keyOf, whenUnavailable: "maybe" }, 'whenUnavailable: "maybe" given; it must be "throw"'],
    [{ key: keyOf, leaseMs: 3 }, "leaseMs: 3 given; it is a whole number of ms from 1000 to 86400000"],
    [{ key: keyOf, leaseSeconds: 3 }, "leaseSeconds: is not an option of locked; these are: key, locks, whenHeld,"],
    [undefined as never, "options: undefined given; locked takes an object of options: key,"],
  ])("%j is refused before any call", (options, message) => {
    expect(() => locked(options as LockedOptions<unknown, []>, async () => undefined)).toThrow(message);
  });

  it.each<[kind: string, fn: () => unknown]>([
    [
      "an async generator",
      async function* () {
        yield await Promise.resolve(1);
      },
    ],
    [
      "a generator",
      function* () {
        yield 1;
      },
    ],
  ])("%s is refused before any call: its work would begin when the lock is released", async (_kind, fn) => {
    const { locks, wire } = createHarness();
    const work = fn as () => Promise<number>;
    for (const wrap of [() => locked({ locks, key: () => "k" }, work), () => runOnce({ locks, key: () => "k" }, work)])
      expect(thrownIn(wrap)).toMatchObject({ name: "InvalidRequestError", field: "fn", message: expect.stringContaining("generator") });
    const method = { kind: "method", name: "pages", static: false } as ClassMethodDecoratorContext<unknown, typeof work>;
    expect(() => locked({ locks, key: () => "k" })(work, method)).toThrow("generator");
    for (const ask of [() => locks.withLock("k", work), () => locks.withLocks(["k"], work), () => locks.runOnce("k", work)])
      await expect(ask()).rejects.toMatchObject({ field: "work", message: expect.stringContaining("generator") });
    expect(wire.sent).toEqual([]);
  });

  it("a method that was detached from its instance says what is missing, and runs where nothing is", async () => {
    const { accept } = ordersOn(createHarness());
    await expect(accept({ id: 1 })).rejects.toThrow("accept: needs a client: the option locks, or a property locks of the instance");
    const { locks } = createHarness();
    class Clock {
      @locked({ locks, key: () => "k" })
      async tick(): Promise<string> {
        return "ticked";
      }
    }
    const { tick } = new Clock();
    expect(await tick.call(undefined as never)).toBe("ticked");
  });

  it("a method without a client says so", async () => {
    const pay = locked({ key: () => "k" }, async function settle() {
      await Promise.resolve();
    });
    await expect(pay()).rejects.toThrow("settle: needs a client");
  });

  it.each([
    ["@locked", () => locked({ key: () => "k" }), "async accept() {}", "accept"],
    ["@locked", () => locked({ key: () => "k" }), "static async accept() {}", "accept"],
    ["@runOnce", () => runOnce({ key: () => "k" }), "async [Symbol.for('pay')]() {}", "Symbol(pay)"],
    ["@runOnce", () => runOnce({ key: () => "k" }), "accept = async () => {}", "accept"],
  ])("%s compiled with experimentalDecorators says what to write instead", async (wrapper, decorator, member, name) => {
    const source = `export function declare(decorate: any) { class Orders { @decorate ${member} } }`;
    const tsconfigRaw = { compilerOptions: { experimentalDecorators: true, useDefineForClassFields: false } };
    const { code } = await transform(source, { loader: "ts", format: "esm", tsconfigRaw });
    const compiled = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { declare(decorate: unknown): unknown };
    const error = thrownIn(() => compiled.declare(decorator()));
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect((error as Error).message).toBe(
      `${wrapper} on ${name}: is a standard decorator of methods; with experimentalDecorators, wrap the function: ${wrapper.slice(1)}(options, fn)`,
    );
  });

  it("a decorator of what is no method says so", () => {
    const onField = locked({ key: () => "k" }) as unknown as (value: unknown, context: { kind: string }) => unknown;
    expect(() => onField(() => undefined, { kind: "field" })).toThrow("is a standard decorator of methods");
  });
});

it("keeps types: arguments, result, and undefined where a call may be skipped", () => {
  const { locks } = createHarness();
  const pay = async (order: Order, amount: number): Promise<number> => amount + (order.id ?? 0);
  const lockedPay: (order: Order, amount: number) => Promise<number> = locked({ locks, key: (order: Order) => keyOf(order) }, pay);
  const skipping: (order: Order, amount: number) => Promise<number | undefined> = locked({ locks, key: keyOf, whenHeld: "skip" }, pay);
  // @ts-expect-error -- a call that may be skipped is not always a number
  const wrong: (order: Order, amount: number) => Promise<number> = locked({ locks, key: keyOf, whenHeld: "skip" }, pay);
  // @ts-expect-error -- the key is made of other arguments than the function's
  const other = locked({ locks, key: (text: string) => text }, pay);
  expect([lockedPay, skipping, wrong, other].every((fn) => typeof fn === "function")).toBe(true);
});

describe("an iterator, a stream or an Observable as the result of work", () => {
  const begun: string[] = [];
  async function* pages(): AsyncGenerator<string> {
    begun.push("async");
    yield await Promise.resolve("page");
  }
  function* lines(): Generator<string> {
    begun.push("sync");
    yield "line";
  }
  /** As compilers write one for older runtimes, and as paginators and cursors are. */
  const cursor = () => ({ next: () => pages().next(), [Symbol.asyncIterator]: () => pages() });
  const feed = () => ({ [Symbol.asyncIterator]: () => pages() });
  const stream = () => Readable.from(pages());
  const observable = () => defer(() => pages());
  const rates = [{ count: 9, perMs: 1000, burst: 9 }];
  const context = { getRemainingTimeInMillis: () => 60_000 };

  it.each<[name: string, call: (locks: LockClient, work: () => unknown) => Promise<unknown>]>([
    ["withLock", (locks, work) => locks.withLock("k", work)],
    ["withLocks", (locks, work) => locks.withLocks(["k"], work)],
    ["a mutex", (locks, work) => locks.mutex("k").withLock(work)],
    ["runOnce", (locks, work) => locks.runOnce("k", work)],
    ["tick", (locks, work) => locks.tick("k", { everyMs: 60_000 }, work)],
    ["elect", (locks, work) => locks.elect("k", { signal: AbortSignal.timeout(60_000) }, work as () => Promise<void>)],
    ["a limiter", (locks, work) => locks.limiter("k", { rates }).run(work)],
    ["a limiter with concurrent", (locks, work) => locks.limiter("k", { rates, concurrent: 1 }).run(work)],
    ["locked", (locks, work) => locked({ locks, key: () => "k" }, async () => work())()],
    ["the wrapper runOnce", (locks, work) => runOnce({ locks, key: () => "k" }, async () => work())()],
    ["lockHandler", (locks, work) => lockHandler({ locks, key: () => "k" }, () => work())({}, context)],
    [
      "idempotencyHandler",
      (locks, work) => idempotencyHandler({ locks, service: "s", caller: "none", key: () => "k" }, () => work())({}, context),
    ],
  ])("is refused by name by %s, and nothing of it has run; control: values that the work read are its result", async (name, call) => {
    for (const work of [
      () => pages(),
      () => lines(),
      async () => cursor(),
      async () => feed(),
      async () => stream(),
      async () => observable(),
    ]) {
      const { clock, locks, rival } = createHarness();
      const refused = await clock.settle(thrownBy(call(locks, work)));
      expect(refused).toMatchObject({
        ...{ name: "InvalidRequestError", field: "work" },
        message:
          "work: returned an iterator, a stream or an Observable, which would do work after this call is over; consume it in the work, and return its values",
      });
      expect(begun).toEqual([]);
      expect(await rival.tryAcquire("k")).not.toBeNull();
    }
    const { clock, locks } = createHarness();
    const read = async (): Promise<string[]> => {
      const values: string[] = [];
      for await (const page of pages()) values.push(page);
      if (name === "elect") void locks.close();
      return values;
    };
    await clock.settle(call(locks, read));
    expect(begun.splice(0)).toEqual(["async"]);
  });
});
