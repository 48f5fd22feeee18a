/**
 * Accepting an order under its lock: what the tests beside it test. The locks, the orders and the kitchen come as
 * arguments, so that a test can hand in its own.
 */
import type { LockClient } from "../../lib/index.js";
import { key } from "../../lib/index.js";

/** Where orders are kept. */
export interface Orders {
  statusOf(id: number): Promise<string>;
  /** @throws Error when somebody with a larger token wrote already. */
  setStatus(id: number, status: string, fencingToken: number): Promise<void>;
}

/** Tells the kitchen to cook it. */
export type TellKitchen = (id: number) => Promise<void>;

/** Accepts an order that is new. @throws LockTimeoutError while somebody else is at it; LockLostError when it was lost meanwhile. */
export async function accept(
  locks: Pick<LockClient, "withLock">,
  orders: Orders,
  tellKitchen: TellKitchen,
  id: number,
): Promise<"accepted" | "too late"> {
  return locks.withLock(key("ORDER", id), async (lease) => {
    if ((await orders.statusOf(id)) !== "NEW") return "too late";
    await tellKitchen(id);
    lease.assertHeld();
    await orders.setStatus(id, "ACCEPTED", lease.fencingToken);
    return "accepted";
  });
}
