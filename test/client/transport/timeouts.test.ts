/** The error of a timeout: the holders, the position in the queue, the time waited; with one wording for all waits. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { type LockClient, LockTimeoutError } from "../../../lib/index.js";
import { type Harness, createHarness } from "../harness.js";

const KEY = "ORDER_1231";
const HELD_MS = 4000;
const WAIT_MS = 1500;
const OPTIONS = { waitMs: WAIT_MS } as const;

async function timedOut({ clock }: Harness, asking: Promise<unknown>): Promise<LockTimeoutError> {
  const error: unknown = await clock.settle(asking.catch((reason: unknown) => reason));
  expect(error).toBeInstanceOf(LockTimeoutError);
  return error as LockTimeoutError;
}

/** A harness whose key a rival holds. */
async function heldRig(): Promise<Harness> {
  const harness = createHarness();
  await harness.rival.acquire(KEY);
  await harness.clock.advance(HELD_MS);
  return harness;
}

describe("an acquire that waited in vain", () => {
  it("names the holder, the place in the queue and the time waited", async () => {
    const harness = await heldRig();
    const error = await timedOut(harness, harness.locks.acquire(KEY, OPTIONS));
    const [holder] = error.holders;
    expect(error).toMatchObject({ code: "wait-timeout", definite: true, retry: "later", position: 1, waitedMs: WAIT_MS });
    expect(holder).toMatchObject({ owner: "rival", mode: "exclusive", heldMs: HELD_MS + WAIT_MS });
    expect(error.message).toBe(
      `acquire ${KEY}: still held by rival (for ${HELD_MS + WAIT_MS} ms) after ${WAIT_MS} ms, at place 1 of its queue`,
    );
    expect(JSON.stringify(error)).not.toMatch(/leaseId|scope/);
  });

  it("that asked once has the holders of the refusal, and no place", async () => {
    const harness = await heldRig();
    const error = await timedOut(harness, harness.locks.acquire(KEY, { waitMs: 0 }));
    expect(error).toMatchObject({ holders: [{ owner: "rival" }], position: undefined, waitedMs: 0 });
    expect(error.message).toBe(`acquire ${KEY}: still held by rival (for ${HELD_MS} ms) after 0 ms`);
    expect(harness.wire.of("inspect")).toEqual([]);
  });

  it("counts its own time and names the same holder, however many wait in one line; few of them look", async () => {
    const harness = await heldRig();
    const waits = Array.from({ length: 300 }, (_, index) => WAIT_MS + index);
    const errors = await Promise.all(waits.map((waitMs) => timedOut(harness, harness.locks.acquire(KEY, { waitMs }))));
    expect(errors.map(({ waitedMs }) => waitedMs)).toEqual(waits);
    expect(errors.filter(({ holders }) => holders[0]?.owner === "rival").length).toBeGreaterThan(295);
    expect(harness.wire.of("inspect")).toHaveLength(1);
  });

  it("is told so all the same when nobody answers who holds the key, and soon", async () => {
    const harness = await heldRig();
    harness.wire.always("inspect", { lost: "reply", silently: true });
    const began = harness.clock.monotonicMs();
    const error = await timedOut(harness, harness.locks.acquire(KEY, OPTIONS));
    expect(error).toMatchObject({ holders: [], position: 1, waitedMs: WAIT_MS });
    expect(error.message).toBe(`acquire ${KEY}: still held by another after ${WAIT_MS} ms, at place 1 of its queue`);
    expect(harness.clock.monotonicMs() - began).toBeLessThanOrEqual(WAIT_MS + 250);
  });

  it.each<[code: "contended" | "key-full", why: string, keys: readonly string[], begins: string]>([
    ["contended", "Others kept changing the key under the request", [KEY], `acquire ${KEY}`],
    ["contended", "Others kept changing the key under the request", [KEY, "free"], `acquire ${KEY} free`],
    ["key-full", "The key's record has reached its size limit", [KEY], `acquire ${KEY}`],
  ])("says %s, and not that somebody holds a key that nobody holds: %s %j", async (code, why, keys, begins) => {
    const harness = createHarness();
    for (const operation of ["acquire", "acquireSet"] as const)
      harness.wire.always(operation, { instead: refuse(code, { retryAfterMs: 500 }) });
    const { locks } = harness;
    const error = await timedOut(harness, keys.length > 1 ? locks.acquireAll(keys, OPTIONS) : locks.acquire(KEY, OPTIONS));
    expect([error.holders, error.cause]).toEqual([[], expect.objectContaining({ code })]);
    expect(error.message).toMatch(new RegExp(`^${begins}: not granted after \\d+ ms: ${why}$`));
  });

  it("says how many more there are of a semaphore", async () => {
    const harness = createHarness();
    for (const owner of ["one", "two", "three"]) await harness.rival.acquire(KEY, { limit: 3, owner });
    const error = await timedOut(harness, harness.locks.acquire(KEY, { limit: 3, ...OPTIONS }));
    expect(error.holders.map(({ owner }) => owner).toSorted()).toEqual(["one", "three", "two"]);
    expect(error.message).toMatch(/still held by \w+ \(for 1500 ms\) and 2 more after 1500 ms/);
  });
});

it.each<[what: string, begins: string, ask: (locks: LockClient) => Promise<unknown>]>([
  ["a set", `acquire ${KEY} free: ${KEY}: still held by rival`, (locks) => locks.acquireAll([KEY, "free"], OPTIONS)],
  ["an upgrade", "upgrade read: still held by rival", async (locks) => (await locks.acquire("read", { mode: "shared" })).upgrade(OPTIONS)],
  ["a run", "run job: still held by another", (locks) => locks.runOnce("job", OPTIONS, () => "never")],
])("the time-out of %s has the same wording", async (_what, begins, ask) => {
  const harness = await heldRig();
  await harness.rival.acquire("read", { mode: "shared" });
  void harness.rival.runOnce("job", () => new Promise(() => undefined));
  const error = await timedOut(harness, ask(harness.locks));
  expect(error.message.startsWith(begins)).toBe(true);
  expect(error.message).toContain(` after ${WAIT_MS} ms`);
  expect(error.waitedMs).toBe(WAIT_MS);
});
