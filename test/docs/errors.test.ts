/**
 * "Errors": the page's parts match the registry and the client. To accept a change, read the difference and run:
 *
 *     npx vitest run test/docs/errors -u
 */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";
import { errorParts } from "./error-pages.js";
import { readPage, withParts } from "./generated.js";

const PATH = "docs/errors.md";
const PAGE = readPage(PATH);

describe("the page of errors", () => {
  it("has its parts as the code makes them", async () => {
    const how = "the errors changed: review it, then run npx vitest run test/docs/errors -u";
    await expect(await withParts(PAGE, errorParts()), how).toMatchFileSnapshot(join(ROOT, PATH));
  });

  it("control: another status, word or missing code is another page", async () => {
    const parts = errorParts();
    const [name, made] = Object.entries(parts)[0]!;
    for (const changed of [made.replace("423", "424"), made.replace("`later`", "`same`"), made.slice(0, made.lastIndexOf("\n###"))]) {
      expect(changed).not.toBe(made);
      expect(await withParts(PAGE, { ...parts, [name]: changed })).not.toBe(PAGE);
    }
  });
});
