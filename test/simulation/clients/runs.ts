/**
 * Client actions with idempotency keys: work that succeeds, fails once or permanently, saves checkpoints, crashes midway, or outlives its
 * lease or its invocation; also different payloads, and operators that reset.
 */
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { FinalError, LockLostError, RunFailedError } from "../../../lib/client/wire/errors.js";
import type { Run } from "../../../lib/client/calls/run/run-once.js";
import { errorToJson } from "../../../lib/client/calls/run/json-codec.js";
import { sleep } from "./application.js";
import type { Actor, Stage } from "../stage.js";

const LEASES_MS = [1000, 2000, 6000, 20_000];
const SHORTEST_KEPT_MS = 60_000;
/**
 * Retention times. Most are the shortest allowed, so that outcomes are forgotten within a busy spell. Some outlive the idle gap, some
 * don't.
 */
const KEPT_MS = [SHORTEST_KEPT_MS, SHORTEST_KEPT_MS, SHORTEST_KEPT_MS, 90_000, 7_200_000, "forever"] as const;
/** Too large for the record itself, so it has its own item. */
const LARGE = "x".repeat(1100);
/** The payloads: that of most callers, that of some, and none. */
const PAYLOADS = ["A", "A", "A", "A", "A", "B", ""];

/** The work's results and checkpoints. Rising numbers identify them. */
interface Value {
  readonly serial: number;
  readonly about: string;
  readonly padding?: string;
}

/** A caller's own attempt, if it made one, and the error that its work threw. */
interface OwnAttempt {
  run?: Run;
  threw?: unknown;
}

/** The actions of a client that runs work under a key: one call after the other, or an operator's reset. */
export async function withRuns(stage: Stage, actor: Actor, again: () => void): Promise<void> {
  const { world, random, runKeys } = stage;
  let key = random.pick(runKeys);
  while (world.nowMs < stage.busyUntilMs) {
    await sleep(actor, random.between(0, 9000));
    try {
      if (random.chance(0.12)) await actor.client.runs.reset(key, { reason: "simulated" });
      else if ((await call(stage, actor, key, again)) && random.chance(0.3)) {
        // Calls again when the outcome is about to be forgotten.
        await sleep(actor, SHORTEST_KEPT_MS - 9000);
        continue;
      }
    } catch {
      // The client may report failures, losses, mismatches and outages. The oracle checks the history.
    }
    key = random.pick(runKeys);
  }
  await actor.client.close();
}

/** Makes one call. Returns true if the call recorded an outcome that will be forgotten soon. */
async function call(stage: Stage, actor: Actor, key: string, again: () => void): Promise<boolean> {
  const { world, random, faultProfile, oracle } = stage;
  const about = random.pick(PAYLOADS);
  const sinceMs = world.nowMs;
  const giveUp = new AbortController();
  if (random.chance(0.1)) actor.process.after(random.between(0, 5000), () => giveUp.abort());
  const options = {
    ...(about !== "" && { payload: about }),
    leaseMs: random.pick(LEASES_MS),
    keepResultMs: random.pick(KEPT_MS),
    maxAttempts: random.pick([0, 0, 0, 8]),
    waitMs: random.chance(0.4) ? 0 : random.whole(0, 20_000),
    heartbeat: random.chance(faultProfile.mix.heartbeats),
    signal: giveUp.signal,
  };
  const own: OwnAttempt = {};
  try {
    const { value, replayed, attempt } = await clientFor(stage, actor).runOnce(key, options, async (run) => {
      own.run = run;
      try {
        return await work(stage, actor, run, about, again);
      } catch (error) {
        own.threw = error;
        throw error;
      }
    });
    if (replayed) oracle.runs.toldReplay(key, about, { state: "succeeded", text: JSON.stringify(value), attempt, sinceMs });
    else oracle.runs.toldRecorded(key, attempt, value);
    return !replayed && options.keepResultMs === SHORTEST_KEPT_MS;
  } catch (error) {
    if (own.run && error instanceof LockLostError && error !== own.threw) oracle.runs.toldNotRecorded(own.run);
    if (!(error instanceof RunFailedError)) throw error;
    const { attempt, cause } = error;
    oracle.runs.toldReplay(key, about, { state: "failed", text: JSON.stringify(errorToJson(cause)), attempt, sinceMs });
    return false;
  }
}

/** Returns the client, or its view for an invocation that may end before the work does. */
function clientFor({ random }: Stage, { client, process }: Actor): LockClient {
  if (random.chance(0.7)) return client;
  const endsAtMs = process.monotonicMs() + random.between(1000, 15_000);
  return client.forInvocation({ getRemainingTimeInMillis: () => Math.max(0, endsAtMs - process.monotonicMs()) });
}

async function work(stage: Stage, actor: Actor, run: Run, about: string, again: () => void): Promise<Value> {
  const { world, random, faultProfile, oracle } = stage;
  oracle.begun(run);
  const steps = random.whole(0, 3);
  for (let step = 0; step < steps; step++) {
    await sleep(actor, random.chance(0.6) ? random.between(0, 300) : random.between(0, 8000));
    if (run.isHeld()) {
      const { idempotencyKey, fencingToken } = run;
      const slowMs = random.chance(0.3) ? faultProfile.mix.slowMs + faultProfile.mix.pauseMs : 20;
      world.in(random.between(1, slowMs), () => oracle.resourceWrite("runs", idempotencyKey, { fencingToken }));
    }
    if (random.chance(0.5)) {
      const saved = valueOf(stage, about);
      await run.saveCheckpoint(saved);
      oracle.runs.toldSaved(run, saved.serial);
    }
    // A sandbox that is frozen and resumes after its lease.
    if (random.chance(0.08)) actor.process.pause(random.between(1000, 30_000));
  }
  if (random.chance(0.1)) {
    actor.process.crash();
    again();
    await sleep(actor, 0);
  }
  const value = valueOf(stage, about);
  const why = JSON.stringify({ serial: value.serial, about });
  if (random.chance(0.3)) throw new Error(why);
  if (random.chance(0.2)) throw new FinalError(why);
  return value;
}

function valueOf({ random, world }: Stage, about: string): Value {
  return { serial: world.serial(), about, ...(random.chance(0.2) && { padding: LARGE }) };
}
