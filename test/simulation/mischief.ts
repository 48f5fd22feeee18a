/**
 * Callers that hold nothing and cancel ids that nobody asked for, made for any time. None of it may keep a key, or a set
 * of keys, from being granted for longer than grants.ts allows. And one that releases leases of long ago once more.
 */
import { leaseIdFrom } from "../../lib/core/lease-id.js";
import type { LeaseState } from "../../lib/core/commands.js";
import { sleep } from "./application.js";
import { lockKeysOf } from "./grants.js";
import type { Actor, Stage } from "./history.js";

const MINUTE = 60_000;
/** More than a key remembers by name. */
const MANY = 12;
const ANSWERED_MS = 2500;

/** The life of such a caller. */
export async function withMischief(stage: Stage, actor: Actor): Promise<void> {
  const { world, random } = stage;
  while (world.nowMs < stage.busyUntilMs) {
    await sleep(actor, random.between(0, 15_000));
    const key = random.pick(lockKeysOf(stage));
    const count = random.pick([1, MANY]);
    for (let index = 0; index < count; index++) await cancel(stage, actor, key);
  }
}

/** Releases every lease that was granted so far, and is told how it ended; its key may have been collected since. */
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

/** Cancels an id of its own making: of now, about as far ahead as is remembered, or of another day. */
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
