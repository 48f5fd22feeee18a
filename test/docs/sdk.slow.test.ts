/** The reference of the SDK, which `npm run docs:reference` writes: it names every export of every entry of package.json. */
import { describe, expect, it } from "vitest";
import { entries } from "../tidy/public-surface.js";
import { itIsWhole } from "./made-page.js";
import { GROUPS, sdkNames, sdkPage } from "./sdk-reference.js";

let page: Promise<string> | undefined;
/** The page. The compiler makes it once, because that is slow. */
const made = (): Promise<string> => (page ??= sdkPage());

describe("the reference of the SDK", () => {
  itIsWhole("docs/sdk.md", made, { names: sdkNames, line: (name) => `### ${name}` });

  it("names every entry, and groups no name that is not exported", async () => {
    const text = await made();
    expect(entries().filter(({ name }) => !text.includes(`\`${name}\``))).toEqual([]);
    const grouped = Object.values(GROUPS).flat();
    expect(grouped.filter((name) => !sdkNames().includes(name))).toEqual([]);
  });
});
