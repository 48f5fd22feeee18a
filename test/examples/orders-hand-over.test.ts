/** The hand-over of an order: a durable execution that holds the order's key while the goods are on the road. */
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { handOver } from "../../examples/orders/hand-over.js";
import { keyOf } from "../../examples/orders/order.js";
import type { Execution } from "../durable/durable-lambda.js";
import { type Scene, scene } from "../durable/scene.js";
import { type Counter, ACCEPT, AGREE, ASK, openCounter, PAY } from "./orders-counter.js";

let at: Counter;
beforeAll(async () => {
  at = await openCounter(inject("engineEndpoint"));
});
afterAll(() => at.local.close());
beforeEach(() => at.restock());

async function start(its: Scene, order: string): Promise<Execution> {
  const execution = its.lambda.start("hand over", (ctx, sandbox) =>
    handOver({ orders: at.shop.orders, locks: its.client(sandbox) }, { order, who: "sue" }, ctx),
  );
  await its.lambda.run();
  return execution;
}

describe("a hand-over", () => {
  it("holds the order while it is on the road, and nothing runs meanwhile", async () => {
    const order = await at.orderAfter(PAY, ACCEPT);
    const its = scene();
    const execution = await start(its, order);
    const asked = its.requests.length;
    await its.pass(119);
    expect(await its.rival.tryAcquire(keyOf(order))).toBeNull();
    expect(its.requests).toHaveLength(asked);
    await its.pass(2);
    expect(execution).toMatchObject({ status: "SUCCEEDED", result: { id: order, status: "COMPLETED" }, invocations: 2 });
    expect(await its.rival.tryAcquire(keyOf(order))).not.toBeNull();
  });

  it("waits asleep for whoever is at the order, and changes nothing of what they decided", async () => {
    const order = await at.orderAfter(PAY, ACCEPT, ASK);
    const its = scene();
    const colleague = await its.rival.acquire(keyOf(order));
    const execution = await start(its, order);
    const asked = its.requests.length;
    await its.pass(30);
    expect(its.requests).toHaveLength(asked);
    await at.tell(AGREE, { order, headers: at.keyed() });
    await colleague.release();
    await its.pass(1);
    expect(execution).toMatchObject({ status: "SUCCEEDED", result: { status: "REFUNDED" }, invocations: 2 });
  });

  it("completes the order once, if its process dies after the write", async () => {
    const order = await at.orderAfter(PAY, ACCEPT);
    const its = scene();
    let deaths = 0;
    its.lambda.kills = ({ at: when, what }) => when === "before" && what.includes("SUCCEED complete") && deaths++ === 0;
    const execution = await start(its, order);
    await its.pass(130);
    expect([deaths > 0, execution.status, execution.result]).toMatchObject([true, "SUCCEEDED", { status: "COMPLETED" }]);
  });

  it("fails without a change if the order is somebody else's", async () => {
    const order = await at.orderAfter(PAY, ACCEPT);
    const its = scene();
    const execution = its.lambda.start("hand over", (ctx, sandbox) =>
      handOver({ orders: at.shop.orders, locks: its.client(sandbox) }, { order, who: "bob" }, ctx),
    );
    await its.lambda.run();
    await its.pass(60);
    expect(execution).toMatchObject({ status: "FAILED", error: { ErrorMessage: expect.stringContaining("there is no order") as string } });
    expect(await its.rival.tryAcquire(keyOf(order))).not.toBeNull();
  });
});
