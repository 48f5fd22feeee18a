/**
 * Handlers of events that can be delivered twice. Of a queue: each message's work once, failed messages again, and a FIFO queue's order
 * preserved. Of a schedule: which occurrence an event names, and which outcomes make Lambda deliver it again.
 */
import { describe, expect, it, vi } from "vitest";
import { type Limiter, type TickResult, key } from "../../lib/index.js";
import { type SqsHandlerOptions, type SqsMessage, runBatch, scheduleHandler, sqsHandler } from "../../lib/middy.js";
import { createLockClient } from "../../lib/testing.js";
import { type Harness, createHarness } from "../client/harness.js";
import { cutOff } from "../client/jobs/provider.js";
import { invocation, passed } from "../support/invocation.js";
import { SCHEDULED } from "./events.js";

const QUEUE = "arn:aws:sqs:eu-central-1:111122223333:refunds";

/** Messages named after their group and place, such as `a1`. */
const messages = (arn: string, ...names: readonly string[]): SqsMessage[] =>
  names.map((name) => ({ messageId: name, body: name, eventSourceARN: arn, attributes: { MessageGroupId: name.slice(0, 1) } }));

const failures = (...names: readonly string[]) => ({ batchItemFailures: names.map((itemIdentifier) => ({ itemIdentifier })) });

