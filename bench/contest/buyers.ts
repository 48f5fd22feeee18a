/**
 * A thousand buyers of thirty pieces of two products, the key of a product held for each purchase: the flash sale of
 * examples/, with every contestant in place of holdfast. The purchase has no protection of its own.
 */
import { setTimeout as delay } from "node:timers/promises";
import { booksOf, isExact } from "../../examples/flash-sale/books.js";
import { stockIn } from "../../examples/flash-sale/stock.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { type Contest, type Runner, startContest } from "./contest.js";
import { ENTRIES } from "./contestants.js";
import { type Report, type Sizes, rounds } from "../report/report.js";
import { markdownTable, median } from "../report/table.js";

const PIECES_EACH = 15;
const BUYERS = 1000;
const QUICK_BUYERS = 60;
const ROUNDS = 3;
/** Those without a queue ask seldom, because so many ask. */
const POLL_MS = 500;
/** The time limit of one contestant's sale. */
const SALE_MS = 12_000;
/** A contestant whose sale takes longer than this holds no other. */
const SLOW_MS = 5000;

/** The figures of a contestant, sale by sale. The time of a sale that failed is missing. */
export interface SaleFigures {
  readonly id: string;
  readonly tookMs: number[];
  readonly sold: string[];
  isExact: boolean;
}

interface Lane extends SaleFigures {
  readonly runner: Runner;
  failure?: string;
}

/** Returns the table. @throws StartError if the engine or the service can't start. */
export async function buyers(sizes: Sizes): Promise<Report> {
  const { isQuick } = sizes;
  const count = isQuick ? QUICK_BUYERS : BUYERS;
  const contest = await startContest(POLL_MS, (id) => !ENTRIES[id]!.isForCyclesOnly);
  try {
    const lanes: Lane[] = contest.runners.map((runner) => ({ id: runner.id, runner, tookMs: [], sold: [], isExact: true }));
    const done = await rounds(sizes, isQuick ? 1 : ROUNDS, async (round) => {
      for (const lane of lanes) if (isWorthAnother(lane)) await sale(contest, lane, { name: `sale-${round}-${lane.runner.id}`, count });
    });
    return reportOf(lanes, count, [
      `Medians of ${done} rounds by turns, all buyers at once in one process. Those without a queue ask again every ${POLL_MS} ms. A sale ends after ${SALE_MS / 1000} s; one that took over ${SLOW_MS / 1000} s is not repeated.`,
      ...contest.notes,
    ]);
  } finally {
    await contest.stop();
  }
}

function isWorthAnother({ failure, tookMs }: Lane): boolean {
  return failure === undefined && tookMs.every((ms) => ms <= SLOW_MS);
}

/** Holds one sale. */
async function sale(contest: Contest, lane: Lane, { name, count }: { readonly name: string; readonly count: number }): Promise<void> {
  const client = engineClient(contest.endpoint);
  const stock = stockIn(name, client);
  const products = [1, 2].map((product) => `${name}-${product}`);
  const late = delay(SALE_MS, undefined, { ref: false }).then(() => Promise.reject(new Error(`not over after ${SALE_MS / 1000} s`)));
  await stock.createTable();
  for (const product of products) await stock.fill(product, PIECES_EACH);
  try {
    const { tookMs } = await Promise.race([lane.runner.ask("buy", { tableName: name, products, buyers: count }), late]);
    lane.tookMs.push(tookMs);
  } catch (error) {
    lane.failure = (error as Error).message;
    lane.runner.kill();
  }
  const books = booksOf(await Promise.all(products.map((product) => stock.audit(product))), PIECES_EACH);
  lane.isExact &&= lane.failure === undefined && isExact(books);
  lane.sold.push(String(books.sold));
  client.destroy();
}

function reportOf(lanes: readonly Lane[], count: number, notes: readonly string[]): Report {
  const seconds = ({ tookMs, failure }: Lane): string => failure ?? `${(median(tookMs) / 1000).toFixed(2)} s`;
  const [base] = lanes;
  const ratio = ({ tookMs, failure }: Lane): string =>
    failure === undefined && base?.failure === undefined && base ? `${(median(tookMs) / median(base.tookMs)).toFixed(2)}×` : "–";
  const rows = lanes.map((lane) => [
    lane.runner.title,
    [...new Set(lane.sold)].join(", "),
    lane.isExact ? "yes" : "no",
    seconds(lane),
    ratio(lane),
  ]);
  const head = [`${count.toLocaleString("en")} buyers, two keys`, `sold, of ${2 * PIECES_EACH}`, "exact", "all served in", "×"];
  return {
    tables: [markdownTable([head, ...rows])],
    notes,
    figures: lanes.map(({ id, tookMs, sold, isExact: exact }): SaleFigures => ({ id, tookMs, sold, isExact: exact })),
  };
}
