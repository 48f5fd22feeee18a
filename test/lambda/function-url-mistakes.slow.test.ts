/** Each mistake of the threat model of function URLs, planted in the sources, is found by the test that it names. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";
import { MISTAKES } from "./function-url-mistakes.js";

describe("a mistake in what keeps a caller to its keys", () => {
  let failed: Readonly<Record<string, readonly string[]>>;
  beforeAll(async () => {
    const words = ["node_modules/vitest/vitest.mjs", "run", "--config", "test/lambda/function-url-mistakes.config.ts"];
    const directory = mkdtempSync(join(tmpdir(), "holdfast-mistakes-"));
    const env = { PATH: process.env["PATH"], FAILURES: join(directory, "failures.json") };
    // Tests fail, so the run does.
    await promisify(execFile)(process.execPath, words, { cwd: ROOT, env, maxBuffer: 2 ** 26 }).catch(() => undefined);
    failed = JSON.parse(readFileSync(env.FAILURES, "utf8")) as typeof failed;
    rmSync(directory, { recursive: true });
  }, 600_000);

  it.each(MISTAKES)("is found: $name", ({ name, found: [, test] }) => {
    expect(failed[name]).toEqual(expect.arrayContaining([expect.stringMatching(new RegExp(`^${test}`))]));
  });

  it("control: without one, no test fails", () => {
    expect(failed["none"]).toEqual([]);
  });
});