describe("sqsHandler", () => {
  /** A queue's handler whose work fails for these messages. */
  function deployed(...failing: readonly string[]) {
    const harness = createHarness();
    const done: string[] = [];
    const handler = sqsHandler({ locks: harness.locks, onFailure: () => undefined }, async ({ body }) => {
      if (failing.includes(body)) throw new Error(`${body} fails`);
      done.push(body);
      await passed(harness.clock, 10);
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

  it("begins nothing that its invocation could not end", async () => {
    const { deliver, done } = deployed();
    expect(await deliver(messages(QUEUE, "a1", "a2"), 900)).toEqual(failures("a1", "a2"));
    expect(await deliver(messages(`${QUEUE}.fifo`, "a1", "b1"), 900)).toEqual(failures("a1", "b1"));
    expect(done).toEqual([]);
  });

  it("has a message done whose work returned what can't be kept: nobody gets it", async () => {
    const { clock, locks } = createHarness();
    const handler = sqsHandler({ locks }, async () => new Response("accepted"));
    const deliver = () => clock.settle(handler({ Records: messages(QUEUE, "a1") }, invocation(clock)));
    expect([await deliver(), await deliver()]).toEqual([failures(), failures()]);
  });

  it("refuses by name what is no event of a queue", async () => {
    const { clock, locks } = createHarness();
    const handler = sqsHandler({ locks }, async () => undefined);
    for (const event of [undefined, {}, { Records: "a1" }])
      await expect(handler(event as never, invocation(clock))).rejects.toMatchObject({ name: "InvalidRequestError", field: "event" });
  });

  it.each([
    ["SNS", { EventSource: "aws:sns", Sns: { MessageId: "1", Message: "{}" } }, "is a record of aws:sns"],
    ["Kinesis", { eventSource: "aws:kinesis", eventID: "1", kinesis: { data: "" } }, "is a record of aws:kinesis"],
    ["nobody", null, "is no message"],
  ])("refuses the records of %s, which no queue would deliver again", async (_whose, record, why) => {
    const { clock, locks } = createHarness();
    const Records = [...messages(QUEUE, "a1"), record] as SqsMessage[];
    const work = (): Promise<void> => expect.unreachable("it has no message");
    const refused = expect.objectContaining({
      field: "event",
      message: `event: Records[1] ${why}; one of SQS has a messageId and a body`,
    }) as Error;
    await expect(sqsHandler({ locks }, work)({ Records }, invocation(clock))).rejects.toEqual(refused);
    await expect(runBatch(locks, { Records }, invocation(clock), {}, work)).rejects.toEqual(refused);
  });

  it.each([QUEUE, `${QUEUE}.fifo`])("lets the second of two messages with one key wait for the first: %s", async (arn) => {
    const { clock, locks } = createHarness();
    const attempts: number[] = [];
    const handler = sqsHandler({ locks, keyFor: () => "refund_7", onFailure: () => undefined }, async (_message, run) => {
      attempts.push(run.attempt);
      await passed(clock, 10);
      if (run.attempt === 1) throw new Error("the bank is closed");
    });
    const deliver = (leftMs?: number) => clock.settle(handler({ Records: messages(arn, "a1", "b1", "c1") }, invocation(clock, leftMs)));
    // The first fails, the second is the next attempt, and the third has its result.
    expect([await deliver(), attempts]).toEqual([failures("a1"), [1, 2]]);
  });

  it.each<[limit: string, options: { maxAttempts?: number }, attempts: number]>([
    ["the queue's, which is not known here", {}, 8],
    ["the option's", { maxAttempts: 2 }, 2],
  ])("starts a message that fails each time as often as it is delivered, up to %s limit", async (_limit, options, attempts) => {
    const { clock, locks } = createHarness();
    let [started, refusal] = [0, ""];
    const onFailure = (_message: SqsMessage, error: unknown): void => void (refusal = String(error));
    const handler = sqsHandler({ locks, onFailure, ...options }, () => {
      started++;
      throw new Error("the bank is closed");
    });
    for (let delivery = 0; delivery < 8; delivery++)
      expect(await clock.settle(handler({ Records: messages(QUEUE, "a1") }, invocation(clock)))).toEqual(failures("a1"));
    expect(started).toBe(attempts);
    if (attempts === 2) expect(refusal).toContain("of 2 at most: reset it, or allow more attempts (maxAttempts)");
  });

  it("without onFailure tells each failure in a line of the process; control: not what has no room, nor what only follows", async () => {
    const warned: string[] = [];
    const warn = vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warned.push(String(warning)));
    const { clock, locks } = createHarness();
    const limiter = locks.limiter("partner", { rates: [{ count: 1, perMs: 60_000 }] });
    const options = { locks, limitsFor: ({ body }: SqsMessage) => (body.startsWith("c") ? [limiter] : []) };
    const handler = sqsHandler(options, async ({ body }) => {
      if (body.endsWith("!")) throw new Error("the bank is closed");
    });
    const Records = messages(`${QUEUE}.fifo`, "a1!", "a2", "b1", "c1", "c2", "c3");
    expect(await clock.settle(handler({ Records }, invocation(clock)))).toEqual(failures("a1!", "a2", "c2", "c3"));
    await runBatch(locks, { Records: messages(QUEUE, "d1!") }, invocation(clock), {}, () =>
      Promise.reject(new Error("the bank is closed")),
    );
    warn.mockRestore();
    expect(warned).toEqual(["a1!", "d1!"].map((name) => `message ${name} failed, and comes again: Error: the bank is closed`));
  });

  it("begins no message whose turn came too late", async () => {
    const { clock, locks } = createHarness();
    const handler = sqsHandler({ locks, keyFor: () => "refund_7", onFailure: () => undefined }, () => passed(clock, 1500));
    const Records = messages(QUEUE, "a1", "b1");
    expect(await clock.settle(handler({ Records }, invocation(clock, 2000)))).toEqual(failures("b1"));
  });

  describe("of a FIFO queue", () => {
    const FIFO = `${QUEUE}.fifo`;

    /** Returns the largest number of messages that were worked on at once. */
    async function mostAtOnce(arn: string, ...names: readonly string[]): Promise<number> {
      const { clock, locks } = createHarness();
      let [inside, most] = [0, 0];
      const handler = sqsHandler({ locks }, async () => {
        most = Math.max(most, ++inside);
        await passed(clock, 10);
        inside--;
      });
      expect(await clock.settle(handler({ Records: messages(arn, ...names) }, invocation(clock)))).toEqual(failures());
      return most;
    }

    it("works on a group one after the other, and on groups side by side; control: of any other queue, on all at once", async () => {
      expect(await mostAtOnce(FIFO, "a1", "a2", "a3")).toBe(1);
      expect(await mostAtOnce(FIFO, "a1", "b1", "a2", "b2", "a3")).toBe(2);
      expect(await mostAtOnce(QUEUE, "a1", "b1", "a2", "b2", "a3")).toBe(5);
    });

    it("lets nothing of a group pass one that failed, and goes on with the other groups", async () => {
      const { deliver, done } = deployed("a2");
      const Records = messages(FIFO, "a1", "b1", "a2", "a3", "b2", "a4");
      expect(await deliver(Records)).toEqual(failures("a2", "a3", "a4"));
      expect([done.filter((name) => name.startsWith("a")), done.filter((name) => name.startsWith("b"))]).toEqual([["a1"], ["b1", "b2"]]);
    });

    it("works on at most ten groups at once", async () => {
      const names = Array.from({ length: 26 }, (_, index) => `${String.fromCharCode(97 + index)}1`);
      expect(await mostAtOnce(FIFO, ...names)).toBe(10);
    });
  });
});

describe("sqsHandler with limits", () => {
  const HOUR_MS = 3_600_000;

  /** A queue's handler, one of whose limits has room for so many messages in a time. */
  function limited({
    count = 2,
    perMs = 60_000,
    options = () => ({}),
  }: {
    readonly count?: number;
    readonly perMs?: number;
    readonly options?: (harness: Harness, limiter: Limiter) => Partial<SqsHandlerOptions<SqsMessage>>;
  } = {}) {
    const harness = createHarness();
    const { clock, locks } = harness;
    const [done, changed]: [string[], [name: string, timeoutSec: number][]] = [[], []];
    const limiter = locks.limiter("partner", { rates: [{ count, perMs, burst: count }] });
    const changeVisibility = async ({ messageId }: SqsMessage, timeoutSec: number) => {
      await passed(clock, 10);
      changed.push([messageId, timeoutSec]);
    };
    const given = { limitsFor: () => [limiter], changeVisibility, onFailure: () => undefined, ...options(harness, limiter) };
    const handler = sqsHandler({ locks, ...given }, async ({ body }) => {
      if (body.endsWith("!")) throw new Error(`${body} fails`);
      done.push(body);
    });
    const deliver = (Records: readonly SqsMessage[]) => clock.settle(handler({ Records }, invocation(clock)));
    return { ...harness, limiter, done, changed, deliver };
  }

  it("returns what has no room without a run, and it comes again when it has; control: without limits all is done", async () => {
    const { clock, locks, deliver, done, changed } = limited();
    expect(await deliver(messages(QUEUE, "a1", "b1!", "c1", "d1"))).toEqual(failures("b1!", "c1", "d1"));
    // One that failed for itself comes again when the queue wants.
    expect([done, changed, await locks.runs.get("message_c1")]).toEqual([
      ["a1"],
      [
        ["c1", 30],
        ["d1", 30],
      ],
      null,
    ]);
    await clock.advance(30_000);
    expect(await deliver(messages(QUEUE, "c1"))).toEqual(failures());
    const unlimited = limited({ options: () => ({ limitsFor: undefined }) });
    expect([await unlimited.deliver(messages(QUEUE, "a1", "b1", "c1", "d1")), unlimited.changed]).toEqual([failures(), []]);
  });

  it("lets the rest of a FIFO queue's group come with the one that has no room, and takes nothing for it", async () => {
    const { limiter, deliver, done, changed } = limited({
      count: 100,
      options: ({ locks }, total) => ({
        limitsFor: ({ body }) => [total, locks.limiter(key("group", body.slice(0, 1)), { rates: [{ count: 2, perMs: 60_000, burst: 2 }] })],
      }),
    });
    const Records = messages(`${QUEUE}.fifo`, "a1", "b1", "a2", "a3", "b2!", "a4", "b3");
    expect(await deliver(Records)).toEqual(failures("a3", "b2!", "a4", "b3"));
    expect([done.toSorted(), changed]).toEqual([
      ["a1", "a2", "b1"],
      [
        ["a3", 30],
        ["a4", 30],
      ],
    ]);
    // The total was charged for a3, which its own limit refused, and not for a4.
    expect(await limiter.remaining()).toEqual([95]);
  });

  it("sets no longer time than SQS takes", async () => {
    const { deliver, changed } = limited({ count: 1, perMs: 24 * HOUR_MS });
    await deliver(messages(QUEUE, "a1", "b1"));
    expect(changed).toEqual([["b1", 11 * 3600]]);
  });

  it("tells of a time that could not be set, and returns the message all the same", async () => {
    const told: unknown[] = [];
    const lost = new Error("the receipt handle has expired");
    const changeVisibility = () => Promise.reject(lost);
    const onFailure = ({ messageId }: SqsMessage, error: unknown) => void told.push([messageId, (error as Error).name, error === lost]);
    const { deliver } = limited({ count: 1, options: () => ({ changeVisibility, onFailure }) });
    expect(await deliver(messages(QUEUE, "a1", "b1"))).toEqual(failures("b1"));
    expect(told).toEqual([
      ["b1", "LimitExceededError", false],
      ["b1", "Error", true],
    ]);
  });

  it("is back before its invocation ends if the table doesn't answer; control: it waits longer where it has the time", async () => {
    for (const [leftMs, isBack] of [[3000, true] as const, [60_000, false] as const]) {
      const told: unknown[] = [];
      const locks = createLockClient();
      for (let times = 0; times < 100; times++) locks.faults.loseNextRequest("take");
      const limiter = locks.limiter("partner", { rates: [{ count: 2, perMs: 60_000, burst: 2 }] });
      const onFailure = (_message: SqsMessage, error: unknown) => void told.push((error as Error).name);
      const handler = sqsHandler({ locks, limitsFor: () => [limiter], onFailure }, async () => undefined);
      const handling = handler({ Records: messages(QUEUE, "a1") }, invocation(locks.clock, leftMs));
      await locks.clock.advance(2999);
      expect(told).toEqual(isBack ? ["LockUnavailableError"] : []);
      expect(await locks.clock.settle(handling)).toEqual(failures("a1"));
    }
  });

  it("takes a message's cost, and nothing for 0", async () => {
    const { deliver, limiter } = limited({ count: 10, options: () => ({ costFor: ({ body }) => Number(body.slice(1)) }) });
    expect(await deliver(messages(QUEUE, "a7", "b0", "c5"))).toEqual(failures("c5"));
    expect(await limiter.remaining()).toEqual([3]);
  });
});

const AT_3 = "2027-01-01T03:00:00Z";
const RULE = { ...SCHEDULED, time: AT_3 };

describe("a schedule's handler", () => {
  it.each([
    ["a rule's event", RULE],
    ["an input of EventBridge Scheduler", { scheduledTime: AT_3 }],
    ["both: the input counts", { scheduledTime: AT_3, time: "2027-01-01T03:00:41Z" }],
  ])("takes the occurrence from %s", async (_what, event) => {
    const locks = createLockClient();
    const handler = scheduleHandler({ locks, name: "nightly" }, (tick, { scheduledTime = "a rule" }) => [tick.occurrence, scheduledTime]);
    const result = await locks.clock.settle(handler(event, invocation(locks.clock)));
    const from = "scheduledTime" in event ? event.scheduledTime : "a rule";
    expect(result).toEqual({ occurrence: new Date(AT_3), how: "ran", value: [new Date(AT_3), from], attempt: 1 });
  });

  it("runs an event once that is delivered three times, and ends well each time", async () => {
    const locks = createLockClient();
    let runs = 0;
    const handler = scheduleHandler({ locks, name: "nightly" }, () => ++runs);
    const hows: TickResult<number>["how"][] = [];
    for (let times = 0; times < 3; times++) hows.push((await locks.clock.settle(handler(RULE, invocation(locks.clock)))).how);
    expect([hows, runs]).toEqual([["ran", "done-before", "done-before"], 1]);
  });

  it("throws while a delivery that died has its lease, so that Lambda delivers again, and then takes it over", async () => {
    const { clock, store } = createLockClient();
    const [dying, locks] = [createLockClient({ clock, store }), createLockClient({ clock, store })];
    const never = scheduleHandler({ locks: dying, name: "nightly" }, () => new Promise(() => undefined));
    void never(RULE, invocation(clock)).catch(() => undefined);
    await clock.advance(1000);
    cutOff(dying);
    const handler = scheduleHandler({ locks, name: "nightly" }, ({ takeover }) => takeover);
    await expect(clock.settle(handler(RULE, invocation(clock)))).rejects.toMatchObject({
      code: "run-in-progress",
      message: expect.stringContaining("nightly: another delivery runs the occurrence of 2027-01-01T03:00:00.000Z") as string,
    });
    await clock.advance(60_000);
    expect(await clock.settle(handler(RULE, invocation(clock)))).toMatchObject({ how: "ran", value: true });
  });

  it.each([
    ["no time", { detail: {} }, "event: names no time of its schedule"],
    ["nothing at all", undefined, "event: names no time of its schedule"],
    [
      "a text that was not filled in",
      { scheduledTime: "<aws.scheduler.scheduled-time>" },
      'scheduledTime: "<aws.scheduler.scheduled-time>" given; it must be a time',
    ],
    ["a time that is none", { time: "tomorrow" }, 'time: "tomorrow" given; it must be a time in UTC as 2027-01-01T03:00:00Z'],
    [
      "another kind of event",
      { ...RULE, "detail-type": "Object Created" },
      'detail-type: "Object Created" given; it must be "Scheduled Event"',
    ],
  ])("refuses an event with %s, and does not work", async (_what, event, message) => {
    const locks = createLockClient();
    let runs = 0;
    const handler = scheduleHandler({ locks, name: "nightly" }, () => ++runs);
    await expect(handler(event as never, invocation(locks.clock))).rejects.toThrow(message);
    expect(runs).toBe(0);
  });

  it.each(["2027-01-01T03:00:00", "2027-02-30T03:00:00Z", "2027-01-01T24:00:00Z", "2027-01-01T03:00Z", "2027-01-01T03:00:00+01:00"])(
    "refuses the time %s: it has no zone, another form, or is none",
    async (time) => {
      const locks = createLockClient();
      const handler = scheduleHandler({ locks, name: "nightly" }, () => "done");
      await expect(handler({ time }, invocation(locks.clock))).rejects.toThrow(`time: "${time}" given; it must be a time in UTC`);
    },
  );
});
