/** The nested order: four services of one request under one lock, and a control without the scope. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type OrderRequest, type Service, PARTS, serve, serviceFor } from "../../examples/family/nested-order.js";
import { type Stage, openStage } from "../../examples/family/stage.js";
import { read } from "../../examples/family/table.js";
import { type LockClient, key } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";

const KEY = key("ORDER", "order-1");
const REQUEST: OrderRequest = { traceId: "0123456789abcdef-this", order: "order-1", product: "camera" };

let stage: Stage;
beforeAll(async () => {
  stage = await openStage({ endpoint: inject("engineEndpoint") });
});
afterAll(() => stage.close());

/** Clients of one shop with simulated time, and services that save to memory. */
function shop() {
  const first = createLockClient({ owner: "shop" });
  const join = (): LockClient => createLockClient({ owner: "shop", store: first.store, clock: first.clock });
  const saved: (readonly [id: string, token: number])[] = [];
  const save: Service["save"] = async (id, _value, token) => void saved.push([id, token]);
  const services = (parts: readonly string[], client: () => Pick<LockClient, "scope">, last = save): Service => {
    const [part = "", ...rest] = parts;
    return { locks: client(), part, save: rest.length > 0 ? save : last, next: rest.length > 0 ? services(rest, client, last) : undefined };
  };
  return { clock: first.clock, join, saved, save, services };
}

const unscoped = (locks: LockClient): Pick<LockClient, "scope"> => ({ scope: () => locks });
const outcome = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "served",
    (error: unknown) => (error as { code: string }).code,
  );

describe("an order that four services of one request write", () => {
  it("is written whole, under one token, and is free afterwards", async () => {
    await serve(
      serviceFor(PARTS, () => stage.join(), stage.table),
      REQUEST,
    );
    const items = await Promise.all(PARTS.map((part) => read(stage.table, `order-1 ${part}`)));
    expect(items.map((item) => item?.["value"])).toEqual(Array(4).fill("camera"));
    expect(new Set(items.map((item) => item?.["fencingToken"])).size).toBe(1);
    expect((await stage.join().inspect(KEY)).holders).toEqual([]);
  });

  it("control: without the scope the second service waits for the first until its time is up", async () => {
    const { clock, join, saved, services } = shop();
    const began = clock.monotonicMs();
    const served = outcome(
      serve(
        services(PARTS, () => unscoped(join())),
        REQUEST,
      ),
    );
    expect(await clock.settle(served)).toBe("wait-timeout");
    expect(clock.monotonicMs() - began).toBeGreaterThanOrEqual(30_000);
    expect(saved.map(([id]) => id)).toEqual(["order-1 main record"]);
  });
});
