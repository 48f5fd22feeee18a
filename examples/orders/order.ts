/**
 * An order's life as data: its states, and which move leads from where to where. A new operation is a new row. No I/O
 * here: who asks, what is locked and what is written is for others.
 */
import { key } from "../../lib/index.js";

/** How far it got. */
export type Status = "PLACED" | "PAID" | "ACCEPTED" | "COMPLETED" | "CANCELLED" | "REFUNDED";
/** What became of the money that the buyer wants back. */
export type Refund = "NONE" | "ASKED" | "AGREED" | "REFUSED";
/** Who has a part in an order. */
export type Role = "buyer" | "seller";

/** What the buyer thought of it. */
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
  /** The run that changed it last: an attempt that took over finds what the one before it did. */
  readonly lastRun?: string;
}

interface Transition {
  readonly by: Role;
  readonly from: readonly Status[];
  /** What the refund must be. Left out: whatever it is. */
  readonly refund?: Refund;
  readonly to: Partial<Pick<Order, "status" | "refund">>;
  /** From these states the goods go back into stock: they are still on the shelf. */
  readonly restocksFrom?: readonly Status[];
}

/** Every move of an order that exists. */
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

/** A move that was made: the order after it, and whether its goods go back into stock. */
export interface Moved {
  readonly order: Order;
  readonly restocks: boolean;
}

/** What the move makes of the order; undefined when the order is in no state for it. */
export function moved(order: Order, move: Move): Moved | undefined {
  const { from, refund = order.refund, to, restocksFrom = [] }: Transition = TRANSITIONS[move];
  if (!from.includes(order.status) || refund !== order.refund) return undefined;
  return { order: { ...order, ...to }, restocks: restocksFrom.includes(order.status) };
}

/** The key of all that is done to the order, and the name of its item: of the order, never of the operation. */
export function keyOf(order: string): string {
  return key("ORDER", order);
}

/** What its buyer and its seller see of it. */
export function shown({ id, buyer, seller, items, total, status, refund, review }: Order): object {
  return { id, buyer, seller, items, total, status, refund, ...(review && { review }) };
}
