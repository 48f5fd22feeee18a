/** What the operations of both functions have in common: what they work with, what they are asked, what they answer. */
import type { LockClient } from "../../lib/index.js";
import type { Provider } from "../payments/provider.js";
import type { Carrier } from "./carrier.js";
import type { Orders } from "./orders-table.js";

/** What an operation works with. */
export interface Shop {
  readonly locks: LockClient;
  readonly orders: Orders;
  /** Takes and gives back the money. */
  readonly provider: Provider;
  readonly carrier: Carrier;
  /** A name for a new order, which no other has: 1 to 40 of `a-z 0-9 -`, later ones sort after earlier ones. */
  readonly newId: () => string;
}

/** What somebody asks for. */
export interface Request {
  /** Who: the subject that the gateway's authorizer vouches for. */
  readonly who: string;
  /** The order in the path; empty where there is none. */
  readonly order: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The body as JSON; undefined where there is none. */
  readonly body: unknown;
}

/** What is answered. Plain, so that a run can keep it. */
export interface Answer {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One of the fifteen. */
export type Operation = (shop: Shop, request: Request) => Promise<Answer>;

/** Operations by the HTTP API's route key. */
export type Routes = Readonly<Record<string, Operation>>;
