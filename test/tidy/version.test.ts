/** One version: the service reports the version that is published. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { VERSION } from "../../lib/core/version.js";
import { ROOT } from "./tree.js";

it.each(["package.json", "package-lock.json"])("VERSION is the version of %s", (file) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, file), "utf8")) as { version: string };
  expect(VERSION).toBe(version);
});
