/**
 * "Planted mistakes": the page lists what is planted for the simulation to find. To accept a change of the list, read the difference and run:
 *
 *     npx vitest run test/docs/mistakes -u
 */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";
import { readPage, withParts } from "./generated.js";
import { mistakeParts } from "./must-fail-list.js";

const PATH = "docs/mistakes.md";
const PAGE = readPage(PATH);

describe("the page of planted mistakes", () => {
  it("lists the mistakes, as the simulation has them; control: a page with one less differs", async () => {
    const how = "the list changed: review it, then run npx vitest run test/docs/mistakes -u";
    const parts = mistakeParts();
    await expect(await withParts(PAGE, parts), how).toMatchFileSnapshot(join(ROOT, PATH));
    const fewer = parts["the mistakes"].replace(/\n[^\n]*$/, "");
    expect(await withParts(PAGE, { "the mistakes": fewer })).not.toBe(PAGE);
  });
});
