/**
 * The form and the callbacks of the payment examples: effects that happen once with a run, and several times when the
 * same code runs without it.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Submission, submit } from "../../examples/payments/double-submit.js";
import { type Cases, casesIn } from "../../examples/payments/cases.js";
import { type Orders, ordersIn } from "../../examples/payments/orders.js";
import { type Desk, settle } from "../../examples/payments/payment-callback.js";
import { providerAt } from "../../examples/payments/provider.js";
import { type Till, openTill } from "../../examples/payments/till.js";
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import { createLockClient as createTestClient } from "../../lib/testing.js";
import { freshTable } from "../support/engine.js";
import { gate } from "./gate.js";
import { unprotected } from "./unprotected.js";

const LEASE_AND_MARGIN_MS = 32_000;
const THREE = [1, 2, 3];

let till: Till;
let fresh = 0;

beforeAll(async () => {
  till = await openTill({ endpoint: inject("engineEndpoint") });
});
afterAll(() => till.close());

/** The same function, which records its calls' arguments. */
function counting<A extends readonly unknown[], R>(work: (...args: A) => R): ((...args: A) => R) & { calls: A[] } {
  const calls: A[] = [];
  return Object.assign(
    (...args: A) => {
      calls.push(args);
      return work(...args);
    },
    { calls },
  );
}

const nameOf = (error: unknown): string => (error as Error).name;

describe("a form submitted three times at once", () => {
  const form = (product = "camera", customer = "ann"): Submission => ({
    headers: { "idempotency-key": `"form-${fresh}"` },
    body: JSON.stringify({ product }),
    customer,
  });
  const counted = () => {
    fresh++;
    const orders = ordersIn(till.table);
    return { ...orders, nextNumber: counting(orders.nextNumber), file: counting(orders.file) };
  };

  it.each(["table", "service"])("makes one order and gives three same answers, by way of the %s", async (way) => {
    const { env } = await freshTable();
    const gateway = await startGateway({ handler: compose(env, { log: () => undefined }), port: 0 });
    const orders = counted();
    const clients = THREE.map(() => (way === "table" ? till.join() : createLockClient({ url: gateway.url })));
    const answers = await Promise.all(clients.map((locks) => submit(locks, orders)(form())));
    const number = (JSON.parse(answers[0]!.body) as { number: number }).number;
    expect(answers.map(({ statusCode, body }) => [statusCode, body])).toEqual(Array(3).fill([201, JSON.stringify({ number })]));
    expect(answers.filter(({ headers }) => headers["idempotent-replayed"] === "true")).toHaveLength(2);
    expect(orders.file.calls).toEqual([[number, { customer: "ann", product: "camera" }]]);
    expect(await orders.get(number)).toEqual({ customer: "ann", product: "camera" });
    await gateway.close();
  });

  it("control: without a run it makes three orders", async () => {
    const orders = counted();
    const answers = await Promise.all(THREE.map(() => submit(unprotected(), orders)(form())));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(3);
  });

  it("refuses the key with another product, and a form without a key", async () => {
    const orders = counted();
    const handle = submit(till.join(), orders);
    expect((await handle(form())).statusCode).toBe(201);
    expect(await handle(form("console"))).toMatchObject({ statusCode: 422, body: '{"error":"fingerprint-mismatch"}' });
    expect(await handle({ ...form(), headers: {} })).toMatchObject({ statusCode: 400 });
    expect(orders.file.calls).toHaveLength(1);
  });

  it("never answers a customer with another's order", async () => {
    const orders = counted();
    const [ann, bob] = await Promise.all(["ann", "bob"].map((customer) => submit(till.join(), orders)(form("camera", customer))));
    expect(ann!.body).not.toBe(bob!.body);
    expect(orders.file.calls).toHaveLength(2);
  });

  /** The first attempt draws a number and dies before it files the order. */
  async function numbersDrawn(wrap: (locks: LockClient) => Pick<LockClient, "runOnce">): Promise<number> {
    const dying = createTestClient();
    const next = createTestClient({ store: dying.store, clock: dying.clock });
    const orders = counted();
    const filing = gate();
    const stuck: Orders = { ...orders, file: () => (filing.open(), new Promise(() => undefined)) };
    void submit(wrap(dying), stuck)(form());
    await filing.opened;
    await dying.close();
    await dying.clock.advance(LEASE_AND_MARGIN_MS);
    expect((await submit(wrap(next), orders)(form())).statusCode).toBe(201);
    return orders.nextNumber.calls.length;
  }

  it("goes on with the number that was drawn before it died", async () => {
    expect(await numbersDrawn((locks) => locks)).toBe(1);
  });

  it("control: without the checkpoint it draws another", async () => {
    const forgetful = (locks: LockClient): Pick<LockClient, "runOnce"> => ({
      runOnce: (name: string, options: object, work?: unknown) =>
        locks.runOnce(name, options, (run) =>
          (work as (run: object) => Promise<never>)(Object.create(run, { saveCheckpoint: { value: () => Promise.resolve() } }) as object),
        ),
    });
    expect(await numbersDrawn(forgetful)).toBe(2);
  });
});

