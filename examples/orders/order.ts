/**
 * An order's life as data: its states, and the moves between them. A new operation is a new row. No I/O: other files
 * authenticate, lock and write.
 */
import { key } from "../../lib/index.js";

/** The progress of an order. */
export type Status = "PLACED" | "PAID" | "ACCEPTED" | "COMPLETED" | "CANCELLED" | "REFUNDED";
/** The state of a refund that the buyer asked for. */
export type Refund = "NONE" | "ASKED" | "AGREED" | "REFUSED";
/** The parties of an order. */
export type Role = "buyer" | "seller";

/** The buyer's review. */
export interface Review {
  /** 1 to 5. */
  readonly stars: number;
  readonly text: string;
}

/** An order. */
export interface Order {
  readonly id: string;
  readonly buyer: string;
  readonly seller: string;
  /** Pieces of each product. */
  readonly items: Readonly<Record<string, number>>;
  /** In cents. */
  readonly total: number;
  readonly status: Status;
  readonly refund: Refund;
  readonly review?: Review;
  /** The last run that changed it. An attempt that takes over recognizes what the attempt before it did. */
  readonly lastRun?: string;
}

interface Transition {
  readonly by: Role;
  readonly from: readonly Status[];
  /** The refund's required state. Any state if left out. */
  readonly refund?: Refund;
  readonly to: Partial<Pick<Order, "status" | "refund">>;
  /** The states from which the goods go back into stock, because they haven't left the shelf. */
  readonly restocksFrom?: readonly Status[];
}

/** Every move of an existing order. */
export const TRANSITIONS = {
  pay: { by: "buyer", from: ["PLACED"], to: { status: "PAID" } },
  cancel: { by: "buyer", from: ["PLACED", "PAID"], to: { status: "CANCELLED" }, restocksFrom: ["PLACED", "PAID"] },
  accept: { by: "seller", from: ["PAID"], to: { status: "ACCEPTED" } },
  complete: { by: "seller", from: ["ACCEPTED"], to: { status: "COMPLETED" } },
  "ask for a refund": { by: "buyer", from: ["PAID", "ACCEPTED", "COMPLETED"], refund: "NONE", to: { refund: "ASKED" } },
  "agree to a refund": {
    by: "seller",
    from: ["PAID", "ACCEPTED", "COMPLETED"],
    refund: "ASKED",
    to: { status: "REFUNDED", refund: "AGREED" },
    restocksFrom: ["PAID"],
  },
  "refuse a refund": { by: "seller", from: ["PAID", "ACCEPTED", "COMPLETED"], refund: "ASKED", to: { refund: "REFUSED" } },
} as const satisfies Readonly<Record<string, Transition>>;

/** The name of a move. */
export type Move = keyof typeof TRANSITIONS;

/** A completed move: the order after it, and its effect on the stock. */
export interface Moved {
  readonly order: Order;
  readonly restocks: boolean;
}

/** Returns the order after the move, or undefined if the order's state doesn't allow it. */
export function moved(order: Order, move: Move): Moved | undefined {
  const { from, refund = order.refund, to, restocksFrom = [] }: Transition = TRANSITIONS[move];
  if (!from.includes(order.status) || refund !== order.refund) return undefined;
  return { order: { ...order, ...to }, restocks: restocksFrom.includes(order.status) };
}

/** The key for everything that is done to the order, and the name of its item. It names the order, never the operation. */
export function keyOf(order: string): string {
  return key("ORDER", order);
}

/** Returns the view of the order for its buyer and its seller. */
export function shown({ id, buyer, seller, items, total, status, refund, review }: Order): object {
  return { id, buyer, seller, items, total, status, refund, ...(review && { review }) };
}
