/**
 * A client of the payment provider over HTTP, with an idempotency key for every movement of money. A 4xx response is
 * final. A broken connection says nothing about the outcome.
 */

/** A movement of money. */
export interface Movement {
  readonly payment: string;
  readonly amount: number;
}

/** A movement that was carried out; `id` is the provider's. */
export interface Receipt extends Movement {
  readonly id: string;
}

/** The payment provider. */
export interface Provider {
  charge(movement: Movement, idempotencyKey: string): Promise<Receipt>;
  refund(movement: Movement, idempotencyKey: string): Promise<Receipt>;
  /** The amount charged and not refunded. */
  balance(payment: string): Promise<number>;
}

/** The provider refuses, and will refuse every retry. Nothing was moved. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** True if the provider refused, so that a retry makes no sense: a run's `isFinal`. */
export function isRefusal(error: unknown): boolean {
  return error instanceof RefusedError;
}

/** Creates a client of the provider at `url`. */
export function providerAt(url: string): Provider {
  async function ask<T>(path: string, init?: RequestInit): Promise<T> {
    const response = await fetch(url + path, init);
    if (response.ok) return (await response.json()) as T;
    const why = `${path}: ${response.status} ${await response.text()}`;
    throw response.status < 500 ? new RefusedError(why) : new Error(why);
  }

  const move = (path: string) => (movement: Movement, idempotencyKey: string) =>
    ask<Receipt>(path, { method: "POST", headers: { "idempotency-key": idempotencyKey }, body: JSON.stringify(movement) });
  return { charge: move("/charges"), refund: move("/refunds"), balance: (payment) => ask(`/payments/${encodeURIComponent(payment)}`) };
}
