/** Where the order service's operations are tried one after the other: a shop, a buyer `ann`, a seller `sue`, and one function of either kind. */
import { expect } from "vitest";
import type { Asking, Told } from "../../examples/orders/ask.js";
import { ask } from "../../examples/orders/ask.js";
import { BUYER } from "../../examples/orders/buyer.js";
import type { LocalShop } from "../../examples/orders/local.js";
import { openShop } from "../../examples/orders/local.js";
import type { Shop } from "../../examples/orders/shop.js";

/** Pieces of each new product. */
export const STOCK = 10;

/** The operations on an order. */
export const PAY = "POST /orders/{order}/payment";
/** By its buyer. */
export const CANCEL = "POST /orders/{order}/cancellation";
/** For a refund. */
export const ASK = "POST /orders/{order}/refund";
/** The buyer reviews a complete order. */
export const REVIEW = "POST /orders/{order}/review";
/** By its seller. */
export const ACCEPT = "POST /sales/{order}/acceptance";
/** Once it is accepted. */
export const COMPLETE = "POST /sales/{order}/completion";
/** To a refund. */
export const AGREE = "POST /sales/{order}/refund/agreement";
/** A refund. */
export const REFUSE = "POST /sales/{order}/refund/refusal";

/** A counter that is open. */
export interface Counter {
  readonly local: LocalShop;
  readonly shop: Shop;
  /** The newest product: a test's own. */
  readonly camera: string;
  /** Puts a new product into stock. */
  restock(): Promise<void>;
  /** A name that nobody had. */
  fresh(name: string): string;
  /** Headers with a new idempotency key. */
  keyed(): Readonly<Record<string, string>>;
  /** Asks for the route, as who it is for. */
  tell(routeKey: string, asking?: Partial<Asking>): Promise<Told>;
  /** Places an order for two of the newest product. */
  place(asking?: Partial<Asking>): Promise<Told>;
  /** A new order, after these. @returns its id */
  orderAfter(...routeKeys: readonly string[]): Promise<string>;
}

/** Opens it. Close its `local` at the end. */
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
