/** Three functions with different requests for one order at the same moment, and their outcome. */
import { expect, vi } from "vitest";
import { type Told, ask } from "../../examples/orders/ask.js";
import type { LocalShop } from "../../examples/orders/local.js";
import type { Shop } from "../../examples/orders/shop.js";
import type { LockClient } from "../../lib/index.js";
import { type Gate, createGate } from "../support/run-gate.js";

/** Pieces in stock before. The order is for two of them. */
const STOCK = 10;
/** The time limit for events on a loaded machine. */
const WITHIN = { timeout: 15_000, interval: 10 };

const OPERATIONS = {
  cancel: { routeKey: "POST /orders/{order}/cancellation", as: "ann", principal: "buyers-function" },
  accept: { routeKey: "POST /sales/{order}/acceptance", as: "sue", principal: "sellers-function" },
  agree: { routeKey: "POST /sales/{order}/refund/agreement", as: "sue", principal: "sellers-function" },
} as const;

/** The name of one of the three. */
export type Name = keyof typeof OPERATIONS;
/** The names of the three. */
export const NAMES = Object.keys(OPERATIONS) as readonly Name[];

/** The outcome of the meeting. */
export interface Met {
  /** The largest number of functions that worked on the order at the same time. */
  readonly mostInside: number;
  readonly statuses: Readonly<Record<Name, number>>;
  readonly bodies: Readonly<Record<Name, Told["body"]>>;
  /** The order's final status. */
  readonly end: string;
  /** The money refunded, the pickups booked, and the pieces returned to the stock. */
  readonly books: { readonly givenBack: number; readonly pickups: number; readonly restocked: number };
}

let fresh = 0;

/**
 * With a `first`: that function starts its work and is held there, and then the others start. Once each of the others
 * is working too, or waits in the order's queue, all are let go, in the order of their start. Without: all start at
 * once, and none is held.
 */
// Over 60 lines: one model or one server, whose parts share its state.
export async function meet(
  local: LocalShop,
  first: Name | undefined,
  locksOf: (locks: LockClient, name: Name) => LockClient = (locks) => locks,
): Promise<Met> {
  const camera = `camera-${++fresh}`;
  await local.stockUp(camera, STOCK);
  const headers = { "idempotency-key": camera };
  const ann = local.join("buyers-function");
  const { id: order } = (await ask(ann, "POST /orders", { as: "ann", headers, body: { items: { [camera]: 2 } } })).body;
  await ask(ann, "POST /orders/{order}/payment", { as: "ann", headers, order });
  await ask(ann, "POST /orders/{order}/refund", { as: "ann", order });
  const movedBefore = local.provider.moved.length;

  const doors: { readonly name: Name; readonly door: Gate }[] = [];
  let inside = 0;
  let mostInside = 0;
  const enter = async (name: Name): Promise<void> => {
    mostInside = Math.max(mostInside, ++inside);
    const door = createGate();
    doors.push({ name, door });
    if (first !== undefined) await door.opened;
  };
  /** A function counts as inside from its first external effect until the order is written. */
  const shopOf = (name: Name): Shop => {
    const shop = local.join(OPERATIONS[name].principal);
    return {
      ...shop,
      locks: locksOf(shop.locks, name),
      provider: { ...shop.provider, balance: async (payment) => (await enter(name), shop.provider.balance(payment)) },
      carrier: { book: async (of, idempotencyKey) => (await enter(name), shop.carrier.book(of, idempotencyKey)) },
      orders: { ...shop.orders, write: (moved, token) => shop.orders.write(moved, token).finally(() => inside--) },
    };
  };

  const told: Partial<Record<Name, Told>> = {};
  const come = async (name: Name): Promise<void> => {
    const { routeKey, as } = OPERATIONS[name];
    told[name] = await ask(shopOf(name), routeKey, { as, order, headers });
  };
  const coming: Promise<void>[] = [];
  if (first === undefined) coming.push(...NAMES.map(come));
  else {
    for (const name of [first, ...NAMES.filter((other) => other !== first)]) {
      coming.push(come(name));
      const queued = async (): Promise<number> => (await ann.locks.inspect(`ORDER_${order}`)).waiters.length;
      await vi.waitFor(async () => expect(inside + (await queued())).toBe(coming.length), WITHIN);
    }
    for (let out = 0; out < NAMES.length; out++) {
      await vi.waitFor(() => expect(doors.length > out || Object.keys(told).length === NAMES.length).toBe(true), WITHIN);
      const next = doors[out];
      next?.door.open();
      await vi.waitFor(() => expect(next === undefined || told[next.name] !== undefined).toBe(true), WITHIN);
    }
  }
  await Promise.all(coming);
  const of = <T>(what: (told: Told) => T): Record<Name, T> =>
    Object.fromEntries(NAMES.map((name) => [name, what(told[name]!)])) as Record<Name, T>;
  return {
    mostInside,
    statuses: of(({ status }) => status),
    bodies: of(({ body }) => body),
    end: (await ask(ann, "GET /orders/{order}", { as: "ann", order })).body.status,
    books: {
      givenBack: -local.provider.moved.slice(movedBefore).reduce((sum, amount) => sum + amount, 0),
      pickups: local.carrier.pickups.filter((one) => one === order).length,
      restocked: (await local.pieces(camera)) - (STOCK - 2),
    },
  };
}
