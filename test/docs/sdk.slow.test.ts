/** The reference of the SDK, which `npm run docs:reference` writes: it names every export of every entry of package.json. */
import { beforeAll, describe, expect, it } from "vitest";
import { entries } from "../tidy/public-surface.js";
import { deadLinks, readPage } from "./generated.js";
import { GROUPS, sdkNames, sdkPage } from "./sdk-reference.js";

describe("the reference of the SDK", () => {
  let page: string;
  beforeAll(async () => {
    page = await sdkPage();
  });

  const missing = (names: readonly string[], text: string): readonly string[] => names.filter((name) => !text.includes(`\n#### ${name}\n`));

  it("names every export and every entry; control: an export that is left out is reported", () => {
    expect(sdkNames().length).toBeGreaterThan(50);
    expect(missing(sdkNames(), page)).toEqual([]);
    expect(missing(sdkNames(), page.replace("#### fencedWrite\n", ""))).toEqual(["fencedWrite"]);
    expect(entries().filter(({ name }) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it("groups no name that is not exported", () => {
    const grouped = Object.values(GROUPS).flat();
    expect(grouped.filter((name) => !sdkNames().includes(name))).toEqual([]);
  });

  it("is committed as the code makes it; npm run docs:reference writes it", () => {
    expect(readPage("docs/sdk.md") === page).toBe(true);
  });

  it("has links that lead somewhere", () => {
    expect(deadLinks("docs/sdk.md", page)).toEqual([]);
  });
});
