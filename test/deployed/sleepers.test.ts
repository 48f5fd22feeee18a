/** Sleepers for real: executions of state machines and of durable functions that wait for a key, and the agent that tells them. */
import { describe, expect, it, vi } from "vitest";
import { createLockClient } from "../../lib/index.js";
import { signerOf } from "../e2e/deployed.js";
import { call, lambda } from "./aws.js";
import { deployedOf, outputsOf } from "./callers.js";
import { without } from "./emulator.js";
import { VARIANTS } from "./variants.js";

const STACK = "sleepers";
/** Longer than a sweep takes to come, on a busy machine. */
const PATIENCE = { timeout: 240_000, interval: 500 };

let made = 0;
const freshKey = (): string => `SLEEP_${Date.now()}-${++made}`;

interface Input {
  readonly key: string;
  readonly seconds: number;
  readonly fails?: boolean;
}

/** Starts an execution of one of the stack's state machines. */
async function start(machine: "waits" | "asks" | "tied", input: Input): Promise<string> {
  const stateMachineArn = outputsOf(STACK)[`${machine}Arn`];
  const { executionArn } = await call<{ readonly executionArn: string }>("states", "StartExecution", {
    stateMachineArn,
    input: JSON.stringify({ fails: false, ...input }),
  });
  return executionArn;
}

interface Ended {
  readonly status: string;
  readonly error?: string;
}

/** Waits for the end of an execution. */
async function ended(executionArn: string): Promise<Ended> {
  const describe = () => call<Ended>("states", "DescribeExecution", { executionArn });
  await vi.waitUntil(async () => (await describe()).status !== "RUNNING", PATIENCE);
  return describe();
}

async function client() {
  const deployed = await deployedOf(STACK, VARIANTS[STACK]!);
  return createLockClient({ url: deployed.url, sign: signerOf(deployed) });
}

/** Waits until so many hold the key and so many wait for it. */
async function until(key: string, holders: number, waiters: number): Promise<void> {
  const locks = await client();
  const counts = async () => {
    const inspection = await locks.inspect(key);
    return [inspection.holders.length, inspection.waiters.length].join();
  };
  await vi.waitUntil(async () => (await counts()) === [holders, waiters].join(), PATIENCE);
  await locks.close();
}

const SUCCEEDED = expect.objectContaining({ status: "SUCCEEDED" });

describe("sections of a state machine", { concurrent: true }, () => {
  it("contend: the second sleeps, and is woken by the release of the first", async () => {
    const key = freshKey();
    const first = await start("waits", { key, seconds: 3 });
    await until(key, 1, 0);
    const second = await start("waits", { key, seconds: 0 });
    expect(await ended(first)).toEqual(SUCCEEDED);
    expect(await ended(second)).toEqual(SUCCEEDED);
    await until(key, 0, 0);
  });

  it("release if a state of them fails, and fail as it did", async () => {
    const key = freshKey();
    expect(await ended(await start("waits", { key, seconds: 0, fails: true }))).toMatchObject({ status: "FAILED", error: "CardDeclined" });
    expect(await ended(await start("asks", { key, seconds: 0 }))).toEqual(SUCCEEDED);
  });

  it("that shall not wait are refused a held key", async () => {
    const key = freshKey();
    const locks = await client();
    const lease = await locks.acquire(key);
    expect(await ended(await start("asks", { key, seconds: 0 }))).toMatchObject({ status: "FAILED", error: "Holdfast.LockTimeout" });
    await lease.release();
    await locks.close();
  });

  it("pass the key on if they are stopped while they sleep", async () => {
    const key = freshKey();
    const first = await start("waits", { key, seconds: 8 });
    await until(key, 1, 0);
    const stopped = await start("waits", { key, seconds: 0 });
    await until(key, 1, 1);
    const third = await start("waits", { key, seconds: 0 });
    await until(key, 1, 2);
    await call("states", "StopExecution", { executionArn: stopped });
    expect(await ended(first)).toEqual(SUCCEEDED);
    expect(await ended(third)).toEqual(SUCCEEDED);
  });

  it("that are stopped while they hold keep a tied lease until a sweep", async () => {
    const key = freshKey();
    const stopped = await start("tied", { key, seconds: 600 });
    await until(key, 1, 0);
    const next = await start("waits", { key, seconds: 0 });
    await until(key, 1, 1);
    await call("states", "StopExecution", { executionArn: stopped });
    expect(await ended(next)).toEqual(SUCCEEDED);
  });
});

/**
 * Starts an execution of a durable function. Returns its ARN. The emulator gives it no name of ours, so its input has one. It doesn't resume
 * one that was invoked as an event, so nobody waits for the answer of this invocation.
 */
