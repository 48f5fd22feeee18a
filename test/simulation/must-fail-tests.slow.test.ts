/** Mistakes in a rule of one test, so that no history has to show them: with each of them, the test that it names fails. */
import { execFile } from "node:child_process";
import { describe, expect, it } from "vitest";
import { BUGS } from "./bugs/bugs.js";

/** The part of vitest's report in JSON that is read here. */
interface Report {
  readonly testResults: readonly { readonly assertionResults: readonly { readonly title: string; readonly status: string }[] }[];
}

const NOTICED = BUGS.flatMap(({ name, why, noticedBy }) => (noticedBy ? [{ name, why, file: noticedBy[0], title: noticedBy[1] }] : []));

/** Runs a file of tests with a mistake. Returns the titles of those that failed. */
async function failedWith(mistake: string, file: string): Promise<readonly string[]> {
  const args = ["node_modules/vitest/vitest.mjs", "run", "--config", "test/simulation/planted.config.ts", "--mode", mistake];
  const text = await new Promise<string>((resolve) =>
    execFile(process.execPath, [...args, "--reporter=json", file], (_failed, stdout) => resolve(stdout)),
  );
  const { testResults } = JSON.parse(text.slice(text.indexOf("{"))) as Report;
  return testResults.flatMap((one) => one.assertionResults.flatMap(({ title, status }) => (status === "failed" ? [title] : [])));
}

/** The title of a test of a table, for any of its rows. */
function anyOf(title: string): RegExp {
  const parts = title.split(/%\w|\$\w+/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}

describe("a test", () => {
  it.each(NOTICED)("must fail with $name: $why", async ({ name, file, title }) => {
    expect(await failedWith(name, file)).toContainEqual(expect.stringMatching(anyOf(title)));
  });
});
