/**
 * Client actions with every kind of lock: readers that become writers and the reverse, permits, reentrant holds of one request in many
 * processes, sets of keys, and places in a queue over plain HTTP.
 */
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { SetKey } from "../../../lib/client/hold/lease-set.js";
import { leaseIdFrom } from "../../../lib/core/lease-id.js";
import type { Mode } from "../../../lib/core/record.js";
import { sleep, wait } from "./application.js";
import type { Activity, Actor, Kinds, Stage } from "../stage.js";
import { standInLine } from "./local-queue.js";
import type { Random } from "../random.js";

/** Keys of locks. Each is used by itself, in both modes, by reentrant holds of a scope, and in sets. */
const ITEMS = ["CART_1", "CART_2", "CART_3"];
/** A semaphore's key. */
export const SEATS = "SEATS_1";
const LEASES_MS = [1000, 1000, 2000, 6000, 20_000];

const ACTIVITIES: readonly Activity[] = [readOrWrite, takeSeats, runErrand, takeSet, stand, handIntoSet];

/** Draws the kinds of a history. It favours one kind, or treats all equally. `others` is a separate random stream. */
export function drawKinds(random: Random, others: Random): Kinds {
  const most = random.pick(ACTIVITIES);
  return {
    items: ITEMS.slice(0, random.whole(1, ITEMS.length)),
    seats: random.whole(2, 4),
    activities: random.chance(0.3) ? ACTIVITIES : [most, most, most, random.pick(ACTIVITIES)],
    renewsFirst: others.chance(0.04),
    errands: [],
  };
}

/** The actions of a client that uses all kinds of locks. */
export async function withKinds(stage: Stage, actor: Actor): Promise<void> {
  const { world, random, kinds } = stage;
  while (world.nowMs < stage.busyUntilMs) {
    await sleep(actor, random.between(0, 5000));
    try {
      await random.pick(kinds.activities)(stage, actor);
    } catch {
      // The client may report timeouts, losses and outages. The oracle checks the history.
    }
  }
  await actor.client.close();
}

async function readOrWrite(stage: Stage, actor: Actor): Promise<void> {
  const { random, kinds, oracle } = stage;
  const mode: Mode = random.chance(0.6) ? "shared" : "exclusive";
  const lease = await obtain(stage, actor, random.pick(kinds.items), { mode });
  if (!lease) return;
  // A writer that admits readers counts as a reader from that moment on.
  let letsIn = false;
  oracle.handed(lease, () => (letsIn ? "shared" : lease.mode));
  const changes = random.whole(0, 3);
  for (let change = 0; change < changes; change++) {
    await work(stage, actor, lease);
    if (lease.mode === "shared")
      await actor.watch.ends([lease.key], lease.upgrade({ waitMs: random.pick([0, 1000, 6000]) }), lease.leaseId);
    else {
      letsIn = true;
      await lease.downgrade();
      letsIn = false;
    }
  }
  await work(stage, actor, lease);
  await finish(stage, actor, lease);
}

async function takeSeats(stage: Stage, actor: Actor): Promise<void> {
  const { random, kinds, oracle } = stage;
  // Some callers disagree about the number of permits.
  const limit = random.chance(0.95) ? kinds.seats : kinds.seats + 1;
  const lease = await obtain(stage, actor, SEATS, { limit, permits: random.pick([1, 1, 2]) });
  if (!lease) return;
  oracle.handed(lease);
  await work(stage, actor, lease);
  await finish(stage, actor, lease);
}

/**
 * Takes a request's first hold, or one more besides those in other processes, with nested holds inside it. All of them end in any order.
 */
async function runErrand(stage: Stage, actor: Actor): Promise<void> {
  const { random, world, kinds } = stage;
  const { errands } = kinds;
  if (errands.length === 0 || random.chance(0.4)) {
    errands.push({ scope: `errand-of-somebody-${world.serial()}`, key: random.pick(kinds.items) });
    if (errands.length > 3) errands.shift();
  }
  const errand = random.pick(errands);
  const client = actor.client.scope(errand.scope);
  const levels: Lease[] = [];
  const most = random.whole(1, 3);
  while (levels.length < most) {
    const mode: Mode = random.chance(0.2) ? "shared" : "exclusive";
    const level = await obtain(stage, { ...actor, client }, errand.key, { mode });
    if (!level) break;
    stage.oracle.handed(level);
    levels.push(level);
    await work(stage, actor, level);
    // The request goes on in another process long after this one's holds have ended.
    if (random.chance(0.2)) await sleep(actor, random.between(0, 16_000));
  }
  while (levels.length > 0) {
    const [level] = levels.splice(random.whole(0, levels.length - 1), 1);
    if (level) await finish(stage, actor, level);
  }
}

