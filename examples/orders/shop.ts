/** The types that the operations of both functions share: their dependencies, requests and responses. */
import type { LockClient } from "../../lib/index.js";
import type { Provider } from "../payments/provider.js";
import type { Carrier } from "./carrier.js";
import type { Orders } from "./orders-table.js";

/** The dependencies of an operation. */
export interface Shop {
  readonly locks: LockClient;
  readonly orders: Orders;
  /** The payment provider. */
  readonly provider: Provider;
  readonly carrier: Carrier;
  /** A unique id for a new order: 1 to 40 of `a-z 0-9 -`; later ids sort after earlier ones. */
  readonly newId: () => string;
}

/** A caller's request. */
export interface Request {
  /** The caller: the subject that the gateway's authorizer verified. */
  readonly who: string;
  /** The order in the path; empty if there is none. */
  readonly order: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The body as JSON; undefined if there is none. */
  readonly body: unknown;
}

/** The response. Plain data, so that a run can store it. */
export interface Answer {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One of the fifteen operations. */
export type Operation = (shop: Shop, request: Request) => Promise<Answer>;

/** Operations by the HTTP API's route key. */
export type Routes = Readonly<Record<string, Operation>>;
