/** "Who meets whom": the table matches the core. To accept a change: `npx vitest run test/docs/who-meets-whom -u`. */
import { it } from "vitest";
import { whoMeetsWhom } from "../core/queue-table.js";
import { expectMade } from "./made-page.js";

it("the table of who meets whom stands in the docs as the core makes it", () =>
  expectMade("docs/who-meets-whom.md", { "who meets whom": whoMeetsWhom() }));
