/**
 * "Who meets whom": the table in the docs matches the core. To accept a change of it, read the difference and run:
 *
 *     npx vitest run test/docs/who-meets-whom -u
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { whoMeetsWhom } from "../core/queue-table.js";
import { ROOT } from "../tidy/tree.js";

const PATH = join(ROOT, "docs/who-meets-whom.md");
const PAGE = readFileSync(PATH, "utf8");
const TABLE = /(?<=<!-- made by .* -->\n)[\s\S]*(?=<!-- until here -->)/;

/** The page with a new table. */
const withTable = (table: string): string => PAGE.replace(TABLE, () => `\n${table}\n\n`);

describe("the table of who meets whom", () => {
  it("stands in the docs as the core makes it", async () => {
    const how = "the table changed: review it, then run npx vitest run test/docs/who-meets-whom -u";
    await expect(withTable(whoMeetsWhom()), how).toMatchFileSnapshot(PATH);
  });
});
