/** "Errors": the page's parts match the registry and the client. To accept a change: `npx vitest run test/docs/errors -u`. */
import { it } from "vitest";
import { errorParts } from "./error-pages.js";
import { expectMade } from "./made-page.js";

it("the page of errors has its parts as the code makes them", () => expectMade("docs/errors.md", errorParts()));
