/** The results of the sales: a table with a column for each, and a verdict of one sentence on each. Pure. */
import { type Books, isExact } from "./books.js";
import type { Crowd, Locking } from "./crowd.js";

/** A finished sale. */
export interface Result extends Crowd, Books {
  readonly locking: Locking;
}

/** The verdict on a sale. */
export interface Verdict {
  /** True if the sale turned out as expected: exact with a lock, inexact without one. */
  readonly ok: boolean;
  readonly text: string;
}

const ROWS: readonly (readonly [label: string, cell: (result: Result) => string])[] = [
  ["sold", ({ sold }) => count(sold)],
  ["left in stock", ({ left }) => count(left)],
  ["oversold", ({ oversold }) => count(oversold)],
  ["a piece sold again", ({ soldTwice }) => count(soldTwice)],
  ["a buyer served again", ({ servedTwice }) => count(servedTwice)],
  ["total time", ({ tookMs }) => seconds(tookMs)],
  ["sales per second", ({ sold, tookMs }) => count(Math.round((sold * 1000) / tookMs))],
  ["longest wait", (result) => (result.locking === "nothing" ? "-" : seconds(result.longestWaitMs))],
  ["gave up", ({ gaveUp }) => count(gaveUp)],
  ["failed", ({ failures }) => count(failures.length)],
  ["lock requests spent", ({ requests }) => count(requests)],
  ["lock requests per sale", ({ requests, sold }) => (sold === 0 ? "-" : (requests / sold).toFixed(1))],
];

const TITLES: Record<Locking, string> = {
  nothing: "no lock",
  "the product": "a lock per product",
  "the shop": "one lock for all",
  "the shop, by polling": "polled",
};
const NAMES: Record<Exclude<Locking, "nothing">, string> = {
  "the product": "A lock per product",
  "the shop": "One lock for all",
  "the shop, by polling": "One lock for all, polled",
};

const GAP = "  ";

/** Returns the table, line by line, the head first. */
export function tableOf(results: readonly Result[]): readonly string[] {
  const cells = [["", ...results.map(({ locking }) => TITLES[locking])], ...ROWS.map(([label, cell]) => [label, ...results.map(cell)])];
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0))) ?? [];
  return cells.map((row) =>
    row.map((text, column) => (column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0))).join(GAP),
  );
}

/** Judges `result`. */
export function verdictOn(result: Result): Verdict {
  const { locking, stocked, left, sold, oversold, soldTwice, servedTwice, gaveUp, failures } = result;
  const fell = stocked - left;
  const what = `${count(sold)} sold, ${count(left)} left of ${count(stocked)}`;
  if (locking === "nothing") {
    if (oversold <= 0)
      return { ok: false, text: `No lock: ${what}. It did not oversell, so this sale shows nothing: more buyers, please.` };
    return { ok: true, text: `No lock: ${count(sold)} sold, but the stock fell by ${count(fell)}: oversold by ${count(oversold)}.` };
  }
  const name = NAMES[locking];
  if (locking === "the shop, by polling" && oversold === 0 && soldTwice === 0) {
    return { ok: true, text: `${name}: ${what}, no piece twice; ${count(gaveUp)} got none.` };
  }
  if (isExact(result)) return { ok: true, text: `${name}: exact. ${what}, no piece or buyer twice.` };
  const wrong = `oversold by ${count(oversold)}, ${count(soldTwice)} pieces sold again, ${count(servedTwice)} buyers served again`;
  const missed = `${count(gaveUp)} gave up, ${count(failures.length)} failed${failures[0] === undefined ? "" : ` (${failures[0]})`}`;
  return { ok: false, text: `${name}: NOT exact. ${what}, ${wrong}; ${missed}.` };
}

/** Compares queueing with polling, in one sentence: by requests, since a busy machine changes times and not these. */
export function queueWorth(queued: Result, polled: Result): string {
  const perSale = ({ requests, sold }: Result): string => (requests / sold).toFixed(1);
  return `Who queues spends ${perSale(queued)} lock requests on a purchase; who polls spends ${perSale(polled)}.`;
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
