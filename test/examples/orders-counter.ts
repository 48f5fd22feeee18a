/**
 * The fixture for the order service's operations, one after the other: a shop, a buyer `ann`, a seller `sue`, and one
 * function of either kind.
 */
import { expect } from "vitest";
import { type Asking, type Told, ask } from "../../examples/orders/ask.js";
import { BUYER } from "../../examples/orders/buyer.js";
import { type LocalShop, openShop } from "../../examples/orders/local.js";
import type { Shop } from "../../examples/orders/shop.js";

/** Pieces of each new product. */
export const STOCK = 10;

/** The operations on an order. */
export const PAY = "POST /orders/{order}/payment";
/** The buyer cancels. */
export const CANCEL = "POST /orders/{order}/cancellation";
/** The buyer asks for a refund. */
export const ASK = "POST /orders/{order}/refund";
/** The buyer reviews a complete order. */
export const REVIEW = "POST /orders/{order}/review";
/** The seller accepts. */
export const ACCEPT = "POST /sales/{order}/acceptance";
/** The seller completes an accepted order. */
export const COMPLETE = "POST /sales/{order}/completion";
/** The seller agrees to a refund. */
export const AGREE = "POST /sales/{order}/refund/agreement";
/** The seller refuses a refund. */
export const REFUSE = "POST /sales/{order}/refund/refusal";

/** An open counter. */
export interface Counter {
  readonly local: LocalShop;
  readonly shop: Shop;
  /** The newest product, which no other test uses. */
  readonly camera: string;
  /** Adds a new product to the stock. */
  restock(): Promise<void>;
  /** A unique name. */
  fresh(name: string): string;
  /** Headers with a new idempotency key. */
  keyed(): Readonly<Record<string, string>>;
  /** Calls the route as its kind of user. */
  tell(routeKey: string, asking?: Partial<Asking>): Promise<Told>;
  /** Places an order for two of the newest product. */
  place(asking?: Partial<Asking>): Promise<Told>;
  /** Creates an order and calls these routes. @returns its id */
  orderAfter(...routeKeys: readonly string[]): Promise<string>;
}

/** Opens a counter. Close its `local` at the end. */
export async function openCounter(endpoint: string): Promise<Counter> {
  const local = await openShop({ endpoint });
  const shop = local.join();
  let made = 0;
  let camera = "";
  const fresh: Counter["fresh"] = (name) => `${name}-${++made}`;
  const keyed: Counter["keyed"] = () => ({ "Idempotency-Key": `"${fresh("form")}"` });
  const tell: Counter["tell"] = (routeKey, asking) => ask(shop, routeKey, { as: routeKey in BUYER ? "ann" : "sue", ...asking });
  const place: Counter["place"] = (asking) => tell("POST /orders", { headers: keyed(), body: { items: { [camera]: 2 } }, ...asking });
  return {
    local,
    shop,
    get camera() {
      return camera;
    },
    async restock() {
      camera = fresh("camera");
      await local.stockUp(camera, STOCK);
    },
    fresh,
    keyed,
    tell,
    place,
    async orderAfter(...routeKeys) {
      const order = (await place()).body.id as string;
      for (const routeKey of routeKeys) {
        const { status, body } = await tell(routeKey, { order, headers: keyed() });
        expect([routeKey, status], JSON.stringify(body)).toEqual([routeKey, 200]);
      }
      return order;
    },
  };
}
