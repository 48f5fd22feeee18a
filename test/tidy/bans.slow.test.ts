/** The bans, checked in every file: see bans.test.ts. */
import { expect, it } from "vitest";
import { banned, SOURCES } from "./banned.js";
import { sourcesIn } from "./tree.js";

it("a ban holds in every file", { timeout: 300_000 }, async () => {
  const found = await Promise.all(sourcesIn(...SOURCES).map(banned));
  expect(found.flat()).toEqual([]);
});
