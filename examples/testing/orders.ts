/**
 * Accepts an order under its lock: the code that the tests beside it test. The locks, the orders and the kitchen are
 * arguments, so that a test can pass in its own.
 */
import { type LockClient, key } from "../../lib/index.js";

/** A store of orders. */
export interface Orders {
  statusOf(id: number): Promise<string>;
  /** @throws Error if a larger token has written the order. */
  setStatus(id: number, status: string, fencingToken: number): Promise<void>;
}

/** Sends the order to the kitchen. */
export type TellKitchen = (id: number) => Promise<void>;

/** Accepts a new order. @throws LockTimeoutError while another process holds the order; LockLostError if the lock was lost meanwhile. */
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
