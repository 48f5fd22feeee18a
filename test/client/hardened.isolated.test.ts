/** A process that changes what others may not: `--frozen-intrinsics`, or a frozen Error. The client changes no global and no caller's signal. */
import { getMaxListeners } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createHarness } from "./harness.js";

const limit = Object.getOwnPropertyDescriptor(Error, "stackTraceLimit")!;
beforeAll(() => void Object.defineProperty(Error, "stackTraceLimit", { ...limit, writable: false }));
afterAll(() => void Object.defineProperty(Error, "stackTraceLimit", limit));

it("releases, although Error.stackTraceLimit can't be written", async () => {
  const { locks, rival, wire } = createHarness();
  const lease = await locks.acquire("k");
  expect(await lease.release()).toBe("released");
  expect(wire.of("release")).toHaveLength(1);
  expect(lease.signal.reason).toMatchObject({ name: "LockLostError", reason: "released" });
  expect(await rival.tryAcquire("k")).not.toBeNull();
});

it("hears one signal for any number of waits, of views too, and leaves its limit of listeners and nothing on it", async () => {
  const { locks, clock } = createHarness();
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warned);
  const gone = new AbortController();
  const before = getMaxListeners(gone.signal);
  await locks.acquire("k");
  const views = Array.from({ length: 30 }, () => locks.forInvocation({ getRemainingTimeInMillis: () => 60_000 }));
  const waits = views.map((view) => view.acquire("k", { signal: gone.signal }).catch((error: unknown) => (error as Error).name));
  await clock.advance(100);
  gone.abort();
  expect(new Set(await clock.settle(Promise.all(waits)))).toEqual(new Set(["AbortError"]));
  expect(getMaxListeners(gone.signal)).toBe(before);
  await new Promise<void>((resolve) => void setImmediate(resolve));
  process.off("warning", warned);
  expect(warnings).toEqual([]);
});

it("refuses a read of a closed client, and segments of what is no key", async () => {
  const { locks } = createHarness();
  expect(() => locks.segments(undefined as never, 2)).toThrow(/^key: undefined given/);
  await locks.close();
  for (const read of [() => locks.inspect("k"), () => locks.list(), () => locks.runs.get("k")])
    await expect(read()).rejects.toMatchObject({ code: "closed" });
});
