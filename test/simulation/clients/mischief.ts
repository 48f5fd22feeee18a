/**
 * Callers without a hold that cancel ids that no client asked for, with any timestamp. They may not delay the grant of a key or of a set
 * for longer than grants.ts allows. Another caller releases long-ended leases once more.
 */
import { leaseIdFrom } from "../../../lib/core/lease-id.js";
import type { LeaseState } from "../../../lib/core/commands.js";
import { sleep } from "./application.js";
import { lockKeysOf } from "../oracles/grants.js";
import type { Actor, Stage } from "../stage.js";

const MINUTE = 60_000;
/** More ids than a key has tombstones for. */
const MANY = 12;
const ANSWERED_MS = 2500;

/** The actions of such a caller. */
export async function withMischief(stage: Stage, actor: Actor): Promise<void> {
  const { world, random } = stage;
  while (world.nowMs < stage.busyUntilMs) {
    await sleep(actor, random.between(0, 15_000));
    const key = random.pick(lockKeysOf(stage));
    const count = random.pick([1, MANY]);
    for (let index = 0; index < count; index++) await cancel(stage, actor, key);
  }
}

/** Releases every lease that was granted so far. The service reports how each ended. The key may have been collected since. */
export async function releaseAll(stage: Stage, actor: Actor): Promise<void> {
  const { oracle } = stage;
  for (const key of lockKeysOf(stage)) {
    for (const leaseId of oracle.leasesOf(key)) {
      const response = await Promise.race([release(actor, key, leaseId), sleep(actor, ANSWERED_MS)]);
      if (response?.status === 204) oracle.toldEnding(key, leaseId, response.headers.get("lease-state") as LeaseState);
    }
  }
}

function release(actor: Actor, key: string, leaseId: string): Promise<Response> {
  return actor.send(`http://simulated/v1/locks/${key}/leases/${leaseId}`, { method: "DELETE", headers: {} });
}

/** Cancels a made-up id: for the current time, for about as far ahead as tombstones last, or for another day. */
async function cancel({ random, faultProfile }: Stage, actor: Actor, key: string): Promise<void> {
  const ahead = [
    0,
    random.between(0, 10_000),
    random.between(30, 41) * MINUTE,
    random.between(0, 70) * MINUTE,
    faultProfile.mix.strayErrorMs,
  ];
  const leaseId = leaseIdFrom(actor.process.wallMs() + random.pick(ahead), random.bytes(10));
  await Promise.race([release(actor, key, leaseId), sleep(actor, ANSWERED_MS)]);
}
