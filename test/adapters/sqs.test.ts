/** The handler of a queue: each message's work once, failed messages again, and a FIFO queue's order preserved. */
import { describe, expect, it } from "vitest";
import { key } from "../../lib/index.js";
import type { SqsMessage } from "../../lib/middy.js";
import { runBatch, sqsHandler } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { createGate } from "../support/run-gate.js";
import { invocation } from "../support/invocation.js";

const QUEUE = "arn:aws:sqs:eu-central-1:111122223333:refunds";

/** Messages named after their group and place, such as `a1`. */
const messages = (arn: string, ...names: readonly string[]): SqsMessage[] =>
  names.map((name) => ({ messageId: name, body: name, eventSourceARN: arn, attributes: { MessageGroupId: name.slice(0, 1) } }));

const failures = (...names: readonly string[]) => ({ batchItemFailures: names.map((itemIdentifier) => ({ itemIdentifier })) });

describe("options that are undefined", () => {
  it("leave the defaults: a message that another works on is not waited for", async () => {
    const { clock, locks, rival } = createHarness();
    const gate = createGate();
    const working = rival.runOnce("message_m1", () => gate.pass());
    await gate.reached;
    const handler = sqsHandler({ locks, waitMs: undefined }, () => expect.unreachable("another runs it"));
    const began = clock.monotonicMs();
    expect(await clock.settle(handler({ Records: [{ messageId: "m1", body: "" }] }, invocation(clock)))).toEqual({
      batchItemFailures: [{ itemIdentifier: "m1" }],
    });
    expect(clock.monotonicMs() - began).toBe(0);
    gate.open();
    await working;
  });
});

describe("sqsHandler", () => {
  /** A queue's handler whose work fails for these messages. */
  function deployed(...failing: readonly string[]) {
    const harness = createHarness();
    const done: string[] = [];
    const handler = sqsHandler({ locks: harness.locks }, async ({ body }) => {
      if (failing.includes(body)) throw new Error(`${body} fails`);
      done.push(body);
      await new Promise<void>((resolve) => void harness.clock.after(10, resolve));
    });
    const deliver = (Records: readonly SqsMessage[], leftMs?: number) =>
      harness.clock.settle(handler({ Records }, invocation(harness.clock, leftMs)));
    return { ...harness, done, deliver };
  }

  it("works once on each message, however often it is delivered", async () => {
    const { deliver, done } = deployed();
    const Records = messages(QUEUE, "a1", "b1", "c1");
    expect([await deliver(Records), await deliver(Records)]).toEqual([failures(), failures()]);
    expect(done).toEqual(["a1", "b1", "c1"]);
  });

  it("reports those that failed, and goes on with the others", async () => {
    const { deliver, done } = deployed("a1", "b2");
    expect(await deliver(messages(QUEUE, "a1", "a2", "b1", "b2", "b3"))).toEqual(failures("a1", "b2"));
    expect(done.toSorted()).toEqual(["a2", "b1", "b3"]);
  });

  it("reports one that another works on just now, without a wait", async () => {
    const { clock, deliver, rival } = deployed();
    void rival.runOnce(key("message", "a1"), () => createGate().pass());
    await clock.advance(0);
    const began = clock.monotonicMs();
    expect(await deliver(messages(QUEUE, "a1"))).toEqual(failures("a1"));
    expect(clock.monotonicMs()).toBe(began);
  });

  it("begins nothing that its invocation could not end", async () => {
    const { deliver, done } = deployed();
    expect(await deliver(messages(QUEUE, "a1", "a2"), 900)).toEqual(failures("a1", "a2"));
    expect(await deliver(messages(`${QUEUE}.fifo`, "a1", "b1"), 900)).toEqual(failures("a1", "b1"));
    expect(done).toEqual([]);
  });

  it("does nothing with an empty batch", async () => {
    expect(await deployed().deliver([])).toEqual(failures());
  });

  describe("of a FIFO queue", () => {
    const FIFO = `${QUEUE}.fifo`;

    it("works on a group one after the other, and on groups side by side", async () => {
      const harness = createHarness();
      const inside = new Map<string, number>();
      const most = { ofOneGroup: 0, ofAll: 0 };
      const handler = sqsHandler({ locks: harness.locks }, async ({ body }) => {
        const group = body.slice(0, 1);
        inside.set(group, (inside.get(group) ?? 0) + 1);
        most.ofOneGroup = Math.max(most.ofOneGroup, inside.get(group)!);
        most.ofAll = Math.max(
          most.ofAll,
          [...inside.values()].reduce((sum, now) => sum + now, 0),
        );
        await new Promise<void>((resolve) => void harness.clock.after(10, resolve));
        inside.set(group, inside.get(group)! - 1);
      });
      const deliver = (arn: string) =>
        harness.clock.settle(handler({ Records: messages(arn, "a1", "b1", "a2", "b2", "a3") }, invocation(harness.clock)));
      await deliver(FIFO);
      expect(most).toEqual({ ofOneGroup: 1, ofAll: 2 });
    });

    it("control: of any other queue, the same messages are worked on all at once", async () => {
      const { clock, locks } = createHarness();
      let [inside, most] = [0, 0];
      const handler = sqsHandler({ locks }, async () => {
        most = Math.max(most, ++inside);
        await new Promise<void>((resolve) => void clock.after(10, resolve));
        inside--;
      });
      await clock.settle(handler({ Records: messages(QUEUE, "a1", "b1", "a2", "b2", "a3") }, invocation(clock)));
      expect(most).toBe(5);
    });

    it("lets nothing of a group pass one that failed, and goes on with the other groups", async () => {
      const { deliver, done } = deployed("a2");
      const Records = messages(FIFO, "a1", "b1", "a2", "a3", "b2", "a4");
      expect(await deliver(Records)).toEqual(failures("a2", "a3", "a4"));
      expect([done.filter((name) => name.startsWith("a")), done.filter((name) => name.startsWith("b"))]).toEqual([["a1"], ["b1", "b2"]]);
    });

    it("works on at most ten groups at once", async () => {
      const { clock, locks } = createHarness();
      let [inside, most] = [0, 0];
      const handler = sqsHandler({ locks }, async () => {
        most = Math.max(most, ++inside);
        await new Promise<void>((resolve) => void clock.after(10, resolve));
        inside--;
      });
      const names = Array.from({ length: 26 }, (_, index) => `${String.fromCharCode(97 + index)}1`);
      expect(await clock.settle(handler({ Records: messages(FIFO, ...names) }, invocation(clock)))).toEqual(failures());
      expect(most).toBe(10);
    });
  });

  it("takes the key, the payload and who is told of failures from its options", async () => {
    const { clock, locks } = createHarness();
    const told: string[] = [];
    const options = {
      locks,
      keyFor: ({ body }: SqsMessage) => key("refund", body),
      onFailure: ({ messageId }: SqsMessage) => void told.push(messageId),
    };
    const handler = sqsHandler(options, async (_message, run) => {
      if (run.attempt === 1) throw new Error("the bank is closed");
    });
    const Records = messages(QUEUE, "a1");
    expect(await clock.settle(handler({ Records }, invocation(clock)))).toEqual(failures("a1"));
    expect(await clock.settle(handler({ Records }, invocation(clock)))).toEqual(failures());
    expect([told, (await locks.runs.get("refund_a1"))?.state]).toEqual([["a1"], "succeeded"]);
  });
});

it("runBatch is here too", async () => {
  const { clock, locks } = createHarness();
  const Records = [{ messageId: "1", body: "" }];
  expect(await clock.settle(runBatch(locks, { Records }, invocation(clock), {}, async () => undefined))).toEqual(failures());
});
