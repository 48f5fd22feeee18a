/**
 * A run that outlives the normal retention of its record. A heartbeat extends the retention of the record, and with it the item of a large
 * checkpoint, while the runner saves another checkpoint without giving its sequence number.
 */
import { RETENTION_MIN_MS } from "../../../lib/core/limits.js";
import { leaseIdFrom } from "../../../lib/core/lease-id.js";
import { sleep } from "./application.js";
import type { Stage } from "../stage.js";

const KEY = "LONG_RUN";
const RUNNER = 350;
const DAY_MS = 86_400_000;
const ROUNDS = 4;
const LARGE = "x".repeat(1500);

/** Checks that the run resumes from the last checkpoint whose save was acknowledged. */
export async function checkLongRun(stage: Stage): Promise<void> {
  const { world, random, oracle } = stage;
  const actor = stage.actor(RUNNER);
  const leaseId = leaseIdFrom(world.nowMs, random.bytes(10));
  const path = `http://simulated/v1/runs/${KEY}/leases/${leaseId}`;
  const ask = async (method: string, to: string, body: object): Promise<number> =>
    (await actor.send(path + to, { method, headers: {}, body: JSON.stringify(body) })).status;
  const save = async (padding: string): Promise<void> => {
    const serial = world.serial();
    const status = await ask("POST", "/renew", { leaseMs: DAY_MS, checkpoint: { serial, about: "", padding } });
    if (status === 200) oracle.runs.acknowledged(KEY, leaseId, serial);
  };
  let isOver = false;
  const run = async (): Promise<void> => {
    await ask("PUT", "", { leaseMs: DAY_MS, keepResultMs: 60_000 });
    for (let round = 0; round < ROUNDS; round++) {
      await save(LARGE);
      await sleep(actor, 2 * RETENTION_MIN_MS + random.between(1, 2) * 600_000);
      const beat = ask("POST", "/renew", { leaseMs: DAY_MS });
      await sleep(actor, random.between(0, 25));
      await Promise.all([beat, save("")]);
      await sleep(actor, 1000);
    }
    await ask("POST", "/outcome", { state: "succeeded", result: {} });
  };
  void run().finally(() => (isOver = true));
  await world.run(world.nowMs + 12 * 3_600_000, () => isOver);
}
