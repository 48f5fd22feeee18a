/**
 * The crowd: all buyers of a sale, spread over processes that don't know each other. The sale starts when all processes
 * are ready, and each buyer's outcome is reported as it happens.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The lock that a purchase takes, and how its buyers wait: in the queue or, for comparison, by polling. */
export type Locking = "nothing" | "the product" | "the shop" | "the shop, by polling";

/** The instructions for one process of buyers. */
export interface Orders {
  readonly locking: Locking;
  /** The URL of the lock service. */
  readonly url: string;
  /** The engine with the stock's table. */
  readonly endpoint: string;
  readonly tableName: string;
  readonly products: readonly string[];
  /**
   * The buyers of this process, by number: from `first` up to, but not including, the last. They are assigned to the
   * products in rotation.
   */
  readonly first: number;
  readonly last: number;
  /** The number of buyers of this process who try at the same time. */
  readonly atOnce: number;
}

/** The outcome of one buyer. */
export interface Outcome {
  readonly end: "bought" | "sold out" | "gave up" | "failed";
  /** From the request for the lock until it was held or given up. */
  readonly waitedMs: number;
  /** Requests to the lock service by this process since its last message. */
  readonly requests: number;
  readonly error?: string;
}

/** A message from a process of buyers: ready, then an outcome for each buyer. */
export type Word = "ready" | Outcome;

/** An observer of a sale. */
export interface Spectator {
  /** Called when the sale starts. */
  opened(): void;
  left(outcome: Outcome): void;
}

/** The outcome of all buyers. */
export interface Crowd {
  /** From the start of the sale to the end of the last buyer. */
  readonly tookMs: number;
  readonly longestWaitMs: number;
  readonly gaveUp: number;
  readonly requests: number;
  /** The reasons for which buyers failed, one sentence each. */
  readonly failures: readonly string[];
}

const BUYERS = fileURLToPath(new URL("buyers.ts", import.meta.url));

/**
 * Sends the crowd. Every process has ended when this settles.
 * @throws Error if a process ends early; AbortError if `signal` aborts.
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
      one.send("open", () => undefined); // A process that is gone is noticed by its exit.
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

/** Waits for the end of the process. Its last messages come before the channel closes, but may come after the process exits. */
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
