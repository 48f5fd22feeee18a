/**
 * The public surface equals the reviewed one: public-surface.txt. A change to it is a decision and belongs in the
 * CHANGELOG. To accept a change, read the difference and run:
 *
 *     npx vitest run test/tidy/public-surface -u
 */
import { expect, it } from "vitest";
import { entries, publicSurface } from "./public-surface.js";

const COMPILE_MS = 300_000;

it("every entry of package.json names a source of lib or lambda, or a construct", () => {
  expect(entries().map(({ name }) => name)).toContain("holdfast");
  for (const { path } of entries()) expect(path).toMatch(/^(?:(?:lib|lambda)\/[\w-]+|infra\/(?:index|step-functions))\.ts$/);
});

it(
  "the public surface is the reviewed one",
  async () => {
    const how = "the public surface changed: review it, then run npx vitest run test/tidy/public-surface -u";
    await expect(publicSurface(), how).toMatchFileSnapshot("public-surface.txt");
  },
  COMPILE_MS,
);
