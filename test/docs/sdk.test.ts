/**
 * "The SDK": its reference is what the entries of package.json export. To take a change over, after reading the difference:
 *
 *     npx vitest run test/docs/sdk.test.ts -u
 */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { entries } from "../tidy/public-surface.js";
import { ROOT } from "../tidy/tree.js";
import { deadLinks, readPage, withParts } from "./generated.js";
import { GROUPS, sdkNames, sdkReference } from "./sdk-reference.js";

const PATH = "docs/sdk.md";
const PAGE = readPage(PATH);
/** The compiler reads all sources: that takes its time on a loaded machine. */
const COMPILER_MS = 240_000;

describe("the page of the SDK", () => {
  it("has its reference as the sources make it", { timeout: COMPILER_MS }, async () => {
    const how = "the SDK changed: review it, then run npx vitest run test/docs/sdk.test.ts -u";
    const parts = sdkReference();
    await expect(await withParts(PAGE, parts), how).toMatchFileSnapshot(join(ROOT, PATH));
    // Control: another word is another page.
    expect(parts["helpers"]).toContain("fencedWrite");
    expect(await withParts(PAGE, { ...parts, helpers: parts["helpers"]!.replace("fencedWrite", "fencedWright") })).not.toBe(PAGE);
  });

  it("has every name once, and every entry", { timeout: COMPILER_MS }, () => {
    const names = sdkNames();
    expect(names.filter((name) => !PAGE.includes(`\n#### ${name}\n`))).toEqual([]);
    expect(
      Object.values(GROUPS)
        .flat()
        .filter((name) => !names.includes(name)),
    ).toEqual([]);
    expect(entries().filter(({ name }) => !PAGE.includes(`\`${name}\``))).toEqual([]);
  });

  it("has links that lead somewhere", () => {
    expect(deadLinks(PATH)).toEqual([]);
  });
});
