/** Regression: a waiter that polled in time was skipped, since a keep-alive doesn't change the version. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { sdkCalls } from "../support/sdk-calls.js";
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore, createMemoryTable } from "../support/memory-store.js";
import { QueueScene, READER } from "./queue-fixture.js";
import { A, B, C, D, dynamoStoreOn, LEASE_MS, MARGIN_MS, POLICY, START_MS } from "./fixture.js";
import { freshTable } from "../support/engine.js";
import { createGate } from "../support/run-gate.js";
import { BACKENDS } from "./backends.js";

describe.each(BACKENDS)("in %s", (_name, processes) => {
  it.each(["another process", "the same process"])(
    "a lapsed turn passes to it, noticed in %s that looked before it spoke",
    async (where) => {
      const [one, other] = await processes();
      const here = new QueueScene(one);
      await here.acquire(A);
      for (const id of [B, C, D]) await here.at(1).queue(id);
      await here.at(10).release(A); // B has the offer, and B is dead.
      const there = where === "the same process" ? here : new QueueScene(other, here.address);
      await there.read();
      if (here === there) await here.at(10 + LIMITS.keepAliveAfterMs).queue(D);
      expect(await here.at(10 + LIMITS.keepAliveAfterMs + 100).queue(C)).toMatchObject({ state: "waiting" });
      await there.at(10 + DEFAULTS.offerWindowMs).queue(D);
      expect(await here.standing()).toEqual({ holds: [], offers: [C], waiters: [D] });
    },
  );

  it("control: one that said nothing is passed over", async () => {
    const [one] = await processes();
    const here = new QueueScene(one);
    await here.acquire(A);
    for (const id of [B, C, D]) await here.at(1).queue(id);
    await here.at(10).release(A);
    await here.at(10 + DEFAULTS.offerWindowMs).queue(D);
    expect(await here.standing()).toEqual({ holds: [D], offers: [], waiters: [] });
  });
});

describe.each(BACKENDS)("a record that only waits, in %s", (_name, processes) => {
  const { retentionMs } = POLICY;
  const collectedAtMs = async (key: QueueScene) => 1000 * ((await key.read())?.ttlAtSec ?? 0) - START_MS;

  it("outlives a member of the wait set that polls for longer than the retention", async () => {
    const [one] = await processes();
    const key = new QueueScene(one);
    await key.acquire(A);
    await key.wait(A, B);
    const before = await key.read();
    const soonMs = retentionMs / 2;
    await key.at(soonMs).queue(B);
    expect(await collectedAtMs(key)).toBe(1000 * Math.ceil((LEASE_MS + MARGIN_MS + retentionMs) / 1000));
    const laterMs = soonMs + LEASE_MS + MARGIN_MS + 1000;
    await key.at(laterMs).queue(B);
    expect(await collectedAtMs(key)).toBe(1000 * Math.ceil((laterMs + retentionMs) / 1000));
    expect((await key.read())?.version).toBe(before?.version);
  });
});

describe.each(BACKENDS)("a release that stalls after it read its clocks, in %s", (_name, processes) => {
  const [READ_MS, SEEN_MS] = [7000, 9000];

  /** Offers the key to B. */
  async function offered(before: (here: QueueScene) => unknown, meanwhile: (there: QueueScene) => unknown): Promise<QueueScene> {
    const [one, other] = await processes();
    const here = new QueueScene(one);
    const there = new QueueScene(other, here.address);
    await here.acquire(A);
    await before(here);
    await meanwhile(there.at(SEEN_MS));
    await here.at(READ_MS).release(A);
    expect(await here.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
    return there;
  }

  it.each<[how: string, ...Parameters<typeof offered>]>([
    ["was added to the queue", () => undefined, (there) => there.queue(B)],
    ["was added as a reader", () => undefined, (there) => there.queue(B, READER)],
    ["sent a keep-alive", (here) => here.queue(B), (there) => there.queue(B)],
  ])("keeps the key for a waiter that %s meanwhile, until its next poll", async (_how, before, meanwhile) => {
    const there = await offered(before, meanwhile);
    await there.at(SEEN_MS + DEFAULTS.offerWindowMs - 1).acquire(C);
    expect(await there.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
    await there.at(SEEN_MS + DEFAULTS.offerWindowMs).acquire(C);
    expect(await there.standing()).toEqual({ holds: [C], offers: [], waiters: [] });
  });

  it("control: a waiter that was not seen meanwhile has its turn from the time that the release read", async () => {
    const there = await offered(
      (here) => here.at(READ_MS).queue(B),
      () => undefined,
    );
    await there.at(READ_MS + DEFAULTS.offerWindowMs).acquire(C);
    expect(await there.standing()).toEqual({ holds: [C], offers: [], waiters: [] });
  });
});

describe("a keep-alive whose write stalls", () => {
  /** A store whose keep-alives wait at the gate, and another one on the same records. */
  const STALLING: readonly (readonly [
    name: string,
    backend: (pass: () => Promise<void>) => Promise<readonly [stalls: LockStore, beside: LockStore]>,
  ])[] = [
    [
      "memory",
      async (pass) => {
        const table = createMemoryTable();
        const slow = {
          ...table,
          touchWaiter: (...args: Parameters<typeof table.touchWaiter>) => pass().then(() => table.touchWaiter(...args)),
        };
        return [createMemoryStore({ policy: POLICY, table: slow }), createMemoryStore({ policy: POLICY, table })];
      },
    ],
    [
      "the table",
      async (pass) => {
        const { calls, tableName, endpoint } = await freshTable();
        const slow = engineClient(endpoint);
        slow.middlewareStack.add(
          (next) => async (args) => {
            const { UpdateExpression = "" } = args.input as { readonly UpdateExpression?: string };
            if (UpdateExpression.includes("qv =")) await pass();
            return next(args);
          },
          { step: "initialize" },
        );
        const store = (by: typeof calls): LockStore => dynamoStoreOn({ calls: by, tableName }, () => 0);
        return [store(sdkCalls(slow)), store(calls)];
      },
    ],
  ];

  it.each(STALLING)("in %s does not take a later one back", async (_name, backend) => {
    const { open, reached, pass } = createGate();
    const [stalls, beside] = await backend(pass);
    const key = new QueueScene(beside);
    await key.acquire(A);
    await key.queue(B);
    const halfMs = DEFAULTS.waiterTtlMs / 2;
    const late = new QueueScene(stalls, key.address).at(halfMs).queue(B);
    await reached;
    await key.at(halfMs + 3000).queue(B);
    const untilMs = (await key.read())?.waiters[0]?.aliveUntilMs;
    open();
    expect(await late).toMatchObject({ state: "waiting" });
    expect((await key.read())?.waiters[0]?.aliveUntilMs).toBe(untilMs);
    expect(untilMs).toBe(START_MS + halfMs + 3000 + DEFAULTS.waiterTtlMs);
  });
});
