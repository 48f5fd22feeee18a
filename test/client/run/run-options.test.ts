/** Invalid options of runs are rejected before anything is sent. The error names the option and the rule. */
import { describe, expect, it } from "vitest";
import { InvalidRequestError } from "../../../lib/testing.js";
import { thrownBy } from "../../support/run-gate.js";
import { createHarness } from "../harness.js";

const KEY = "refund:42";
/** A client from a program without types. */
interface LooseClient {
  runOnce(key: unknown, ...rest: readonly unknown[]): Promise<unknown>;
  readonly runs: {
    get(key: unknown): Promise<unknown>;
    list(options?: unknown): Promise<unknown>;
    reset(key: unknown, options?: unknown): Promise<unknown>;
  };
}
const loosely = (locks: unknown): LooseClient => locks as LooseClient;
const never = (): never => expect.unreachable("nothing runs that was asked wrongly");

async function expectRefusal(ask: (locks: LooseClient) => Promise<unknown>, field: string): Promise<string> {
  const { locks, wire } = createHarness();
  const error = await thrownBy((async () => ask(loosely(locks)))());
  expect(error).toBeInstanceOf(InvalidRequestError);
  expect(error).toMatchObject({ field, code: "invalid-request", definite: true, retry: "never" });
  expect((error as Error).message).toMatch(new RegExp(`^${field}\\b`));
  expect(wire.sent).toEqual([]);
  return (error as Error).message;
}

describe("runOnce", () => {
  it.each<[option: string, value: unknown]>([
    ["leaseMs", 999],
    ["keepResultMs", 59_999],
    ["keepResultMs", 365 * 86_400_000 + 1],
    ["keepResultMs", Number.POSITIVE_INFINITY],
    ["keepResultMs", "always"],
    ["keepResultMs", 60_000.5],
    ["maxAttempts", -1],
    ["maxAttempts", 1.5],
    ["maxAttempts", 1_000_001],
    ["maxAttempts", Number.POSITIVE_INFINITY],
    ["maxAttempts", "5"],
    ["waitMs", -1],
    ["signal", {}],
    ["isFinal", true],
    ["isFinal", "FinalError"],
    ["largeResult", "keep"],
    ["largeResult", true],
    ["owner", 7],
    ["heartbeat", "no"],
    ["payload", { by: () => 1 }],
    ["payload", Symbol("s")],
    ["meta", {}],
    ["progressMs", 29_999],
    ["maxHoldMs", 1000],
    ["leaseMS", 5000],
    ["ttl", 30],
  ])("refuses %s: %j", async (option, value) => {
    await expectRefusal((locks) => locks.runOnce(KEY, { [option]: value }, never), option);
  });

  it("names the member of a payload that can't be told", async () => {
    const message = await expectRefusal((locks) => locks.runOnce(KEY, { payload: { order: [1, { by: () => 1 }] } }, never), "payload");
    expect(message).toBe("payload.order[1].by: a function can't be kept");
  });

  it.each<[what: string, payload: unknown, message: string]>([
    ["a form", new URLSearchParams("cents=4200"), "payload: a URLSearchParams can't be kept; "],
    ["bytes", { body: Buffer.from("4200") }, "payload.body: a Buffer can't be kept; "],
    ["an object of a class", [new Headers({ cents: "4200" })], "payload[0]: a Headers can't be kept; "],
  ])("refuses a payload whose content JSON would drop, before anything runs: %s", async (_what, payload, begins) => {
    const message = await expectRefusal((locks) => locks.runOnce(KEY, { payload }, never), "payload");
    expect(message).toContain(begins);
  });

  it("refuses a payload in itself", async () => {
    const payload: unknown[] = [];
    payload.push(payload);
    await expectRefusal((locks) => locks.runOnce(KEY, { payload }, never), "payload");
  });

  it("tells which options there are", async () => {
    const message = await expectRefusal((locks) => locks.runOnce(KEY, { keepResult: 1 }, never), "keepResult");
    expect(message).toContain("is not an option of runOnce; these are: payload, leaseMs, keepResultMs, maxAttempts, waitMs, signal");
  });

  it.each(["", ".", "..", "a b", "a/b", "ä", "x".repeat(201), undefined, null, 7, {}])("refuses the key %j", async (key) => {
    await expectRefusal((locks) => locks.runOnce(key, never), "key");
    await expectRefusal((locks) => locks.runs.get(key), "key");
    await expectRefusal((locks) => locks.runs.reset(key, { reason: "test" }), "key");
  });

  it.each([[[{}]], [[{}, undefined]], [[undefined]], [[{}, "work"]]])("refuses %j for its function", async (rest) => {
    const { locks, wire } = createHarness();
    const error = await thrownBy(loosely(locks).runOnce(KEY, ...rest));
    expect(error).toMatchObject({ name: "InvalidRequestError", field: "work" });
    expect((error as Error).message).toBe("runOnce: the last argument is the function to run");
    expect(wire.sent).toEqual([]);
  });

  it.each<[option: string, value: unknown]>([
    ["keepResultMs", 60_000],
    ["keepResultMs", 365 * 86_400_000],
    ["keepResultMs", "forever"],
    ["maxAttempts", 0],
    ["maxAttempts", 1_000_000],
    ["waitMs", 0],
    ["waitMs", Number.MAX_SAFE_INTEGER],
    ["payload", undefined],
    ["payload", null],
    ["largeResult", "omit"],
    ["owner", ""],
    ["heartbeat", false],
  ])("takes %s: %j", async (option, value) => {
    const { clock, locks } = createHarness();
    expect(await clock.settle(loosely(locks).runOnce(KEY, { [option]: value }, () => "done"))).toMatchObject({ value: "done" });
  });
});

describe("runs", () => {
  it.each<[option: string, value: unknown]>([
    ["max", 0],
    ["max", 101],
    ["max", "10"],
    ["state", "done"],
    ["state", "retry"],
    ["owner", "rival"],
  ])("are not listed with %s: %j", async (option, value) => {
    await expectRefusal((locks) => locks.runs.list({ [option]: value }), option);
  });

  it.each([undefined, "", 7, null, "x".repeat(257)])("are not reset for the reason %j", async (reason) => {
    await expectRefusal((locks) => locks.runs.reset(KEY, { reason }), "reason");
  });

  it("are not reset without a reason at all, nor with what is no option", async () => {
    await expectRefusal((locks) => locks.runs.reset(KEY), "reason");
    await expectRefusal((locks) => locks.runs.reset(KEY, { reason: "test", force: true }), "force");
  });
});
