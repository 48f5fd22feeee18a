/** An order's states: every move from every state, and the resulting orders. */
import { describe, expect, it } from "vitest";
import { type Move, type Order, type Refund, type Status, keyOf, moved, shown, TRANSITIONS } from "../../examples/orders/order.js";

const STATUSES: readonly Status[] = ["PLACED", "PAID", "ACCEPTED", "COMPLETED", "CANCELLED", "REFUNDED"];
const REFUNDS: readonly Refund[] = ["NONE", "ASKED", "REFUSED", "AGREED"];

/** Everything that is allowed, in another notation: move, state before, state after, and a mark if the goods come back. */
const ALLOWED = `
  pay                PLACED             -> PAID
  cancel             PLACED             -> CANCELLED          restocks
  cancel             PAID               -> CANCELLED          restocks
  accept             PAID               -> ACCEPTED
  complete           ACCEPTED           -> COMPLETED
  ask for a refund   PAID/NONE          -> PAID/ASKED
  ask for a refund   ACCEPTED/NONE      -> ACCEPTED/ASKED
  ask for a refund   COMPLETED/NONE     -> COMPLETED/ASKED
  agree to a refund  PAID/ASKED         -> REFUNDED/AGREED    restocks
  agree to a refund  ACCEPTED/ASKED     -> REFUNDED/AGREED
  agree to a refund  COMPLETED/ASKED    -> REFUNDED/AGREED
  refuse a refund    PAID/ASKED         -> PAID/REFUSED
  refuse a refund    ACCEPTED/ASKED     -> ACCEPTED/REFUSED
  refuse a refund    COMPLETED/ASKED    -> COMPLETED/REFUSED`;

const rows = [...ALLOWED.matchAll(/^ +(.+?) {2,}(\S+) +-> (\S+) *(restocks)?$/gm)].map(([, move, before, after, restocks]) => ({
  move: move as Move,
  before: before!,
  after: after!,
  restocks: restocks !== undefined,
}));

function orderIn(status: Status, refund: Refund): Order {
  return { id: "1", buyer: "ann", seller: "sue", items: { camera: 1 }, total: 4900, status, refund, lastRun: "secret" };
}

/** The entry of `ALLOWED` for the move in this state; undefined if there is none. */
function expected(move: Move, status: Status, refund: Refund): string | undefined {
  const row = rows.find((one) => one.move === move && (one.before === status || one.before === `${status}/${refund}`));
  return row && `${row.after.includes("/") ? row.after : `${row.after}/${refund}`}${row.restocks ? " restocks" : ""}`;
}

describe("an order", () => {
  it("is moved from each state by what is allowed there, and by nothing else", () => {
    expect(rows).toHaveLength(14);
    for (const move of Object.keys(TRANSITIONS) as Move[]) {
      for (const status of STATUSES) {
        for (const refund of REFUNDS) {
          const after = moved(orderIn(status, refund), move);
          const said = after && `${after.order.status}/${after.order.refund}${after.restocks ? " restocks" : ""}`;
          expect(said, `${move}: ${status}, refund ${refund}`).toBe(expected(move, status, refund));
        }
      }
    }
  });

  it("stays what it was but for its state", () => {
    const before = orderIn("PAID", "ASKED");
    expect(moved(before, "agree to a refund")?.order).toEqual({ ...before, status: "REFUNDED", refund: "AGREED" });
  });

  it("has one key for all that is done to it", () => {
    expect(keyOf("lx3k-8f3a")).toBe("ORDER_lx3k-8f3a");
  });

  it("is shown without what only the service needs", () => {
    const item = { ...orderIn("PAID", "NONE"), fencingToken: 7 };
    expect(Object.keys(shown(item))).toEqual(["id", "buyer", "seller", "items", "total", "status", "refund"]);
    expect(shown({ ...item, review: { stars: 5, text: "" } })).toHaveProperty("review");
  });
});
