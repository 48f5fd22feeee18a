/**
 * The payment provider as its customers reach it: over HTTP, with an idempotency key for whatever moves
 * money. What it answers with a 4xx is its last word; a connection that breaks says nothing at all.
 */

/** What moves money. */
export interface Movement {
  readonly payment: string;
  readonly amount: number;
}

/** A movement that was carried out; `id` is the provider's. */
export interface Receipt extends Movement {
  readonly id: string;
}

/** Who takes and gives back the money. */
export interface Provider {
  charge(movement: Movement, idempotencyKey: string): Promise<Receipt>;
  refund(movement: Movement, idempotencyKey: string): Promise<Receipt>;
  /** What was charged and not refunded. */
  balance(payment: string): Promise<number>;
}

/** The provider will not do it, however often it is asked. Nothing was moved. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** Whether the provider said no, so that asking again makes no sense: a run's `isFinal`. */
export function isRefusal(error: unknown): boolean {
  return error instanceof RefusedError;
}

/** The provider that answers at `url`. */
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
