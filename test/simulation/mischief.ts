/**
 * Callers that hold nothing and cancel ids that nobody asked for, made for any time. None of it may keep a key, or a set
 * of keys, from being granted for longer than grants.ts allows.
 */
import { leaseIdFrom } from "../../lib/core/lease-id.js";
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
  const sent = actor.send(`http://simulated/v1/locks/${key}/leases/${leaseId}`, { method: "DELETE", headers: {} });
  await Promise.race([sent, sleep(actor, ANSWERED_MS)]);
}
