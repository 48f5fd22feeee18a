/**
 * One process of buyers, started by crowd.ts. Each buyer wants one piece of one product, once. With a lock, the
 * purchase is the same code, run by `withLock`.
 */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { createLockClient, key, LockTimeoutError } from "../../lib/index.js";
import { engineClient } from "../../infra/local/engine-client.js";
import type { Locking, Orders, Outcome, Word } from "./crowd.js";
import { stockIn } from "./stock.js";

/** Generous, because a buyer who gives up leaves a piece unsold. */
const WAIT_MS = 240_000;

/** As many connections as a process has buyers. The AWS SDK warns when requests have to wait for one. */
const CONNECTIONS = 500;

const orders = JSON.parse(process.argv[2] ?? "") as Orders;
const engine = engineClient(orders.endpoint, { requestHandler: { httpAgent: { keepAlive: true, maxSockets: CONNECTIONS } } });
const stock = stockIn(orders.tableName, engine);
let requests = 0;
const locks = createLockClient({
  url: orders.url,
  fetch: (input, init) => {
    requests++;
    return fetch(input, init);
  },
});

/** The time that polling buyers keep trying, with growing pauses. They don't queue. */
const POLL_FOR_MS = 20_000;
const FIRST_POLL_MS = 40;
const LONGEST_POLL_MS = 1000;

async function withLockByPolling<T>(name: string, owner: string, work: () => Promise<T>): Promise<T> {
  const beganAtMs = performance.now();
  for (let polls = 0; performance.now() - beganAtMs < POLL_FOR_MS; polls++) {
    // A service that is busy with polling buyers leaves some requests without a response. Those buyers ask again too.
    await using lease = await locks.tryAcquire(name, { owner }).catch(() => null);
    if (lease) return await work();
    const pauseMs = Math.min(LONGEST_POLL_MS, FIRST_POLL_MS * 2 ** Math.min(polls, 10));
    await delay(randomInt(pauseMs / 2, pauseMs));
  }
  throw new LockTimeoutError(`${name}: still held`, { code: "wait-timeout", definite: true, retry: "later" });
}

/** A lock per product lets buyers of different products proceed concurrently. The shop's lock doesn't. */
function lockKey(locking: Exclude<Locking, "nothing">, product: string): string {
  return locking === "the product" ? key("PRODUCT", product) : key("SHOP", "flash-sale");
}

function under<T>(locking: Exclude<Locking, "nothing">, product: string, owner: string, work: () => Promise<T>): Promise<T> {
  const name = lockKey(locking, product);
  if (locking === "the shop, by polling") return withLockByPolling(name, owner, work);
  return locks.withLock(name, { owner, waitMs: WAIT_MS }, work);
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
    const bought = await (locking === "nothing" ? purchase() : under(locking, product, owner, purchase));
    return { end: bought ? "bought" : "sold out", waitedMs };
  } catch (error) {
    if (error instanceof LockTimeoutError) return { end: "gave up", waitedMs: performance.now() - askedAtMs };
    return { end: "failed", waitedMs, error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
  }
}

/** Runs `atOnce` checkouts. As one buyer leaves a checkout, the next one comes. */
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

process.on("SIGINT", () => undefined); // Ctrl-C reaches every process of the terminal; the process that started these buyers ends them.
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
