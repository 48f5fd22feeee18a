/** The table of crowds in docs/costs.md: what a grant costs, before and now. */
import { PRICES } from "../cost/prices.js";
import { markdownTable } from "../report/table.js";
import type { PlayedRow } from "./crowds.js";

/** The write units of a grant on the commit that the page names. They were measured in real time, behind a proxy like DynamoDB. */
const BEFORE: readonly (readonly [scene: string, units: number, besides: string])[] = [
  ["mutex, 16 callers × 5, holds of 20 ms", 8.9, ""],
  ["mutex, 64 callers, holds of 20 ms", 19, ""],
  ["mutex, 200 callers, holds of 20 ms", 3540, ", 9 of 200 served"],
  ["semaphore of 20, 64 callers × 4, holds of 50 ms", 40, ""],
];

/** Returns the table. @throws Error if one of its scenes wasn't played */
export function unitsTable(played: readonly PlayedRow[]): string {
  const rows = BEFORE.map(([scene, before, besides]) => {
    const now = played.find(({ name }) => name === scene)?.figures.units;
    if (now === undefined) throw new Error(`the crowds lack ${scene}`);
    return [scene, `${textOf(before)}${besides}`, textOf(now), `$${(now * PRICES.writeUnits.usd).toFixed(2)}`];
  });
  return markdownTable([["callers straight on the table", "write units a grant: before", "now", "a million grants now"], ...rows]);
}

function textOf(units: number): string {
  return units.toLocaleString("en", { maximumSignificantDigits: 3 });
}
