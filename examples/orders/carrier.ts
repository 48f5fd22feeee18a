/** The carrier that brings the goods to the buyer, over HTTP. A pickup is booked once for each key. */

/** The carrier. */
export interface Carrier {
  /** Books a pickup; a repeated call has no effect. @throws Error if the carrier didn't confirm it. */
  book(order: string, idempotencyKey: string): Promise<void>;
}

/** Creates a client of the carrier at `url`. */
export function carrierAt(url: string): Carrier {
  return {
    async book(order, idempotencyKey) {
      const headers = { "idempotency-key": idempotencyKey };
      const response = await fetch(`${url}/pickups`, { method: "POST", headers, body: JSON.stringify({ order }) });
      if (!response.ok) throw new Error(`the carrier answered ${response.status}`);
    },
  };
}
