/**
 * A payment provider on loopback, for the examples to call. Like a real provider, it carries a request out once per
 * idempotency key and refuses the key with another body. In addition it can be told to ignore keys, or to carry out a
 * request and withhold the response.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Movement, Receipt } from "./provider.js";

/** A withheld response. */
export interface Withheld {
  /** Settles when the request has been carried out. */
  readonly reached: Promise<void>;
  /** Sends the response. */
  answer(): void;
}

/** A running provider. */
export interface ProviderServer {
  readonly url: string;
  /** The movements of money, in order; refunds are negative. */
  readonly moved: readonly number[];
  /** The idempotency keys received, one for each request to move money. */
  readonly keys: readonly string[];
  /** The number of reads of a payment. */
  readonly looks: number;
  /** Carries out the next request to move money, and withholds its response. */
  withholdNext(): Withheld;
  close(): Promise<void>;
}

/** Starts on a free port. `ignoresKeys`: simulates a provider without idempotency keys; some exist. */
// Over 60 lines: a server with its routes.
export async function startProvider({ ignoresKeys = false } = {}): Promise<ProviderServer> {
  const moved: number[] = [];
  const keys: string[] = [];
  const balances = new Map<string, number>();
  const answered = new Map<string, { readonly request: string; readonly receipt: Receipt }>();
  let looks = 0;
  let withhold: { readonly reached: () => void; readonly until: Promise<void> } | undefined;

  function carryOut(path: string, body: string): Receipt | string {
    const movement = JSON.parse(body) as Movement;
    const amount = path === "/refunds" ? -movement.amount : movement.amount;
    const balance = (balances.get(movement.payment) ?? 0) + amount;
    if (balance < 0) return "there is not that much to refund";
    balances.set(movement.payment, balance);
    moved.push(amount);
    return { ...movement, id: `movement-${moved.length}` };
  }

  function move(path: string, key: string, body: string): Receipt | string {
    keys.push(key);
    const before = ignoresKeys ? undefined : answered.get(key);
    const request = `${path} ${body}`;
    if (before) return before.request === request ? before.receipt : "this idempotency key was used for something else";
    const receipt = carryOut(path, body);
    if (typeof receipt !== "string") answered.set(key, { request, receipt });
    return receipt;
  }

  const server = createServer((request, response) => {
    void (async () => {
      const { url = "", method, headers } = request;
      const body = await text(request);
      if (method === "GET") {
        looks++;
        response.end(JSON.stringify(balances.get(decodeURIComponent(url.replace("/payments/", ""))) ?? 0));
        return;
      }
      const answer = move(url, String(headers["idempotency-key"]), body);
      const withheld = withhold;
      withhold = undefined;
      withheld?.reached();
      await withheld?.until;
      response.writeHead(typeof answer === "string" ? 422 : 200).end(JSON.stringify(answer));
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    moved,
    keys,
    get looks() {
      return looks;
    },
    withholdNext() {
      let answer = (): void => undefined;
      const until = new Promise<void>((resolve) => (answer = resolve));
      const reached = new Promise<void>((resolve) => (withhold = { reached: resolve, until }));
      return { reached, answer };
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
