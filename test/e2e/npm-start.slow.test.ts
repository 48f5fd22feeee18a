/** The conformance tests against `npm start`, on its engine and in memory. The number of requests matches the README's. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { npmStart } from "../docs/npm-start.js";
import { conformance } from "./conformance.js";
import { withHeaders } from "./target.js";

const README = readFileSync(new URL("README.md", import.meta.url), "utf8");

const { sent } = conformance("npm start", async () => {
  const service = await npmStart();
  return {
    url: service.url,
    fetch,
    asAnother: withHeaders({ "x-holdfast-principal": "another" }),
    async close() {
      await service.pressCtrlC();
    },
  };
});

it("sends as many requests as the README says", () => {
  expect(sent(), "the figure for README.md").toBe(Number(/sends ([\d,]+) requests/.exec(README)?.[1]?.replace(",", "")));
});
