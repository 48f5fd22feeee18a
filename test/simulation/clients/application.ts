/** The clients' use of locks: short and long holds, fenced writes, transfers, breaks, crashes and leases left to expire. */
import { LockError } from "../../../lib/client/wire/errors.js";
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { AcquireOptions } from "../../../lib/client/calls/options.js";
import type { Actor, Stage } from "../stage.js";

const LEASES_MS = [1000, 2000, 6000, 20_000, 30_000];

/** The parts of a stage that disturb a client. */
type Disturbed = Pick<Stage, "world" | "random" | "faultProfile" | "busyUntilMs" | "actor">;

/** A client's actions until the busy spell ends. `again` restarts it after a crash that it caused itself. */
export type Life<S extends Disturbed = Stage> = (stage: S, actor: Actor, again: () => void) => Promise<void>;

/** Starts client `index`. It starts sessions until the busy spell ends, through pauses, clock jumps and crashes. */
export function live<S extends Disturbed>(stage: S, index: number, life: Life<S>): void {
  const { world, random } = stage;
  const { mix } = stage.faultProfile;
  const actor = stage.actor(index);
  const again = (): void => void world.in(random.between(0, 5000), () => live(stage, index, life));
  void life(stage, actor, again);
  disturb();

  function disturb(): void {
    if (actor.process.isDead || world.nowMs >= stage.busyUntilMs) return;
    if (random.chance(mix.pause)) actor.process.pause(random.chance(0.5) ? random.between(0, 3000) : random.between(0, mix.pauseMs));
    if (mix.clientJumpMs > 0 && random.chance(0.1)) actor.process.wallErrorMs += random.between(-mix.clientJumpMs, mix.clientJumpMs);
    if (random.chance(mix.crash)) {
      actor.process.crash();
      again();
      return;
    }
    world.in(random.between(1000, 12_000), disturb);
  }
}

/** The actions of a client that takes locks. */
export async function withLocks(stage: Stage, actor: Actor): Promise<void> {
  const { world, random } = stage;
  while (world.nowMs < stage.busyUntilMs) {
    await sleep(actor, random.between(0, 4000));
    try {
      const lease = await obtain(stage, actor);
      if (!lease) continue;
      stage.oracle.handed(lease);
      await use(stage, actor, lease);
      await finish(stage, actor, lease);
    } catch {
      // The client may report timeouts, losses and outages. The oracle checks the history.
    }
  }
  await actor.client.close();
}

async function obtain(stage: Stage, actor: Actor): Promise<Lease | null> {
  const { random, faultProfile, keys, handles } = stage;
  const handle = random.chance(0.5) ? handles.pop() : undefined;
  if (handle !== undefined) return actor.client.attach(handle);
  const key = random.pick(keys);
  const leaseMs = random.pick(LEASES_MS);
  const heartbeat = random.chance(faultProfile.mix.heartbeats);
  if (random.chance(0.4)) return actor.client.tryAcquire(key, { leaseMs, heartbeat });
  const giveUp = new AbortController();
  if (random.chance(0.1)) actor.process.after(random.between(0, 5000), () => giveUp.abort());
  return wait(stage, actor, key, { leaseMs, heartbeat, waitMs: random.whole(0, 40_000), signal: giveUp.signal });
}

/** Waits for the key. Whatever happens to its place in the queue, a waiter gets `locked` or nothing until its time is over. */
export async function wait({ oracle }: Stage, { client, watch }: Actor, key: string, options: AcquireOptions): Promise<Lease> {
  try {
    return await watch.ends([key], client.acquire(key, options));
  } catch (error) {
    if (error instanceof LockError && error.code === "lease-over") oracle.fail("L2", `${key}: a waiter was sent away`);
    throw error;
  }
}

async function use(stage: Stage, actor: Actor, lease: Lease): Promise<void> {
  const { world, random, faultProfile, oracle } = stage;
  const steps = random.whole(0, 5);
  for (let step = 0; step < steps; step++) {
    const isShort = random.chance(0.6);
    await sleep(actor, isShort ? random.between(0, 300) : random.between(0, 25_000));
    if (lease.isHeld()) {
      const { key, leaseId, fencingToken } = lease;
      const slowMs = random.chance(0.3) ? faultProfile.mix.slowMs + faultProfile.mix.pauseMs : 20;
      world.in(random.between(1, slowMs), () => oracle.resourceWrite("locks", key, { leaseId, fencingToken }));
    }
    if (random.chance(0.15)) await lease.renew({ leaseMs: random.pick(LEASES_MS) });
    if (random.chance(0.06)) await breakSomebody(actor, lease.key, random.chance(0.5) ? random.whole(0, 3000) : undefined, stage);
  }
}

async function breakSomebody(actor: Actor, key: string, drainMs: number | undefined, { random, oracle }: Stage): Promise<void> {
  const { holders } = await actor.client.inspect(key);
  const [victim] = holders;
  if (!victim) return;
  // An operator acts on a view that may be stale: another lease may hold the key by then.
  if (random.chance(0.3)) await sleep(actor, random.between(0, 8000));
  oracle.asked.break(victim.fencingToken, drainMs !== undefined);
  await actor.client.forceRelease(key, {
    reason: "simulated",
    fencingToken: victim.fencingToken,
    ...(drainMs !== undefined && { drainMs }),
  });
}

async function finish(stage: Stage, actor: Actor, lease: Lease): Promise<void> {
  const { random, oracle, handles } = stage;
  const { key, leaseId } = lease;
  if (random.chance(0.1)) await lookLater(stage, actor, lease);
  if (random.chance(0.08)) {
    handles.push(await lease.detach({ leaseMs: random.pick(LEASES_MS) }));
    return;
  }
  // A forgotten lease: no client releases it. Heartbeats would renew it forever, so its process ends.
  if (random.chance(0.1)) {
    actor.process.crash();
    return;
  }
  oracle.toldEnding(key, leaseId, await lease.release());
}

/** Asks over plain HTTP whether the lease is held, perhaps long after it expired. The oracle checks the answer. */
async function lookLater({ random }: Stage, actor: Actor, { key, leaseId }: Lease): Promise<void> {
  await sleep(actor, random.between(0, 30_000));
  await Promise.race([
    actor.send(`http://simulated/v1/locks/${key}/leases/${leaseId}`, { method: "GET", headers: {} }),
    sleep(actor, 2500),
  ]);
}

/** Resolves after `ms` by the actor's own clock. Never resolves in a process that has ended. */
export function sleep(actor: Actor, ms: number): Promise<void> {
  return new Promise((resolve) => void actor.process.after(ms, resolve));
}
