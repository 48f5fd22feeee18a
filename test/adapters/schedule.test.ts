/** The handler of a schedule: which occurrence an event names, and which outcomes make Lambda deliver it again. */
import { describe, expect, it } from "vitest";
import type { TickResult } from "../../lib/index.js";
import { scheduleHandler } from "../../lib/middy.js";
import { createLockClient } from "../../lib/testing.js";
import { cutOff } from "../client/jobs/provider.js";
import { invocation } from "../support/invocation.js";
import { SCHEDULED } from "./events.js";

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

  it("throws what the work throws, and the repeated delivery is the next attempt", async () => {
    const locks = createLockClient();
    const handler = scheduleHandler({ locks, name: "nightly" }, ({ attempt }) => {
      if (attempt === 1) throw new Error("down");
      return attempt;
    });
    await expect(locks.clock.settle(handler(RULE, invocation(locks.clock)))).rejects.toThrow("down");
    expect(await locks.clock.settle(handler(RULE, invocation(locks.clock)))).toMatchObject({ how: "ran", value: 2 });
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

  it("releases everything before the invocation ends", async () => {
    const locks = createLockClient();
    await locks.clock.settle(scheduleHandler({ locks, name: "nightly" }, () => "done")(RULE, invocation(locks.clock)));
    expect((await locks.inspect("nightly")).holders).toEqual([]);
  });

  it.each([
    ["no time", { detail: {} }, "event: names no time of its schedule"],
    ["nothing at all", undefined, "event: names no time of its schedule"],
    [
      "a text that was not filled in",
      { scheduledTime: "<aws.scheduler.scheduled-time>" },
      'scheduledTime: "<aws.scheduler.scheduled-time>" given; it must be a time',
    ],
    ["a time that is none", { time: "tomorrow" }, 'time: "tomorrow" given; it must be a time as 2027-01-01T03:00:00Z'],
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
});
