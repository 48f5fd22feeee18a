/** `holdfast show`: a key with its holders and waiters, or a run with its outcome. */
import type { Inspection, LockClient, RunInspection } from "../../lib/index.js";
import { CliError } from "../cli-error.js";
import { formatDuration } from "../../console/text/duration.js";
import { stateText } from "../../console/page/words.js";
import { holdColumns, holdsOf, kindOf, withParts } from "./holds.js";
import { becameOf, jsonOf, lastsOf, nextOf } from "../../console/text/run-text.js";
import { isScheduleOf } from "../../console/schedules.js";
import { OTHER_TENANTS, tenantOf } from "./tenants.js";
import type { CommandContext } from "../context.js";
import { type Column, cutMiddle, tableOf } from "../table.js";
import { plain, plainJson } from "../../console/text/plain-text.js";

type WaiterRow = Inspection["waiters"][number];

/** The columns of waiters for a key, or for a semaphore of `limit` permits. */
const waiterColumns = (limit: number | undefined): readonly Column<WaiterRow>[] => [
  { title: "PLACE", cell: ({ position }) => String(position), align: "right" },
  { title: "WAITER", cell: ({ owner }) => owner || "-", cut: { columns: 10, to: cutMiddle } },
  { title: "MODE", cell: ({ mode, permits = 1 }) => kindOf({ mode, permits, limit }) },
  { title: "PRIORITY", cell: ({ priority }) => String(priority), align: "right" },
  { title: "WAITING FOR", cell: ({ waitingMs }) => formatDuration(waitingMs), align: "right" },
];

/** Shows a key. If the key was never locked but has a run, prints how to show the run. */
export async function show(key: string, { locks, screen, asJson, print, say }: CommandContext): Promise<number> {
  const inspection = await locks.inspect(key);
  if (asJson) {
    await print(`${plainJson(inspection)}\n`);
    return 0;
  }
  const { waiters, fencingToken, limit } = inspection;
  const holds = holdsOf([inspection]);
  const isHeld = holds.length > 0;
  const paint = isHeld ? screen.colors.yellow : screen.colors.green;
  const state = plain(stateText(inspection)).replace(/^(?:held|free|all \d+ permits)/, paint);
  // Of a semaphore the sentence is about its permits.
  const first = `${plain(withParts(key))}${isHeld && limit !== undefined ? ":" : " is"} ${state}`;
  const tables = [
    ...(isHeld ? ["", ...tableOf(holdColumns(holds), holds, screen)] : []),
    ...(waiters.length > 0 ? ["", ...tableOf(waiterColumns(limit), waiters, screen)] : []),
  ];
  const last = isHeld || fencingToken === 0 ? [] : [`the last grant was under token ${fencingToken}`];
  await print(`${[first, ...last, ...tables].join("\n")}\n`);
  const tenant = isHeld ? undefined : await tenantOf(locks, key);
  if (tenant !== undefined) say(`namespace ${tenant}. ${OTHER_TENANTS}`);
  if (fencingToken === 0 && (await locks.runs.get(key)) !== null) say(`there is a run of that key: holdfast show --run ${key}`);
  return 0;
}

/** Shows a run. @throws CliError if it is unknown */
export async function showRun(key: string, { locks, asJson, print }: CommandContext): Promise<number> {
  const run = await locks.runs.get(key);
  if (run === null) throw await noRun(key, locks);
  await print(asJson ? `${plainJson(jsonOf(run))}\n` : `${linesOf(run).map(plain).join("\n")}\n`);
  return 0;
}

/** Returns the error for a key without a run. The name of a schedule has none, but its occurrences do. */
async function noRun(key: string, locks: LockClient): Promise<CliError> {
  // It is only advice: without it, such as without the right to list, the error is the same.
  const { items } = await locks.runs.list({ prefix: `${key}_` }).catch(() => ({ items: [] }));
  const next = isScheduleOf(key, items)
    ? `It is a schedule, whose occurrences are shown by: holdfast ticks ${key}`
    : (await tenantOf(locks, key)) === undefined
      ? ""
      : OTHER_TENANTS;
  return new CliError("notFound", `${key} has no run: it never ran, was reset, or is forgotten`, { next });
}

function linesOf(run: RunInspection): readonly string[] {
  const { key, attempt, fencingToken, owner, checkpoint, result, error, resultOmitted } = run;
  const lasts = lastsOf(run);
  return [
    `${withParts(key)} ${becameOf(run)}. Attempt ${attempt} has token ${fencingToken}${lasts && `; it ${lasts}`}`,
    ...(nextOf(run) === "" ? [] : [nextOf(run)]),
    ...(owner ? [`owner: ${owner}`] : []),
    ...(error ? [`error: ${error.message}`] : []),
    ...(checkpoint === undefined ? [] : [`checkpoint: ${JSON.stringify(checkpoint)}`]),
    ...(result === undefined ? [] : [`result: ${JSON.stringify(result)}`]),
    ...(resultOmitted ? ["result: was too large to be kept"] : []),
  ];
}
