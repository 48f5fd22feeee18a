/** The table of held keys on screens of several widths. */
import pico from "picocolors";
import { describe, expect, it } from "vitest";
import { type HoldView, keyColumns } from "../../bin/inspect/holds.js";
import { ordinal } from "../../bin/inspect/waiting.js";
import { tableOf } from "../../bin/table.js";
import { widthOf } from "../../bin/terminal.js";

const HOLD: HoldView = {
  ...{ key: "ORDER_1231", owner: "checkout-7", mode: "exclusive", permits: 1, fencingToken: 1_795_000_212_684 },
  ...{ heldMs: 252_000, remainingMs: 28_000, leaseMs: 30_000, waiting: 0 },
};
const LATE: HoldView = { ...HOLD, key: "STOCK_9", owner: "shop-b", leaseMs: 60_000, remainingMs: 17_000 };

const plain = pico.createColors(false);
/** The table without colours, its rows split into cells. */
const cellsOf = (holds: readonly HoldView[], columns: number | undefined): readonly (readonly string[])[] => {
  const lines = tableOf(keyColumns(holds), holds, { columns, colors: plain });
  expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(columns ?? Infinity);
  return lines.map((line) => line.split(/ {2,}/));
};

describe("the table of held keys", () => {
  it("is whole on a pipe", () => {
    expect(cellsOf([HOLD], undefined)).toEqual([
      ["KEY", "OWNER", "MODE", "TOKEN", "HELD FOR", "REMAINING"],
      ["ORDER_1231", "checkout-7", "exclusive", "1795000212684", "4m 12s", "28s"],
    ]);
  });

  it("shortens the token first, then leaves the mode out if all are exclusive, then cuts keys, and owners last", () => {
    const long = { ...HOLD, key: `REPORT_${"x".repeat(20)}_2026`, owner: "nightly-worker-of-billing-7" };
    const [, wide = []] = cellsOf([long], 105);
    expect(wide).toEqual([long.key, long.owner, "exclusive", "…212684", "4m 12s", "28s"]);
    const [heading = [], noMode = []] = cellsOf([long], 92);
    expect(heading).toEqual(["KEY", "OWNER", "TOKEN", "HELD FOR", "REMAINING"]);
    expect(noMode.slice(0, 2)).toEqual([long.key, long.owner]);
    const [, cutKey = []] = cellsOf([long], 80);
    expect(cutKey.slice(0, 2)).toEqual([expect.stringMatching(/^REPORT_x+…x+_2026$/), long.owner]);
    const [, cutBoth = []] = cellsOf([long], 60);
    expect(cutBoth.slice(0, 2)).toEqual(["REPORT_x…xx_2026", expect.stringMatching(/^nightl.*….*\w$/)]);
  });

  it("fits 60 columns whatever its rows are: then first the token leaves, the time left and the mode", () => {
    const owner = "nightly-worker-of-billing-7";
    const titlesOf = (...holds: readonly HoldView[]) => cellsOf(holds, 60)[0];
    expect(titlesOf({ ...HOLD, owner, waiting: 3 })).toEqual(["KEY", "OWNER", "TOKEN", "HELD FOR", "REMAINING", "WAITING"]);
    expect(titlesOf({ ...LATE, owner, waiting: 3 })).toEqual(["KEY", "OWNER", "REMAINING", "STATE", "WAITING"]);
    const mixed = [
      { ...LATE, key: "k".repeat(40), owner, waiting: 3 },
      { ...HOLD, mode: "shared" as const },
    ];
    expect(titlesOf(...mixed)).toEqual(["KEY", "OWNER", "STATE", "WAITING"]);
  });

  it("keeps the mode if a key is shared or has permits", () => {
    const shared = { ...HOLD, mode: "shared" as const, owner: "o".repeat(40) };
    expect(cellsOf([HOLD, shared], 80)[0]).toContain("MODE");
    expect(cellsOf([{ ...HOLD, limit: 3, owner: "o".repeat(40) }], 80)[1]).toContain("1 of 3");
  });

  it("says for how long a late holder did not renew; where there is no room for both, in place of the time since its grant", () => {
    expect(cellsOf([HOLD, LATE], 100)[2]).toEqual(["STOCK_9", "shop-b", "exclusive", "1795000212684", "4m 12s", "17s", "not renewed 43s"]);
    const crowded = [HOLD, { ...LATE, owner: "nightly-worker-of-b", waiting: 3 }];
    const [heading, , late] = cellsOf(crowded, 80);
    expect(heading).toEqual(["KEY", "OWNER", "TOKEN", "REMAINING", "STATE", "WAITING"]);
    expect(late).toEqual(["STOCK_9", "nightly-worker-of-b", "…212684", "17s", "not renewed 43s", "3"]);
  });

  it("has a late holder's row in yellow, and the number of waiters", () => {
    const colors = pico.createColors(true);
    const [, current = "", late = ""] = tableOf(keyColumns([{ ...HOLD, waiting: 2 }, LATE]), [{ ...HOLD, waiting: 2 }, LATE], {
      columns: 120,
      colors,
    });
    const { yellow } = colors;
    expect(current.endsWith(yellow("2"))).toBe(true);
    expect(current.replace(yellow("2"), "")).not.toContain("\u001B");
    for (const cell of ["STOCK_9", "shop-b", "not renewed 43s", "17s"]) expect(late).toContain(yellow(cell));
  });
});

it("places in a queue are numbered as they are spoken", () => {
  const places = [1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 23, 100, 101, 111, 112];
  expect(places.map(ordinal).join(" ")).toBe("1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 23rd 100th 101st 111th 112th");
});