async function takeSet(stage: Stage, actor: Actor): Promise<void> {
  const { random, faultProfile, oracle } = stage;
  const keys: SetKey[] = ITEMS.filter(() => random.chance(0.7)).map((key) => (random.chance(0.8) ? key : { key, mode: "shared" as const }));
  if (keys.length === 0) return;
  // A key that is also the name of a member that every object has.
  if (random.chance(0.1)) keys.push("__proto__");
  const options = { leaseMs: random.pick(LEASES_MS), heartbeat: random.chance(faultProfile.mix.heartbeats) };
  const set = random.chance(0.5)
    ? await actor.client.tryAcquireAll(keys, options)
    : await actor.watch.ends(
        keys.map((key) => (typeof key === "string" ? key : key.key)),
        actor.client.acquireAll(keys, { ...options, waitMs: random.whole(0, 15_000) }),
      );
  if (!set) return;
  oracle.handedSet(set);
  await pass(stage, actor);
  if (random.chance(0.2)) await set.renew();
  await pass(stage, actor);
  if (random.chance(0.1)) return void actor.process.crash();
  const states = await set.release();
  for (const key of set.keys) if (!Object.hasOwn(states, key)) oracle.fail("S6", `${key}: nobody was told how its lease of a set ended`);
  for (const [key, state] of Object.entries(states)) oracle.toldEnding(key, set.leaseId, state);
}

/**
 * Over plain HTTP: transfers a lease to the id of a set. The set finds that key held already and acquires the others, while another client
 * that knows the id releases it. No client treats any of these leases as held.
 */
async function handIntoSet(stage: Stage, actor: Actor): Promise<void> {
  const { random, kinds } = stage;
  if (kinds.items.length < 2) return;
  const [first = "", ...others] = kinds.items;
  const id = (): string => leaseIdFrom(actor.process.wallMs(), random.bytes(10));
  const [from, to] = [id(), id()];
  const ask = async (method: string, path: string, body?: object): Promise<void> => {
    const sent = actor.send(`http://simulated/v1/${path}`, { method, headers: {}, ...(body && { body: JSON.stringify(body) }) });
    await Promise.race([sent, sleep(actor, 2500)]);
  };
  await ask("PUT", `locks/${first}/leases/${from}`, { leaseMs: 6000 });
  await ask("POST", `locks/${first}/leases/${from}/transfer`, { leaseId: to });
  if (kinds.renewsFirst) await ask("POST", `locks/${first}/leases/${to}/renew`, { leaseMs: 6000 });
  const set = ask("PUT", `lock-sets/${to}`, { keys: [first, ...others], leaseMs: 6000 });
  await sleep(actor, random.between(0, 30));
  await Promise.all([set, ask("DELETE", `locks/${first}/leases/${to}`)]);
  await ask("POST", `lock-sets/${to}/release`, { keys: [first, ...others] });
}

async function stand(stage: Stage, actor: Actor): Promise<void> {
  const { random, kinds } = stage;
  const isSeat = random.chance(0.3);
  const key = isSeat ? SEATS : random.pick(kinds.items);
  const mode = !isSeat && random.chance(0.3) ? "shared" : "exclusive";
  await standInLine(stage, actor, key, { mode, ...(isSeat && { limit: kinds.seats, permits: random.pick([1, 2]) }) });
}

async function obtain(
  stage: Stage,
  actor: Actor,
  key: string,
  kind: { readonly mode?: Mode; readonly limit?: number; readonly permits?: number },
): Promise<Lease | null> {
  const { random, faultProfile } = stage;
  const { client, process } = actor;
  const options = { ...kind, leaseMs: random.pick(LEASES_MS), heartbeat: random.chance(faultProfile.mix.heartbeats) };
  if (random.chance(0.3)) return client.tryAcquire(key, options);
  const giveUp = new AbortController();
  if (random.chance(0.1)) process.after(random.between(0, 5000), () => giveUp.abort());
  return wait(stage, actor, key, { ...options, waitMs: random.whole(0, 20_000), signal: giveUp.signal });
}

/** Works under a lease: sends fenced writes with the token that a resource compares. */
async function work(stage: Stage, actor: Actor, lease: Lease): Promise<void> {
  const { world, random, faultProfile, oracle } = stage;
  await pass(stage, actor);
  if (!lease.isHeld()) return;
  const { key, leaseId, fencingToken, fenceFloor } = lease;
  const slowMs = random.chance(0.3) ? faultProfile.mix.slowMs + faultProfile.mix.pauseMs : 20;
  world.in(random.between(1, slowMs), () => oracle.resourceWrite("locks", key, { leaseId, fencingToken, fenceFloor }));
}

async function pass({ random }: Stage, actor: Actor): Promise<void> {
  await sleep(actor, random.chance(0.7) ? random.between(0, 400) : random.between(0, 9000));
}

async function finish({ random, oracle }: Stage, actor: Actor, lease: Lease): Promise<void> {
  if (random.chance(0.06)) return void actor.process.crash();
  oracle.toldEnding(lease.key, lease.leaseId, await lease.release());
}
