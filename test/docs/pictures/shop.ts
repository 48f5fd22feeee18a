/** A shop that uses locks: clients of a real service, so that pictures of the console show what a reader could see on a machine of their own. */
import { setTimeout as delay } from "node:timers/promises";
import { type AcquireOptions, type Lease, type LockClient, createLockClient, FinalError } from "../../../lib/index.js";

/** The key whose timeline is pictured. */
export const BUSY_KEY = "STOCK_4417";

/** The schedule that is pictured. */
export const SCHEDULE = "nightly-report";

/** The limit that is pictured. */
export const LIMIT = "partner-api";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A shop that is open. */
export interface Shop {
  close(): Promise<void>;
}

/** Opens the shop, and returns when its keys look as on a busy day: some are held, and some are waited for. It takes a minute. */
export async function openShop(url: string): Promise<Shop> {
  const clients: LockClient[] = [];
  const createdBy = (owner: string): LockClient => {
    const client = createLockClient({ url, owner });
    clients.push(client);
    return client;
  };
  const acquire = (owner: string, key: string, options: AcquireOptions = {}): Promise<Lease> => {
    return createdBy(owner).acquire(key, { waitMs: 10 * MINUTE_MS, ...options });
  };
  /** Waits for a key until the shop closes. */
  const queue = (owner: string, key: string, options?: AcquireOptions): void => void acquire(owner, key, options).catch(() => undefined);
  const holdFor = async (ms: number, owner: string, options?: AcquireOptions): Promise<void> => {
    const lease = await acquire(owner, BUSY_KEY, options);
    await delay(ms);
    await lease.release();
  };

  await nights(createdBy("reports-1"));
  await acquire("importer-2", "IMPORT_prices", { leaseMs: MINUTE_MS });
  // It hangs: no heartbeat comes any more.
  await acquire("billing-1", "NIGHTLY_billing", { leaseMs: 1.5 * MINUTE_MS, heartbeat: false });
  for (const owner of ["report-7", "report-8", "report-9"]) await acquire(owner, "STOCK_all", { mode: "shared" });
  for (const owner of ["mailer-1", "mailer-2"]) await acquire(owner, "MAIL_gateway", { limit: 2 });
  const sold = [
    holdFor(7_000, "shop-eu-1"),
    delay(2_500).then(() => holdFor(6_000, "warehouse-3")),
    // A process that dies renews nothing and releases nothing.
    delay(4_500).then(() => acquire("shop-us-2", BUSY_KEY, { leaseMs: 6_000, heartbeat: false })),
    delay(15_500).then(() => holdFor(5_000, "returns-1")),
    delay(19_000).then(() => holdFor(6_000, "shop-eu-2")),
  ];
  await delay(8_000);
  await acquire("checkout-5", "ORDER_1231");
  await delay(9_000);
  await acquire("checkout-2", "ORDER_1244");
  await Promise.all(sold);
  const calls = callPartner(createdBy);
  // It moves goods to a shelf, so it holds both together.
  await createdBy("warehouse-1").acquireAll([BUSY_KEY, "SHELF_12"], { leaseMs: 20_000, waitMs: 10 * MINUTE_MS });
  queue("checkout-1", "ORDER_1231");
  await delay(5_000);
  queue("shop-eu-4", BUSY_KEY);
  await acquire("checkout-3", "ORDER_1257");
  await delay(3_000);
  queue("shop-us-1", BUSY_KEY);
  queue("mailer-3", "MAIL_gateway", { limit: 2 });
  queue("refunds-1", "ORDER_1231");
  await delay(6_000);
  queue("inventory-2", BUSY_KEY);
  await delay(4_000);
  await calls;

  return {
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}

/** Runs the nights of a month, of which one failed, one was late, one was skipped and one was missed. */
async function nights(client: LockClient): Promise<void> {
  const todayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const night = (daysAgo: number, work: () => unknown, maxLateMs?: number): Promise<unknown> => {
    const occurrence = new Date(todayMs - daysAgo * DAY_MS + 3 * HOUR_MS);
    return client.tick(SCHEDULE, { occurrence, keepMs: 60 * DAY_MS, maxLateMs }, work).catch(() => undefined);
  };
  for (let daysAgo = 29; daysAgo > 0; daysAgo--) {
    if (daysAgo === 12) continue;
    const lease = daysAgo === 8 ? await client.acquire(SCHEDULE) : undefined;
    await night(
      daysAgo,
      () => (daysAgo === 17 ? Promise.reject(new FinalError("the disk is full")) : "stored"),
      daysAgo === 5 ? MINUTE_MS : undefined,
    );
    await lease?.release();
  }
}

/** Calls a partner under a limit: quickly at first, and then a call takes long, so others wait for a permit. */
async function callPartner(clientOf: (owner: string) => LockClient): Promise<void> {
  const limits = { rates: [{ count: 30, perMs: 2 * MINUTE_MS, burst: 10 }], concurrent: 2 };
  const limiter = clientOf("sync-1").limiter(LIMIT, limits);
  const take = (cost: number): Promise<unknown> => limiter.take({ cost }).catch(() => undefined);
  const takes = [
    [4, 3000],
    [5, 4000],
    [3, 4000],
    [4, 4000],
    [1, 2000],
  ] as const;
  for (const [cost, ms] of takes) {
    await take(cost);
    await delay(ms);
  }
  const hang = (): Promise<unknown> => new Promise(() => undefined);
  for (const owner of ["sync-2", "sync-3", "sync-4"])
    void clientOf(owner)
      .limiter(LIMIT, limits)
      .run({ waitMs: 10 * MINUTE_MS }, hang)
      .catch(() => undefined);
}