describe("two callbacks and a page that is reloaded", () => {
  /** A desk for each caller, for a payment that has been made. No workflow starts before `together` callers have asked the provider. */
  async function deskFor(payment: string, join: () => Pick<LockClient, "runOnce">, together = THREE.length) {
    const cases = casesIn(till.table);
    const provider = providerAt(till.provider.url);
    await cases.open(payment, 4900);
    await provider.charge({ payment, amount: 4900 }, `paid ${payment}`);
    const all = gate();
    let asked = 0;
    const balance = async (of: string): Promise<number> => {
      const found = await provider.balance(of);
      if (++asked === together) all.open();
      return found;
    };
    const set = counting(cases.set);
    const startWorkflow = counting(async (_key: string, _input: { readonly payment: string }) => all.opened);
    const desk = (): Desk => ({ locks: join(), cases: { ...cases, set }, provider: { ...provider, balance }, startWorkflow });
    return { desk, set, startWorkflow, cases };
  }

  it("change the status once, start one workflow under the run's key, and are all told", async () => {
    const { desk, set, startWorkflow, cases } = await deskFor("callback-1", () => till.join());
    expect(await Promise.all(THREE.map(() => settle(desk(), "callback-1")))).toEqual(["PAID", "PAID", "PAID"]);
    expect(set.calls).toHaveLength(1);
    expect(startWorkflow.calls).toEqual([["settle_callback-1", { payment: "callback-1" }]]);
    expect((await cases.get("callback-1")).status).toBe("PAID");
  });

  it("control: without a run each of them does both", async () => {
    const { desk, set, startWorkflow } = await deskFor("callback-2", unprotected);
    await Promise.all(THREE.map(() => settle(desk(), "callback-2")));
    expect([set.calls.length, startWorkflow.calls.length]).toEqual([3, 3]);
  });

  it("use up no attempt before the money is there", async () => {
    const locks = till.join();
    const cases = casesIn(till.table);
    await cases.open("callback-3", 100);
    const startWorkflow = counting(async () => undefined);
    const desk: Desk = { locks, cases, provider: providerAt(till.provider.url), startWorkflow };
    expect(await settle(desk, "callback-3")).toBe("PENDING");
    expect(await locks.runs.get("settle_callback-3")).toBeNull();
    expect(startWorkflow.calls).toEqual([]);
  });

  /**
   * The first attempt freezes with a write in transit; another takes over and finishes; then the write arrives. Returns
   * the final state.
   */
  async function lateWrite(payment: string, tokenOf: (token: number) => number): Promise<string> {
    const frozen = createTestClient();
    const next = createTestClient({ store: frozen.store, clock: frozen.clock });
    const { desk, cases, startWorkflow } = await deskFor(payment, () => next, 1);
    const [writing, thawed] = [gate(), gate()];
    let landed = Promise.resolve();
    const set: Cases["set"] = (of, status, token) => {
      landed = thawed.opened.then(() => cases.set(of, status, tokenOf(token)));
      writing.open();
      return landed;
    };
    const first = settle({ ...desk(), locks: frozen, cases: { ...cases, set } }, payment).catch(nameOf);
    await writing.opened;
    await frozen.close();
    await frozen.clock.advance(LEASE_AND_MARGIN_MS);
    expect(await settle(desk(), payment)).toBe("PAID");
    expect(startWorkflow.calls.map(([name]) => name)).toEqual([`settle_${payment}`]);
    thawed.open();
    expect(await first).toBe("LockLostError");
    return landed.then(() => "landed", nameOf);
  }

  it("are fenced: what a frozen one writes after a later one wrote is refused", async () => {
    expect(await lateWrite("callback-4", (token) => token)).toBe("ConditionalCheckFailedException");
  });

  it("control: with another's token it lands", async () => {
    expect(await lateWrite("callback-5", () => Number.MAX_SAFE_INTEGER)).toBe("landed");
  });
});
