/**
 * `npm run demo -- --only sale`: the flash sale. Two products, as many pieces as buyers, four times: without a lock, with a lock per
 * product, with one lock for everything, and with one lock whose buyers poll for a while instead of queueing. The demo
 * fails if a sale with a lock isn't exact. It also fails if the sale without a lock is exact, because then it would
 * prove nothing.
 */
import { cpus } from "node:os";
import { booksOf } from "./books.js";
import { type Locking, type Orders, type Spectator, send } from "./crowd.js";
import { type Plan, planOf } from "./plan.js";
import { type Result, queueWorth, tableOf, verdictOn } from "./report.js";
import { type Progress, type Screen, screenOn } from "./screen.js";
import { type Shop, openShop } from "./shop.js";

const PRODUCTS = ["camera", "console"];
const SALES: readonly (readonly [locking: Locking, title: string])[] = [
  ["nothing", "Without a lock: read the stock, think, write it back."],
  ["the product", "The same code within withLock, a lock per product."],
  ["the shop", "The same again, with one lock for everything."],
  ["the shop, by polling", "That once more, by buyers who ask again and again in place of queueing, for 20 s at most."],
];

// This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help users of this demo.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

async function main(plan: Plan, screen: Screen, signal: AbortSignal): Promise<boolean> {
  const { say, sayAfter } = screen;
  const shop = await openShop(process.env["DYNAMODB_ENDPOINT"] || undefined);
  try {
    process.send?.(shop.url); // To the tour, whose console shows the sale.
    if (!plan.isBrief) introduce(plan, shop, screen);
    const results: Result[] = [];
    for (const [at, [locking, title]] of SALES.entries()) {
      signal.throwIfAborted();
      // Lines of progress need the title that they belong to.
      if (!plan.isBrief) say(`\n${title}`);
      else if (!screen.isTerminal) say(title);
      const products = PRODUCTS.map((product) => `${product}-${at + 1}`); // Each sale starts with a full stock of its own.
      const result = await holdSale(locking, products, plan, shop, screen, signal);
      results.push(result);
      if (plan.isBrief) sayVerdict(result, screen);
    }
    if (!plan.isBrief) showTable(results, screen);
    const [, , forAll, polled] = results;
    if (forAll && polled) sayAfter("  ", queueWorth(forAll, polled));
    if (!plan.isBrief) sayWhere(screen);
    return results.every((result) => verdictOn(result).ok);
  } finally {
    await shop.close();
  }
}

async function holdSale(
  locking: Locking,
  products: readonly string[],
  plan: Plan,
  { url, endpoint, tableName, stock }: Shop,
  screen: Screen,
  signal: AbortSignal,
): Promise<Result> {
  const { buyers, processes, atOnce, isBrief } = plan;
  const piecesEach = buyers / products.length;
  await Promise.all(products.map((product) => stock.fill(product, piecesEach)));

  const edges = Array.from({ length: processes + 1 }, (_, at) => Math.round((buyers * at) / processes));
  const orders = edges
    .slice(1)
    .map((last, at): Orders => ({ locking, url, endpoint, tableName, products, first: edges[at] ?? 0, last, atOnce }));
  let progress: Progress | undefined;
  const spectator: Spectator = {
    opened: () => (progress = screen.progress(buyers, isBrief)),
    left: ({ requests }) => progress?.step(requests),
  };
  try {
    const crowd = await send(orders, signal, spectator);
    const books = booksOf(await Promise.all(products.map(stock.audit)), piecesEach);
    return { locking, ...crowd, ...books };
  } finally {
    progress?.stop();
  }
}

/** Says how large the sale is, and where its service and its table are. */
function introduce({ buyers, processes, atOnce }: Plan, { url, engineName, endpoint }: Shop, { say, colors }: Screen): void {
  const each = buyers / PRODUCTS.length;
  say(colors.bold(`Flash sale: ${buyers} buyers in ${processes} processes, ${PRODUCTS.length} products with ${each} pieces each`));
  if (atOnce < buyers / processes) say(`At most ${atOnce} of a process try at a time.`);
  say(`The lock service: ${url}, on ${engineName === "external" ? endpoint : engineName}`);
}

function showTable(results: readonly Result[], screen: Screen): void {
  const { say, colors } = screen;
  say();
  tableOf(results).forEach((line, at) => say(`  ${at === 0 ? colors.bold(line) : line}`));
  say();
  for (const result of results) sayVerdict(result, screen);
}

function sayVerdict(result: Result, { sayAfter, colors }: Screen): void {
  const { ok, text } = verdictOn(result);
  sayAfter(`${ok ? colors.green("✓") : colors.red("✗")} `, text);
}

/** Says when and on which machine: figures of another don't compare. */
function sayWhere({ say, colors }: Screen): void {
  const machine = cpus();
  say();
  say(colors.dim(`${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${machine.length} × ${machine[0]?.model.trim()}`));
}

const interruption = new AbortController();
const EXIT_STATUS = { SIGINT: 130, SIGTERM: 143 } as const;
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.on(name, () => {
    process.exitCode = EXIT_STATUS[name];
    interruption.abort();
  });
}
try {
  const exact = await main(planOf(process.argv.slice(2)), screenOn(process.stdout), interruption.signal);
  if (!exact) process.exitCode = 1;
} catch (error) {
  if (!interruption.signal.aborted) {
    console.error(`demo: ${(error instanceof Error ? error.message : String(error)).split(/\n|\. To specify /, 1)[0]}`);
    process.exitCode = 1;
  }
}
