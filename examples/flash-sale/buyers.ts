/**
 * One process of buyers, started by crowd.ts. Each buyer wants one piece of one product, once; with a
 * lock, the purchase is the same code, run by `withLock`.
 */
import { createLockClient, key, LockTimeoutError } from "../../lib/index.js";
import { engineClient } from "../../infra/local/engine-client.js";
import type { Locking, Orders, Outcome, Word } from "./crowd.js";
import { stockIn } from "./stock.js";

/** Generous: a buyer who gives up is a piece left over. */
const WAIT_MS = 120_000;

const orders = JSON.parse(process.argv[2] ?? "") as Orders;
const engine = engineClient(orders.endpoint);
const stock = stockIn(orders.tableName, engine);
let requests = 0;
const locks = createLockClient({
  url: orders.url,
  fetch: (input, init) => {
    requests++;
    return fetch(input, init);
  },
});

/** A lock per product lets buyers of different products go on side by side; the shop's lets nobody. */
function lockKey(locking: Exclude<Locking, "nothing">, product: string): string {
  return locking === "the product" ? key("PRODUCT", product) : key("SHOP", "flash-sale");
}

async function serve(buyer: number): Promise<Omit<Outcome, "requests">> {
  const { locking, products } = orders;
  const product = products[buyer % products.length] ?? "";
  const owner = `buyer-${buyer}`;
  const askedAtMs = performance.now();
  let waitedMs = 0;

  const purchase = (): Promise<boolean> => {
    waitedMs = performance.now() - askedAtMs;
    return stock.buy(product, owner);
  };
  try {
    const options = { owner, waitMs: WAIT_MS };
    const bought = await (locking === "nothing" ? purchase() : locks.withLock(lockKey(locking, product), options, purchase));
    return { end: bought ? "bought" : "sold out", waitedMs };
  } catch (error) {
    if (error instanceof LockTimeoutError) return { end: "gave up", waitedMs: performance.now() - askedAtMs };
    return { end: "failed", waitedMs, error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
  }
}

/** `atOnce` counters at which the buyers queue up: as one leaves, the next one comes. */
async function serveAll(): Promise<void> {
  let next = orders.first;
  const counters = Array.from({ length: orders.atOnce }, async () => {
    while (next < orders.last) {
      const outcome = await serve(next++);
      tell({ ...outcome, requests });
      requests = 0;
    }
  });
  await Promise.all(counters);
}

function tell(word: Word): void {
  process.send?.(word);
}

process.on("SIGINT", () => undefined); // Ctrl-C reaches the whole terminal; whoever sent these buyers ends them.
process.once("disconnect", () => process.exit(1));
process.once("message", () => {
  void serveAll().then(async () => {
    await locks.close();
    engine.destroy();
    process.removeAllListeners("disconnect");
    process.disconnect();
  });
});
tell("ready");
