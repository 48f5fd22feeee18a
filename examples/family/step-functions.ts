/**
 * A lock that one step of a Step Functions workflow transfers to the next. The first step acquires and detaches it, the
 * handle travels in the state, and the second step attaches it, works and releases. In between no client holds it and
 * no client can get it. The handle is a secret that works once. Everyone who may read the execution's history sees it.
 */
import { type Lease, type LockClient, key, LockError } from "../../lib/index.js";
import { play } from "./stage.js";

/** The time that the next step has to attach. After it, the key is free. */
export const GAP_MS = 15 * 60_000;
/** The lease of a step that is running, renewed while it runs. After a crash, the key is free once this has passed. */
export const STEP_MS = 30_000;

/** The input of the workflow. */
export interface OrderState {
  readonly order: string;
}

/** The first step: reserves the order and puts the handle into the state. */
export function reserveStep(locks: Pick<LockClient, "acquire">): (state: OrderState) => Promise<OrderState & { readonly lock: string }> {
  return async (state) => {
    const lease = await locks.acquire(key("ORDER", state.order), { leaseMs: STEP_MS });
    return { ...state, lock: await lease.detach({ leaseMs: GAP_MS }) };
  };
}

/**
 * The step that works under the lock. A handle that was used fails with `lease-lost`: send that error to the state that
 * reserves again (`Catch`), and don't retry it (`Retry`).
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