async function startDurable(handler: "locked" | "once", event: object): Promise<string> {
  const functionName = outputsOf(STACK)[`${handler}Name`];
  const id = freshKey();
  const path = `/2015-03-31/functions/${functionName}/invocations?Qualifier=%24LATEST`;
  void lambda("POST", path, { ...event, id }).catch(() => undefined);
  const find = async (): Promise<string | undefined> => {
    const { DurableExecutions } = await lambda<{ readonly DurableExecutions: readonly { readonly DurableExecutionArn: string }[] }>(
      "GET",
      `/2025-12-01/functions/${functionName}/durable-executions`,
    );
    for (const { DurableExecutionArn: arn } of DurableExecutions) if (JSON.stringify(await getDurable(arn)).includes(id)) return arn;
    return undefined;
  };
  return vi.waitUntil(find, PATIENCE);
}

function getDurable(arn: string): Promise<DurableEnd> {
  return lambda<DurableEnd>("GET", `/2025-12-01/durable-executions/${encodeURIComponent(arn)}`);
}

interface DurableEnd {
  readonly Status: string;
  readonly Result?: string;
  readonly Error?: { readonly ErrorType: string };
}

async function durableEnd(arn: string): Promise<DurableEnd> {
  await vi.waitUntil(async () => (await getDurable(arn)).Status !== "RUNNING", PATIENCE);
  return getDurable(arn);
}

describe("durable functions", { concurrent: true }, () => {
  it("wait asleep for a key that a state machine holds", async () => {
    const key = freshKey();
    const holder = await start("waits", { key, seconds: 3 });
    await until(key, 1, 0);
    const { Status, Result = "[]" } = await durableEnd(await startDurable("locked", { key }));
    expect(Status).toBe("SUCCEEDED");
    const [first, second] = JSON.parse(Result) as readonly number[];
    expect(first).toBeGreaterThan(0);
    expect(second).toBe(first);
    expect(await ended(holder)).toEqual(SUCCEEDED);
  });

  it("fail if it isn't their turn in time", async () => {
    const key = freshKey();
    const holder = await start("waits", { key, seconds: 15 });
    await until(key, 1, 0);
    expect(await durableEnd(await startDurable("locked", { key, waitMs: 2000 }))).toMatchObject({
      Status: "FAILED",
      Error: { ErrorType: "LockTimeoutError" },
    });
    expect(await ended(holder)).toEqual(SUCCEEDED);
  });

  it("share one run: both have its result", async () => {
    const key = freshKey();
    const ends = await Promise.all([1, 2].map(async () => durableEnd(await startDurable("once", { key }))));
    expect(ends.map(({ Status }) => Status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
    const results = ends.map(({ Result = "" }) => JSON.parse(Result) as { readonly value: string; readonly replayed: boolean });
    expect(new Set(results.map(({ value }) => value)).size).toBe(1);
    expect(results.map(({ replayed }) => replayed).toSorted()).toEqual([false, true]);
  });
});

describe("the agent", () => {
  it("wakes by its sweep alone, while the stream's mapping is off", async () => {
    const { agentFunction } = outputsOf(STACK);
    const { EventSourceMappings } = await lambda<{ readonly EventSourceMappings: readonly { readonly UUID: string }[] }>(
      "GET",
      `/2015-03-31/event-source-mappings?FunctionName=${agentFunction}`,
    );
    const set = (Enabled: boolean) =>
      Promise.all(EventSourceMappings.map(({ UUID }) => lambda("PUT", `/2015-03-31/event-source-mappings/${UUID}`, { Enabled })));
    await set(false);
    try {
      const key = freshKey();
      const first = await start("waits", { key, seconds: 2 });
      await until(key, 1, 0);
      const second = await start("waits", { key, seconds: 0 });
      expect(await ended(first)).toEqual(SUCCEEDED);
      expect(await ended(second)).toEqual(SUCCEEDED);
    } finally {
      await set(true);
    }
  });

  it("control: where a stopped execution's token is taken, the key stays held for the sleeper that is gone", async () => {
    const key = freshKey();
    await without("closed_task", async () => {
      const first = await start("waits", { key, seconds: 6 });
      await until(key, 1, 0);
      const stopped = await start("waits", { key, seconds: 0 });
      await until(key, 1, 1);
      await call("states", "StopExecution", { executionArn: stopped });
      expect(await ended(first)).toEqual(SUCCEEDED);
      const locks = await client();
      await vi.waitUntil(async () => (await locks.inspect(key)).holders[0]?.owner !== undefined, PATIENCE);
      await locks.close();
    });
    await until(key, 1, 0);
  });
});
