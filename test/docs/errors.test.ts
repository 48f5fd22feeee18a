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
});
