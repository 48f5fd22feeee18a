/** A carrier on loopback, for the example to call: it books a pickup once for each idempotency key. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A running carrier. */
export interface CarrierServer {
  readonly url: string;
  /** The orders with a booked pickup. */
  readonly pickups: readonly string[];
  close(): Promise<void>;
}

/** Starts on a free port. */
export async function startCarrier(): Promise<CarrierServer> {
  const booked = new Map<string, string>();
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const name = String(request.headers["idempotency-key"]);
      if (!booked.has(name)) booked.set(name, (JSON.parse(body) as { order: string }).order);
      response.writeHead(201).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get pickups() {
      return [...booked.values()];
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
