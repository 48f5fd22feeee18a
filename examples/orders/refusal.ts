/** The error that an operation throws to refuse: it gives a reason and names its subject. Nothing was changed. */
import type { Move, Order } from "./order.js";
import type { Answer } from "./shop.js";

/** A response that is a refusal. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly answer: Answer;

  constructor(status: number, error: string, detail: string, more: object = {}) {
    super(detail);
    this.answer = { status, body: { error, detail, ...more } };
  }
}

/** 400: a field breaks a rule. */
export function badField(field: string, rule: string): Refusal {
  return new Refusal(400, "bad-request", `${field}: ${rule}`, { field });
}

/** 404: there is no such order, or the caller has no part in it. The response doesn't say which. */
export function noSuchOrder(order: string): Refusal {
  return new Refusal(404, "not-found", `there is no order ${order} of yours`);
}

/** 409: the order's state doesn't allow it. */
export function notNow(move: Move | "review", { status, refund }: Order): Refusal {
  const state = refund === "NONE" ? status : `${status}, refund ${refund}`;
  return new Refusal(409, "not-allowed", `${move}: the order is ${state}`, { status, refund });
}
