/**
 * Calls of a process whose event loop is blocked by work right after them, with real clocks and sockets. Regression: Node runs timers before
 * it reads what has arrived. The answers were in the sockets, but every call was told of an outage, and those that may proceed ran beside
 * the holder.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LockClient, createLockClient, LockTimeoutError, LockUnavailableError } from "../../../lib/index.js";

const WAIT_MS = 1000;
const BLOCKED_MS = 1500;

/** A service whose keys are all held; at paths under /silent it never answers. It runs in a thread, which the work doesn't block. */
const SERVICE = `
  const { createServer } = require("node:http");
  const { parentPort } = require("node:worker_threads");
  const held = (code) => ({ code, detail: "held", definite: true, retry: "later", retryAfterMs: 200 });
  const server = createServer((request, response) => {
    request.resume();
    if (request.url.startsWith("/silent")) return;
    const isRun = request.url.includes("/runs/");
    response.writeHead(isRun ? 409 : 423, { "content-type": "application/problem+json" });
    response.end(JSON.stringify(held(isRun ? "run-in-progress" : "locked")));
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`;

let service: Worker;
let url: string;
beforeAll(async () => {
  service = new Worker(SERVICE, { eval: true });
  const [port] = (await once(service, "message")) as [number];
  url = `http://127.0.0.1:${port}`;
});
afterAll(() => service.terminate());

/** Makes every kind of call, blocks the loop, and returns the outcomes. */
async function outcomesOf(locks: LockClient): Promise<readonly unknown[]> {
  const options = { waitMs: WAIT_MS, whenUnavailable: "proceed" } as const;
  const work = (): string => "ran";
  const calls = [
    locks.withLock("k", options, work),
    locks.withLock("k", { ...options, waitMs: 0, leaseMs: 1000 }, work),
    locks.withLock("k", { ...options, mode: "shared" }, work),
    locks.scope("nightly-import-7").withLock("k", options, work),
    locks.withLocks(["k", "l"], options, work),
    locks.runOnce("k", options, work).then(({ value }) => value),
  ].map((call) => call.catch((error: unknown) => error));
  const began = performance.now();
  while (performance.now() - began < BLOCKED_MS);
  return Promise.all(calls);
}

it("learns that the key is held", async () => {
  for (const outcome of await outcomesOf(createLockClient({ url }))) expect(outcome).toBeInstanceOf(LockTimeoutError);
});

it("control: of a service that never answers it learns of an outage", async () => {
  const locks = createLockClient({ url: `${url}/silent` });
  expect(new Set(await outcomesOf(locks))).toEqual(new Set(["ran"]));
  await expect(locks.acquire("k", { waitMs: 0, leaseMs: 1000 })).rejects.toBeInstanceOf(LockUnavailableError);
});
