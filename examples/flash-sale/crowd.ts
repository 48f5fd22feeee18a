/**
 * The crowd: all buyers of a sale, spread over processes that know nothing of each other. The doors
 * open when all of them stand there; what becomes of each buyer is told as it happens.
 */
import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** What a sale locks before a purchase, and how its buyers wait: in the queue, or, to compare, by asking again and again. */
export type Locking = "nothing" | "the product" | "the shop" | "the shop, by polling";

/** What one process of buyers is told. */
export interface Orders {
  readonly locking: Locking;
  /** The lock service. */
  readonly url: string;
  /** The engine and the table that the stock is in. */
  readonly endpoint: string;
  readonly tableName: string;
  readonly products: readonly string[];
  /** The buyers of this process, by number: from the first until before the last. They take the products in turn. */
  readonly first: number;
  readonly last: number;
  /** How many of them try to buy at the same time. */
  readonly atOnce: number;
}

/** What became of a buyer. */
export interface Outcome {
  readonly end: "bought" | "sold out" | "gave up" | "failed";
  /** From asking for the lock until it was held or given up. */
  readonly waitedMs: number;
  /** Requests to the lock service by this process since its last word. */
  readonly requests: number;
  readonly error?: string;
}

/** What a process of buyers says: that it is ready, then an outcome for each buyer. */
export type Word = "ready" | Outcome;

/** Who watches a sale. */
export interface Spectator {
  /** The doors are open. */
  opened(): void;
  left(outcome: Outcome): void;
}

/** What became of all of them. */
export interface Crowd {
  /** From the opening of the doors to the last buyer's end. */
  readonly tookMs: number;
  readonly longestWaitMs: number;
  readonly gaveUp: number;
  readonly requests: number;
  /** Why buyers failed, one sentence each. */
  readonly failures: readonly string[];
}

const BUYERS = fileURLToPath(new URL("buyers.ts", import.meta.url));

/**
 * Sends the crowd. Every process is at its end when this settles.
 * @throws Error when a process ends early; AbortError when `signal` aborts.
 */
export async function send(orders: readonly Orders[], signal: AbortSignal, spectator: Spectator): Promise<Crowd> {
  const outcomes: Outcome[] = [];
  const processes = orders.map((order) => fork(BUYERS, [JSON.stringify(order)]));
  const ends = processes.map(endOf);
  const kill = (): void => processes.forEach((one) => one.kill("SIGKILL"));
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    await Promise.all(processes.map((one, at) => Promise.race([once(one, "message"), ends[at]])));
    const openedAtMs = performance.now();
    let lastEndAtMs = openedAtMs;
    spectator.opened();
    for (const one of processes) {
      one.on("message", (outcome: Outcome) => {
        outcomes.push(outcome);
        lastEndAtMs = performance.now();
        spectator.left(outcome);
      });
      one.send("open", () => undefined); // Whether it is still there to hear it, its end tells.
    }
    await Promise.all(ends);
    return crowdOf(outcomes, lastEndAtMs - openedAtMs);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
    await Promise.allSettled(ends);
  }
}

/** Its last words come before the end of the channel, but not always before the end of the process. */
async function endOf(one: ChildProcess): Promise<void> {
  const [exit] = await Promise.all([once(one, "exit"), once(one, "disconnect")]);
  const [code, killedBy] = exit as [number | null, string | null];
  if (code !== 0) throw new Error(`A process of buyers ended early (${killedBy ?? `exit status ${code}`})`);
}

function crowdOf(outcomes: readonly Outcome[], tookMs: number): Crowd {
  return {
    tookMs,
    longestWaitMs: outcomes.reduce((longest, { waitedMs }) => Math.max(longest, waitedMs), 0),
    gaveUp: outcomes.filter(({ end }) => end === "gave up").length,
    requests: outcomes.reduce((total, { requests }) => total + requests, 0),
    failures: outcomes.flatMap(({ end, error }) => (end === "failed" ? [error ?? "for no reason"] : [])),
  };
}
