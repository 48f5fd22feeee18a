/**
 * "Surviving a Region": its figures are those of locks on a table in two Regions, in virtual time, so they are the same on every machine.
 *
 *     npx vitest run test/docs/surviving-a-region -u
 */
import { expect, it } from "vitest";
import { regionsTable, rulesTable } from "../../bench/regions.js";
import { readPage } from "./generated.js";
import { expectMade } from "./made-page.js";

const PATH = "docs/surviving-a-region.md";

it("the page has the figures of today's code", { timeout: 600_000 }, async () => {
  expect(readPage(PATH)).toContain("<!-- made from");
  await expectMade(PATH, { "the times": await regionsTable(), "the rules": await rulesTable() });
});
