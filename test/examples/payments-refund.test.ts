/** The refund: the protection by the run, the protection by the provider's idempotency key, and each without the other. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Provider, providerAt, RefusedError } from "../../examples/payments/provider.js";
import { type ProviderServer, startProvider } from "../../examples/payments/provider-server.js";
import { type RefundRequest, refund } from "../../examples/payments/refund.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, LockError, LockLostError, RunFailedError } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { startChild } from "../support/child.js";
import { freshTable } from "../support/engine.js";
import type { RefundOrder } from "./dying-refund.js";
import { unprotected } from "./unprotected.js";

const CHARGED = 4900;
const REQUEST: RefundRequest = { refundId: "return-12", payment: "pay-7", amount: 1500 };
const KEY = "refund_return-12";
const LEASE_AND_MARGIN_MS = 32_000;
/** Enough for a process, a lease and a margin in real time on a loaded machine. */
const TIMEOUT_MS = 60_000;

let server: ProviderServer;
let provider: Provider;

async function open(ignoresKeys: boolean): Promise<void> {
  server = await startProvider({ ignoresKeys });
  provider = providerAt(server.url);
  await provider.charge({ payment: REQUEST.payment, amount: CHARGED }, "charge");
}
const refunds = (): readonly number[] => server.moved.slice(1);
const keys = (): readonly string[] => server.keys.slice(1);

afterEach(() => server.close());

/** The first attempt reaches the provider and freezes. The second starts after the first one's lease. Then the first wakes up. */
async function retriedAfterFreezing() {
  const frozen = createLockClient();
  const next = createLockClient({ store: frozen.store, clock: frozen.clock });
  const { reached, answer } = server.withholdNext();
  const first = refund({ locks: frozen, provider }, REQUEST).catch((error: unknown) => error);
  await reached;
  await frozen.close();
  await next.clock.advance(LEASE_AND_MARGIN_MS);
  const second = await refund({ locks: next, provider }, REQUEST);
  answer();
  return { first: await first, second, replayed: await refund({ locks: next, provider }, REQUEST) };
}

describe("a refund whose first attempt never heard back", () => {
  it("is taken over, asked for under the same key, and made once", async () => {
    await open(false);
    const { second, replayed } = await retriedAfterFreezing();
    expect(second).toMatchObject({ replayed: false, attempt: 2, value: { amount: 1500 } });
    expect(keys()).toEqual([KEY, KEY]);
    expect(refunds()).toEqual([-1500]);
    expect(replayed).toEqual({ ...second, replayed: true });
  });

  it("is recorded by the second attempt alone: the first, awake again, is told that it lost", async () => {
    await open(false);
    expect((await retriedAfterFreezing()).first).toBeInstanceOf(LockLostError);
  });

  it("control: with a provider that knows no keys it is made twice, whatever the run does", async () => {
    await open(true);
    await retriedAfterFreezing();
    expect(refunds()).toEqual([-1500, -1500]);
  });

  it("is taken over from a process that was killed", { timeout: TIMEOUT_MS }, async () => {
    await open(false);
    const { tableName, endpoint, place } = await freshTable();
    const { reached } = server.withholdNext();
    const order: RefundOrder = { endpoint, tableName, providerUrl: server.url, leaseMs: 1000, request: REQUEST };
    const child = startChild("dying-refund.ts", import.meta.url, order);
    await reached;
    await child.kill();
    const { attempt } = await refund({ locks: createTableClient(place), provider, leaseMs: 1000 }, REQUEST);
    expect(attempt).toBe(2);
    expect(keys()).toEqual([KEY, KEY]);
    expect(refunds()).toEqual([-1500]);
  });
});

describe("a refund that is asked for", () => {
  let locks: LockClient;
  beforeEach(async () => {
    locks = createLockClient();
    await open(true);
  });

  it("again, is made once", async () => {
    const first = await refund({ locks, provider }, REQUEST);
    expect(await refund({ locks, provider }, REQUEST)).toEqual({ ...first, replayed: true });
    expect(refunds()).toEqual([-1500]);
  });

  it("again with another amount, is refused, and the provider not asked", async () => {
    await refund({ locks, provider }, REQUEST);
    const other = await refund({ locks, provider }, { ...REQUEST, amount: 300 }).catch((error: unknown) => error);
    expect(other).toBeInstanceOf(LockError);
    expect(other).toMatchObject({ code: "fingerprint-mismatch" });
    expect(keys()).toEqual([KEY]);
  });

  it("control: without a run both are made, one with either amount", async () => {
    for (const amount of [1500, 300]) await refund({ locks: unprotected(), provider }, { ...REQUEST, amount });
    expect(refunds()).toEqual([-1500, -300]);
  });

  it("beyond what was charged, is refused for good", async () => {
    const greedy = { ...REQUEST, amount: CHARGED + 1 };
    await expect(refund({ locks, provider }, greedy)).rejects.toThrow(RefusedError);
    await expect(refund({ locks, provider }, greedy)).rejects.toThrow(RunFailedError);
    expect(keys()).toEqual([KEY]);
  });

  it("while the provider is down, is made by the next who asks", async () => {
    const down: Provider = { ...provider, refund: () => Promise.reject(new TypeError("fetch failed")) };
    await expect(refund({ locks, provider: down }, REQUEST)).rejects.toThrow("fetch failed");
    expect(await refund({ locks, provider }, REQUEST)).toMatchObject({ attempt: 2, replayed: false });
    expect(refunds()).toEqual([-1500]);
  });
});
