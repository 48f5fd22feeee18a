/** Many tied leases of several tenants, as far as AWS answers: how many a stack carries, and that no tenant takes them from another. */
import { expect, it } from "vitest";
import { type Send, awsIsRunning } from "../../lambda/executions.js";
import type { Acquire } from "../../lib/core/commands.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Clock } from "../../lib/core/time.js";
import { sweep } from "../../lib/service/agent.js";
import { oneClock } from "../../lib/service/clocks.js";
import { createMemoryStore } from "../support/memory-store.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import type { Address } from "../../lib/store/port.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { MINUTE_MS, OTHERS_MS } from "./agent-scene.js";

/** The rate of DescribeExecution in us-east-1: a bucket of questions, and those that it regains in a second. */
const BUCKET = 300;
const REFILL_PER_S = 15;
/** The time of one question, in ms. */
const ANSWER_MS = 40;

/** Answers as Step Functions does for one account: every execution runs, and a question that comes too fast is refused. */
function account(clock: Clock): Send {
  let [questions, atMs] = [BUCKET, clock.wallMs()];
  return async () => {
    await new Promise<void>((resolve) => void clock.after(ANSWER_MS, resolve));
    const nowMs = clock.wallMs();
    questions = Math.min(BUCKET, questions + ((nowMs - atMs) / 1000) * REFILL_PER_S);
    atMs = nowMs;
    if (questions < 1) return "ThrottlingException";
    questions--;
    return { status: "RUNNING" };
  };
}

/** Holds so many tied leases for each tenant, sweeps for so many minutes, and returns the number that each lost, and of failures. */
async function swept(tenants: Readonly<Record<string, { readonly leases: number; readonly leaseMs: number }>>, minutes: number) {
  const clock = new VirtualClock();
  const store = createMemoryStore({ policy: createPolicy(), clock });
  const sleepers = createMemorySleepers();
  const clocks = oneClock(clock);
  const held: { readonly address: Address; readonly leaseId: string }[] = [];
  for (const [namespace, { leases, leaseMs }] of Object.entries(tenants))
    for (let number = 0; number < leases; number++) {
      const address = { namespace, kind: "locks", key: `KEY_${number}` } as const;
      const [leaseId, principal] = [leaseIdAt(clock.wallMs()), "holder"];
      const kind = { mode: "exclusive", limit: 1, permits: 1, priority: 0, requestHash: "", owner: "" } as const;
      const acquire: Acquire = { type: "acquire", key: address.key, leaseId, principal, leaseMs, ...kind };
      const tied = { address, leaseId, principal, executionArn: `arn:aws:states:us-east-1:111122223333:execution:${namespace}:${number}` };
      await sleepers.put({ ...tied, putAtMs: clock.wallMs(), ttlAtSec: 1e10 });
      expect((await store.apply(address, acquire, clocks)).answer.ok).toBe(true);
      held.push({ address, leaseId });
    }
  let [seed, failed] = [1, 0];
  // A sequence without a pattern that matters here, and the same in every run.
  const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
  const isRunning = awsIsRunning({}, clock, random, account(clock));
  const deps = { store, sleepers, isRunning, clocks, clock, tell: () => Promise.reject(new Error("nobody sleeps")), log: () => undefined };
  await clock.advance(OTHERS_MS);
  for (let minute = 0; minute < minutes; minute++) {
    const ended = sweep({ ...deps, onFailure: () => void failed++ });
    await clock.advance(MINUTE_MS);
    await ended;
  }
  const lost: Record<string, number> = {};
  for (const { address, leaseId } of held) {
    const hold = (await store.read(address))?.holds[leaseId];
    const isLost = !hold || hold.expiresAtMs <= clock.wallMs();
    lost[address.namespace] = (lost[address.namespace] ?? 0) + Number(isLost);
  }
  return { lost, failed };
}

const SHORT_MS = 180_000;

it("1,500 leases of three minutes are kept, and of other tenants with them, without a failure", async () => {
  const { lost, failed } = await swept({ a: { leases: 1500, leaseMs: SHORT_MS }, b: { leases: 20, leaseMs: SHORT_MS } }, 8);
  expect({ lost, failed }).toEqual({ lost: { a: 0, b: 0 }, failed: 0 });
});

it("3,000 of one tenant, which are too many, are its own loss and a failure, and other tenants lose none", async () => {
  const { lost, failed } = await swept(
    { a: { leases: 3000, leaseMs: SHORT_MS }, b: { leases: 20, leaseMs: SHORT_MS }, c: { leases: 1, leaseMs: SHORT_MS } },
    6,
  );
  expect(lost).toMatchObject({ b: 0, c: 0 });
  expect(lost["a"]).toBeGreaterThan(500);
  expect(failed).toBeGreaterThan(0);
});

it("3,000 of ten minutes are kept: each is asked about before it ends, and not each in every sweep", async () => {
  const { lost, failed } = await swept({ a: { leases: 3000, leaseMs: 600_000 } }, 15);
  expect({ lost, failed }).toEqual({ lost: { a: 0 }, failed: 0 });
});
