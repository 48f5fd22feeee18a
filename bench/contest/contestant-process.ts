/**
 * The process of one contestant, started by contest.ts. It carries out one task after another, or several at a time,
 * and answers each with figures of this process alone.
 */
import { subscribe } from "node:diagnostics_channel";
import { setTimeout as delay } from "node:timers/promises";
import { stockIn } from "../../examples/flash-sale/stock.js";
import { engineClient } from "../../infra/local/engine-client.js";
import type { Arena, Contestant } from "./arena.js";
import { ENTRIES } from "./contestants.js";

/** The tasks of a contestant, with their answers. */
export interface Tasks {
  /** Acquires and releases fresh keys for a time, and at most as many as `most` says. */
  cycles(task: {
    readonly inFlight: number;
    readonly lastsMs: number;
    readonly most?: number;
  }): Promise<{ cycles: number; cpuMs: number; tookMs: number }>;
  /** Waits for the key, holds it and releases it. Times are of the machine's clock, in ms. */
  use(task: { readonly key: string; readonly holdMs: number }): Promise<{ grantedAtMs: number; releasedAtMs: number }>;
  /** Holds the key until `letGo`. */
  hold(task: { readonly key: string }): Promise<void>;
  /** Releases what `hold` holds, and returns the time. */
  letGo(): Promise<number>;
  /** Lets buyers buy, all at once. Each acquires the key of its product. */
  buy(task: { readonly tableName: string; readonly products: readonly string[]; readonly buyers: number }): Promise<{ tookMs: number }>;
  /** The requests of this process since the start. */
  requests(): Promise<number>;
}

/** A task on its way. */
export interface Order {
  readonly id: number;
  readonly task: keyof Tasks;
  readonly given?: unknown;
}

/** An answer. The first has no id and means that the contestant is open, or failed to open. */
export interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: string;
}

const [id = "", arenaText = ""] = process.argv.slice(2);
const arena = JSON.parse(arenaText) as Arena;
const nowMs = (): number => performance.timeOrigin + performance.now();

let httpRequests = 0;
for (const channel of ["http.client.request.start", "undici:request:create"]) subscribe(channel, () => void httpRequests++);

function tasksOf(contestant: Contestant): Tasks {
  let keys = 0;
  let letGo: () => Promise<unknown> = () => Promise.resolve();
  return {
    async cycles({ inFlight, lastsMs, most = Infinity }) {
      const beganMs = performance.now();
      const before = process.cpuUsage();
      let cycles = 0;
      const fly = async (): Promise<void> => {
        for (; cycles < most && performance.now() - beganMs < lastsMs; cycles++)
          await (
            await contestant.acquire(`${id}:ORDER_${process.pid}_${++keys}`)
          )();
      };
      await Promise.all(Array.from({ length: inFlight }, fly));
      const { user, system } = process.cpuUsage(before);
      return { cycles, cpuMs: (user + system) / 1000, tookMs: performance.now() - beganMs };
    },
    async use({ key, holdMs }) {
      const release = await contestant.acquire(key);
      const grantedAtMs = nowMs();
      await delay(holdMs);
      await release();
      return { grantedAtMs, releasedAtMs: nowMs() };
    },
    async hold({ key }) {
      letGo = await contestant.acquire(key);
    },
    async letGo() {
      const atMs = nowMs();
      await letGo();
      return atMs;
    },
    async buy({ tableName, products, buyers }) {
      const stock = stockIn(tableName, engineClient(arena.endpoint));
      const beganMs = performance.now();
      const buy = async (buyer: number): Promise<void> => {
        const product = products[buyer % products.length]!;
        const release = await contestant.acquire(product);
        await stock.buy(product, `buyer-${buyer}`);
        await release();
      };
      await Promise.all(Array.from({ length: buyers }, (_, buyer) => buy(buyer)));
      return { tookMs: performance.now() - beganMs };
    },
    requests: () => Promise.resolve(contestant.requests?.() ?? httpRequests),
  };
}

function oneLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split("\n", 1)[0]!;
}

function tell(answer: Answer): void {
  process.send?.(answer);
}

async function main(): Promise<void> {
  try {
    const tasks = tasksOf(await ENTRIES[id]!.open(arena));
    process.on("message", ({ id: order, task, given }: Order) => {
      (tasks[task] as (given: unknown) => Promise<unknown>)(given).then(
        (result) => tell({ id: order, result }),
        (error: unknown) => tell({ id: order, error: oneLine(error) }),
      );
    });
    tell({});
  } catch (error) {
    tell({ error: oneLine(error) });
    process.disconnect();
  }
}

// The SDKs warn that a thousand buyers have to share fifty sockets.
console.warn = () => undefined;
process.once("disconnect", () => process.exit());
void main();
