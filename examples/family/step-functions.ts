/**
 * A lock that is handed from one step of a Step Functions workflow to the next: the first acquires it and detaches,
 * the handle travels in the state, the second attaches, works and releases. In between nobody holds it and nobody
 * gets it. The handle is a secret that works once; it is seen by all who may read the execution's history.
 */
import type { Lease, LockClient } from "../../lib/index.js";
import { key, LockError } from "../../lib/index.js";
import { play } from "./stage.js";

/** For how long the next step may be in coming; after it, the key is free. */
export const GAP_MS = 15 * 60_000;
/** The lease of a step at work, renewed while it lives: after a crash, the key is free that soon. */
export const STEP_MS = 30_000;

/** What the workflow begins with. */
export interface OrderState {
  readonly order: string;
}

/** The first step: has the order to itself from here on, and says so in the state. */
export function reserveStep(locks: Pick<LockClient, "acquire">): (state: OrderState) => Promise<OrderState & { readonly lock: string }> {
  return async (state) => {
    const lease = await locks.acquire(key("ORDER", state.order), { leaseMs: STEP_MS });
    return { ...state, lock: await lease.detach({ leaseMs: GAP_MS }) };
  };
}

/**
 * The step that works under it. A handle that was used is `lease-lost`: let that error be caught by the state that
 * reserves anew (`Catch`), and not be tried again (`Retry`).
 */
export function shipStep(
  locks: Pick<LockClient, "attach">,
  ship: (order: string, lease: Lease) => Promise<void>,
): (state: OrderState & { readonly lock: string }) => Promise<OrderState> {
  return async ({ lock, ...state }) => {
    await using lease = await locks.attach(lock, { leaseMs: STEP_MS });
    await ship(state.order, lease);
    lease.assertHeld();
    return state; // Without the handle: it is used up.
  };
}

await play(import.meta.url, async ({ join }) => {
  const passed = JSON.stringify(await reserveStep(join())({ order: "order-1231" }));
  const state = JSON.parse(passed) as OrderState & { lock: string };
  const stranger = join();
  console.log(`between the steps: ${(await stranger.tryAcquire(key("ORDER", state.order))) ? "let in!" : "nobody gets in"}`);
  const step = shipStep(join(), async (order, lease) => {
    lease.assertHeld();
    console.log(`${order} is shipped under the lock: ${lease.isHeld()}`);
  });
  console.log("handed on:", JSON.stringify(await step(state)));
  console.log(`afterwards: ${(await stranger.tryAcquire(key("ORDER", state.order))) ? "free" : "still held!"}`);
  const again = await step(state).catch((error: unknown) => error);
  console.log(`the step is tried again: ${again instanceof LockError ? again.code : "and works twice!"}`);
});
