/** A crash, as other processes see it: the heartbeats stop, and no release arrives. */
import { vi } from "vitest";
import type { TestLockClient, VirtualClock } from "../../lib/testing.js";

/** Longer than a default lease and its margin, in ms: after it, the locks of a dead process are free. */
export const LEASE_AND_MARGIN_MS = 32_000;

/** More requests than a client sends while closing. */
const LOST = 100;
/** The step in which time is advanced, in ms. */
const TURN_MS = 250;

/** Ends the client without a message to the service, and lets its last lease expire. */
export async function crash(locks: TestLockClient): Promise<void> {
  for (let lost = 0; lost < LOST; lost++) locks.faults.loseNextRequest();
  const closing = locks.close();
  await locks.clock.advance(LEASE_AND_MARGIN_MS);
  await closing;
}

/** Advances time in small steps until the promise settles, which may also wait for a real table. */
export async function turnUntil<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let done = false;
  const mark = (): void => void (done = true);
  promise.then(mark, mark);
  const turn = async (): Promise<boolean> => {
    if (!done) await clock.advance(TURN_MS);
    return done;
  };
  await vi.waitUntil(turn, { timeout: 15_000, interval: 5 });
  return promise;
}
