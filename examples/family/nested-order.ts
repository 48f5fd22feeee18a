/**
 * Four services of one request write one order: its main record, the snapshot of the product, the payment order and the
 * payment unit. Each service locks the order, because it may also be called by itself, and calls the next service while
 * it holds the lock. The trace id makes the lock reentrant across their processes, so the request never waits for
 * itself.
 */
import { randomUUID } from "node:crypto";
import { type LockClient, key } from "../../lib/index.js";
import { play } from "./stage.js";
import { type Table, valueOf, write } from "./table.js";

/** The message from service to service. Only this request knows the trace id: anyone with the id shares its locks. */
export interface OrderRequest {
  readonly traceId: string;
  readonly order: string;
  readonly product: string;
}

/** A service: a process with its own client, the part of the order that it writes, and the service that it calls. */
export interface Service {
  readonly locks: Pick<LockClient, "scope">;
  readonly part: string;
  readonly save: (id: string, value: unknown, fencingToken: number) => Promise<void>;
  readonly next?: Service | undefined;
}

/** Handles the request in one service. */
export async function serve({ locks, part, save, next }: Service, request: OrderRequest): Promise<void> {
  const { traceId, order, product } = request;
  await locks.scope(traceId).withLock(key("ORDER", order), async (lease) => {
    // The same token in all four services.
    await save(`${order} ${part}`, product, lease.fencingToken);
    // In production, an HTTP request with the trace id in a header.
    if (next) await serve(next, request);
  });
}

/** The parts, in the order in which their services call each other. */
export const PARTS: readonly string[] = ["main record", "product snapshot", "payment order", "payment unit"];

/** Creates the services and returns the first. The last one is created first, because the service before it refers to it. */
export function serviceFor(parts: readonly string[], join: () => Pick<LockClient, "scope">, table: Table): Service {
  const [part = "", ...rest] = parts;
  const save: Service["save"] = (id, value, token) => write(table, id, value, token);
  return { locks: join(), part, save, next: rest.length > 0 ? serviceFor(rest, join, table) : undefined };
}

await play(import.meta.url, async ({ join, table }) => {
  const shop = serviceFor(PARTS, () => join({ owner: "shop" }), table);
  await serve(shop, { traceId: randomUUID(), order: "order-1231", product: "camera" });
  for (const part of PARTS) console.log(`${part}: ${String(await valueOf(table, `order-1231 ${part}`))}`);

  const stranger = join({ owner: "shop" });
  const request = randomUUID();
  await using outer = await join({ owner: "shop" }).scope(request).acquire(key("ORDER", "order-1232"));
  await using inner = await join({ owner: "shop" }).scope(request).acquire(key("ORDER", "order-1232"));
  console.log(`levels: ${inner.holdCount}, one token: ${outer.fencingToken === inner.fencingToken}`);
  console.log(`another request, same owner: ${(await stranger.tryAcquire(key("ORDER", "order-1232"))) ? "let in!" : "waits"}`);
  await inner.release();
  console.log(`the inner one is done: ${(await stranger.tryAcquire(key("ORDER", "order-1232"))) ? "let in!" : "still waits"}`);
  await outer.release();
  console.log(`the outer one is done: ${(await stranger.tryAcquire(key("ORDER", "order-1232"))) ? "its turn" : "still waits!"}`);
});
