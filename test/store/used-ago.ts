/** Keys that were used a while ago, on an engine: for what goes by the age of an item. */
import { systemClock } from "../../lib/core/time.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { LockRecord } from "../../lib/core/record.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import type { Address } from "../../lib/store/port.js";
import { type FreshTable, engineCalls } from "../support/engine.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { Fixture } from "./fixture.js";

export const DAY_MS = 86_400_000;

/** Acquires the lock of this key so long ago, by the product's own policy. Returns what reads its record. */
export async function usedAgo(
  { tableName, endpoint }: Pick<FreshTable, "tableName" | "endpoint">,
  { namespace = "default", key }: Pick<Address, "key"> & Partial<Address>,
  agoMs: number,
): Promise<() => Promise<LockRecord | undefined>> {
  const calls = engineCalls(endpoint);
  const store = createDynamoStore({ calls, tableName, policy: createPolicy(), clock: systemClock, random: () => 0 });
  const used = new Fixture(store, { namespace, key });
  const atMs = systemClock.wallMs() - agoMs;
  used.clocks = { earliestMs: atMs, latestMs: atMs };
  await used.acquire(leaseIdAt(atMs));
  return () => used.read();
}
