/**
 * The same executions on Amazon's local runner, with the service on localhost, its agent and an engine, all in real time. The double of the
 * other tests must have the same history. Lambda's callbacks are those of test/support/wake-targets.ts: the runner's own take a second
 * completion, which AWS refuses.
 */
import { withDurableExecution } from "@aws/durable-execution-sdk-js";
import { LocalDurableTestRunner, WaitingOperationStatus } from "@aws/durable-execution-sdk-js-testing";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { Gateway } from "../../infra/local/gateway.js";
import { startLocalService } from "../../infra/local/local-service.js";
import { type DurableLock, withDurableLock, withDurableRun } from "../../lib/durable.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import { type WakeTargets, startWakeTargets } from "../support/wake-targets.js";
import { scene } from "./scene.js";

let targets: WakeTargets;
let service: Gateway;
let locks: LockClient;
/** The callback of the last request to sleep. */
let callbackId = "";
/** Called when somebody looks at a run. */
let onLook = (): void => undefined;

beforeAll(async () => {
  targets = await startWakeTargets();
  const table = { endpoint: inject("engineEndpoint"), tableName: `durable-${process.pid}` };
  service = await startLocalService({ ports: [0], table, wakesAt: targets.env, log: () => undefined, onFailure: () => undefined });
  const noting: typeof fetch = (url, init) => {
    const [, asked] = /"callbackId":"([^"]+)"/.exec(init?.body as string) ?? [];
    if (asked !== undefined) callbackId = targets.wait(asked);
    if (init?.method === "GET") onLook();
    return fetch(url, init);
  };
  locks = createLockClient({ url: service.url, fetch: noting });
  await LocalDurableTestRunner.setupTestEnvironment({ skipTime: false });
});
afterAll(async () => {
  await LocalDurableTestRunner.teardownTestEnvironment();
  await service.close();
  await targets.close();
});

const work = (lock: DurableLock) => lock.step("charge", async ({ fencingToken }) => fencingToken === lock.fencingToken);
const runnerOf = (key: string) =>
  new LocalDurableTestRunner<boolean>({
    handlerFunction: withDurableExecution((_event: unknown, ctx) => withDurableLock(ctx, locks, key, work)),
  });

/** Returns the history of the same work on the double. */
async function onTheDouble(key: string, isHeld: boolean): Promise<readonly string[]> {
  const its = scene();
  const rival = isHeld ? await its.rival.acquire(key) : undefined;
  const execution = its.start("a", work, { key });
  await its.lambda.run();
  await rival?.release();
  await its.pass(1);
  expect(execution).toMatchObject({ status: "SUCCEEDED", result: true });
  return execution.operations.map(({ Type, Name, Status }) => `${Type} ${Name}: ${Status}`);
}

type Ended = Awaited<ReturnType<ReturnType<typeof runnerOf>["run"]>>;
const historyOf = (ended: Ended) => ended.getOperations().map((one) => `${one.getType()} ${one.getName()}: ${one.getStatus()}`);

it("has the history of the double with a free key", async () => {
  const ended = await runnerOf("FREE").run();
  expect(ended.getResult()).toBe(true);
  expect(historyOf(ended)).toEqual(await onTheDouble("FREE", false));
});

it("has the history of the double with a held key: the agent on localhost wakes it", async () => {
  const rival = await locks.acquire("HELD", { leaseMs: 600_000 });
  const runner = runnerOf("HELD");
  const running = runner.run();
  await runner.getOperation("HELD: sleep").waitForData(WaitingOperationStatus.COMPLETED);
  await rival.release();
  await expect.poll(() => targets.heard.get(callbackId), { timeout: 20_000 }).toHaveProperty("got.key", "HELD");
  await runner.getOperation("HELD: turn").sendCallbackSuccess(JSON.stringify((targets.heard.get(callbackId) as { got: unknown }).got));
  const ended = await running;
  expect(ended.getResult()).toBe(true);
  expect(historyOf(ended)).toEqual(await onTheDouble("HELD", true));
  expect((await locks.inspect("HELD")).holders).toEqual([]);
});

it("has the history of the double with a run that another has: it looks again after a second", async () => {
  let end = (_result: string): void => undefined;
  const working = new Promise<string>((resolve) => void (end = resolve));
  const rival = locks.runOnce("RUN", () => working);
  await expect.poll(async () => (await locks.runs.get("RUN"))?.state).toBe("running");
  onLook = () => end("charged");
  const runner = new LocalDurableTestRunner({
    handlerFunction: withDurableExecution((_event: unknown, ctx) => withDurableRun(ctx, locks, "RUN", async () => "twice")),
  });
  const ended = await runner.run();
  await rival;
  expect(ended.getResult()).toEqual({ value: "charged", replayed: true, attempt: 1 });

  const its = scene();
  void its.rival.runOnce("RUN", () => new Promise((resolve) => void its.clock.after(500, () => void resolve("charged"))));
  await its.clock.advance(0);
  const execution = its.startRun("a", async () => "twice", { key: "RUN" });
  await its.pass(1);
  expect(execution.result).toEqual(ended.getResult());
  expect(historyOf(ended)).toEqual(execution.operations.map(({ Type, Name, Status }) => `${Type} ${Name}: ${Status}`));
});

it("has a runner that takes a second completion: the double refuses it, as AWS does", async () => {
  const runner = new LocalDurableTestRunner({
    handlerFunction: withDurableExecution(async (_event: unknown, ctx) => {
      const [told] = await ctx.createCallback("turn", { timeout: { minutes: 1 } });
      return told;
    }),
  });
  const running = runner.run();
  const turn = runner.getOperation("turn");
  await turn.waitForData(WaitingOperationStatus.STARTED);
  await turn.sendCallbackSuccess("first");
  await expect(turn.sendCallbackSuccess("second")).resolves.toBeDefined();
  await running;

  const its = scene();
  const execution = its.lambda.start("a", async (ctx) => (await ctx.createCallback("turn"))[0]);
  await its.lambda.run();
  const { CallbackId = "" } = execution.operations[0]?.CallbackDetails ?? {};
  its.lambda.complete(CallbackId, { Result: "first" });
  expect(() => its.lambda.complete(CallbackId, { Result: "second" })).toThrow("CallbackTimeoutException");
  await its.lambda.run();
  expect(execution).toMatchObject({ status: "SUCCEEDED", result: "first" });
});
