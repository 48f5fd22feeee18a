/** The heap that a held lease takes in a process that holds thousands. The flag that lets the test collect garbage stays set: a worker of its own. */
import v8 from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { createClient } from "../../../lib/client/client.js";
import { systemRuntime } from "../../../lib/client/runtime.js";
import type { AcquireRequest } from "../../../lib/core/api/locks.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import type { Held } from "../../../lib/core/commands.js";
import { renewAfterMs } from "../../../lib/core/renewal.js";

const LEASES = 5000;
const LEASE_MS = 60_000;

/** A service that grants everything at once, so that the heap has the client's part alone. */
const agreeing: Partial<ServiceApi> = {
  acquire: async ({ key, leaseId, owner = "" }: AcquireRequest): Promise<Held> => {
    const times = { leaseMs: LEASE_MS, remainingMs: LEASE_MS, renewAfterMs: renewAfterMs(LEASE_MS), serverTimeMs: 0 };
    const lease = { key, leaseId, owner, mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 1, version: 1, ...times } as const;
    return { ok: true, how: "granted", lease };
  },
  release: async () => ({ ok: true, state: "released" }),
};

it("is at most 3.2 KB, with what its heartbeat and its deadline need", async () => {
  v8.setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heapBytes = (): number => {
    collect();
    collect();
    return process.memoryUsage().heapUsed;
  };
  const locks = createClient(systemRuntime(agreeing as ServiceApi));
  // The first leases pay for what is made once.
  const held = [await locks.acquire("WARM_1", { leaseMs: LEASE_MS }), await locks.acquire("WARM_2", { leaseMs: LEASE_MS })];
  const before = heapBytes();
  for (let order = 0; order < LEASES; order++) held.push(await locks.acquire(`ORDER_${order}`, { leaseMs: LEASE_MS }));
  const bytesEach = (heapBytes() - before) / LEASES;
  expect(held.every((lease) => lease.isHeld())).toBe(true);
  await locks.close();
  // 5.3 KB with a snapshot of the async context for each lease.
  expect(bytesEach).toBeLessThan(3.2 * 1024);
});
