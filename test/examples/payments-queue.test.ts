/** The queue and the workflow of the payment examples, with a provider without idempotency keys. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { providerAt } from "../../examples/payments/provider.js";
import { type ProviderServer, startProvider } from "../../examples/payments/provider-server.js";
import { refundQueue } from "../../examples/payments/refund-queue.js";
import { type Till, openTill } from "../../examples/payments/till.js";
import { chargeTask } from "../../examples/payments/workflow-task.js";
import { unprotected } from "./unprotected.js";

describe("a queue and a workflow", () => {
  const MESSAGES = [
    { messageId: "1", body: JSON.stringify({ refundId: "queued-1", payment: "queued", amount: 1500 }) },
    { messageId: "2", body: JSON.stringify({ refundId: "queued-1", payment: "queued", amount: 1500 }) },
    { messageId: "3", body: JSON.stringify({ refundId: "queued-2", payment: "queued", amount: 9900 }) },
  ];
  const context = { getRemainingTimeInMillis: () => 30_000 };
  let till: Till;
  let keyless: ProviderServer;

  beforeAll(async () => {
    till = await openTill({ endpoint: inject("engineEndpoint") });
  });
  afterAll(() => till.close());
  beforeEach(async () => {
    keyless = await startProvider({ ignoresKeys: true });
    await providerAt(keyless.url).charge({ payment: "queued", amount: 4900 }, "");
  });
  afterEach(() => keyless.close());

  it("refund once what is asked for twice and delivered twice, and hand back what failed", async () => {
    const handle = refundQueue(till.join(), providerAt(keyless.url));
    const first = (await handle({ Records: MESSAGES }, context)).batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
    expect(first).toContain("3");
    expect(await handle({ Records: MESSAGES }, context)).toEqual({ batchItemFailures: [{ itemIdentifier: "3" }] });
    expect(keyless.moved).toEqual([4900, -1500]);
    // The records of a batch run concurrently. The third was refused for good and isn't retried.
    expect(keyless.keys.toSorted()).toEqual(["", "refund_queued-1", "refund_queued-2"]);
  });

  it("control: without runs it is refunded for every message", async () => {
    await refundQueue(unprotected(), providerAt(keyless.url))({ Records: MESSAGES }, context);
    expect(keyless.moved.slice(1)).toEqual([-1500, -1500]);
  });

  it("charge once per execution and state", async () => {
    const charge = chargeTask(till.join(), providerAt(keyless.url));
    const input = { execution: "order-1231", state: "Charge", payment: "task", amount: 100 };
    const before = keyless.moved.length;
    const [first, retried] = [await charge(input), await charge(input)];
    expect(retried).toEqual(first);
    expect((await charge({ ...input, execution: "order-1232" })).id).not.toBe(first.id);
    expect(keyless.moved.slice(before)).toEqual([100, 100]);
  });

  it("control: without a run a retried task charges again", async () => {
    const charge = chargeTask(unprotected(), providerAt(keyless.url));
    const input = { execution: "order-1", state: "Charge", payment: "task", amount: 100 };
    const before = keyless.moved.length;
    for (const _ of [1, 2]) await charge(input);
    expect(keyless.moved.slice(before)).toEqual([100, 100]);
  });
});
