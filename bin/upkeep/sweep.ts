/** `holdfast sweep`: deletes what is over, straight on a table that has no TTL and no agent that does it. */
import { CliError } from "../cli-error.js";
import type { ConnectionOptions } from "../connection.js";
import { needing, silenceNodeWarning, TABLE_PACKAGES, whereOf } from "../connection.js";
import type { ProcessContext } from "../context.js";
import { plain } from "../../console/text/plain-text.js";
import { isA } from "../../lib/core/brand.js";
import { randomNumber } from "../../lib/core/random.js";
import { systemClock } from "../../lib/core/time.js";
import { known, tableClocks } from "../../lib/service/clocks.js";
import { StoreNotConfigured } from "../../lib/store/port.js";
import { type SweepPlace, type Swept, sweepTable } from "../../lib/store/dynamo/sweep.js";
import { tableCalls } from "../../lib/store/dynamo/table-access.js";
import { answerWatcher } from "../../lib/store/dynamo/table-clock.js";

/** The options of `sweep`. */
export interface SweepArgs {
  /** The number of items that are over after which it ends, with the page that it looks at. @default all */
  readonly max?: number;
  /** True to delete nothing, and count what it would delete. */
  readonly dryRun?: boolean;
}

/** The pages between two lines of progress. */
const PAGES_A_LINE = 50;

type Counts = Omit<Swept, "failure">;

/** Sweeps until all of the table was looked at, or the bound. @throws CliError if no table is given, or the error that ended it early */
export async function sweep(
  { max = Infinity, dryRun = false }: SweepArgs,
  at: ConnectionOptions,
  context: ProcessContext,
): Promise<number> {
  const { table: tableName } = whereOf(at, context.env);
  if (tableName === undefined)
    throw new CliError("usage", "sweep: works straight on a table, and a URL is given", { next: "Say which table by --table." });
  silenceNodeWarning();
  const deps = depsOf(tableName, at, context);
  const namespace = at.namespace ?? (context.env["HOLDFAST_NAMESPACE"] || undefined);
  const place: SweepPlace = {};
  let all: Counts = { pages: 0, found: 0, deleted: 0, left: 0, isWhole: false };
  while (!all.isWhole && all.found < max) {
    const run = { namespace, isDryRun: dryRun, pagesMax: PAGES_A_LINE, foundMax: max - all.found };
    const { failure, ...swept } = await needing(() => sweepTable(deps, run, place), TABLE_PACKAGES);
    all = sum(all, swept);
    if (failure !== undefined) {
      if (all.found > 0) context.say(said(all, dryRun));
      throw new CliError(isA(failure, StoreNotConfigured) ? "config" : "unavailable", `sweep: ${(failure as Error).message}`);
    }
    if (!all.isWhole && !context.asJson) context.say(`${said(all, dryRun)} so far`);
  }
  await context.print(
    context.asJson ? `${JSON.stringify({ table: tableName, ...all })}\n` : `${plain(`${tableName}: ${said(all, dryRun)}`)}\n`,
  );
  return 0;
}

function depsOf(tableName: string, { region }: ConnectionOptions, { env }: ProcessContext) {
  const watcher = answerWatcher(systemClock);
  const access = { clock: systemClock, random: randomNumber, env };
  const clocks = known(tableClocks(systemClock, watcher.time));
  return { tableName, calls: tableCalls(undefined, { region }, access, watcher), clocks, clock: systemClock, random: randomNumber };
}

function sum(one: Counts, other: Counts): Counts {
  const { isWhole } = other;
  return {
    pages: one.pages + other.pages,
    found: one.found + other.found,
    deleted: one.deleted + other.deleted,
    left: one.left + other.left,
    isWhole,
  };
}

function said({ found, deleted, left }: Counts, isDryRun: boolean): string {
  if (isDryRun) return `${found} items are over; none was deleted`;
  return `${deleted} of ${found} items that were over are deleted${left > 0 ? `; ${left} were used meanwhile, and are left` : ""}`;
}
