// For Jest with ES modules, and for Vitest: what is imported is what is required.
import * as holdfast from "holdfast";
import * as middy from "holdfast/middy";
import { createRequire } from "node:module";
import * as testing from "holdfast/testing";
import { check } from "./check.mjs";

test("a lock is held, seen and refused", async () => {
  const require = createRequire(import.meta.url);
  const required = { holdfast: require("holdfast"), testing: require("holdfast/testing"), middy: require("holdfast/middy") };
  await check({ holdfast, testing, middy }, required);
});
