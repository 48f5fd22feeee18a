/** The part of docs/performance.md about latencies: `npx vitest run --project slow test/bench/latency -u` makes it anew. The same on every machine. */
import { expect, it } from "vitest";
import { latency } from "../../bench/crowds/latency.js";
import { PAGE } from "../../bench/page.js";
import { partsOf, readPage } from "../docs/generated.js";
import { expectMade } from "../docs/made-page.js";

it("the page has the figures of today's code", { timeout: 600_000 }, async () => {
  const { tables } = await latency();
  await expectMade(PAGE, { ...partsOf(readPage(PAGE)), latency: tables.join("\n") });
  expect(tables).toHaveLength(1);
});
