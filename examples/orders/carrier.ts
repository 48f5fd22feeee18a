/** Who brings the goods to the buyer, over HTTP: a pickup is booked once for each key. */

/** The carrier. */
export interface Carrier {
  /** Books a pickup, or finds it booked. @throws Error when the carrier didn't say that it is. */
  book(order: string, idempotencyKey: string): Promise<void>;
}

/** The carrier that answers at `url`. */
export function carrierAt(url: string): Carrier {
  return {
    async book(order, idempotencyKey) {
      const headers = { "idempotency-key": idempotencyKey };
      const response = await fetch(`${url}/pickups`, { method: "POST", headers, body: JSON.stringify({ order }) });
      if (!response.ok) throw new Error(`the carrier answered ${response.status}`);
    },
  };
}
