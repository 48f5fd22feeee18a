/** "Planted mistakes": the page lists what is planted for the simulation to find. To accept a change: `npx vitest run test/docs/mistakes -u`. */
import { expect, it } from "vitest";
import { readPage, withParts } from "./generated.js";
import { expectMade } from "./made-page.js";
import { mistakeParts } from "./must-fail-list.js";

const PATH = "docs/mistakes.md";

it("the page of planted mistakes lists them as the simulation has them", () => expectMade(PATH, mistakeParts()));

it("control: a page of made parts with one row less differs", async () => {
  const page = readPage(PATH);
  expect(await withParts(page, { "the mistakes": mistakeParts()["the mistakes"].replace(/\n[^\n]*$/, "") })).not.toBe(page);
});
