/** The replacements that the examples' READMEs give for copying them: each import of ours, by its published name. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";

const read = (...path: readonly string[]): string => readFileSync(join(ROOT, ...path), "utf8");
const { exports: entries } = JSON.parse(read("package.json")) as {
  readonly exports: Readonly<Record<string, unknown>>;
};
/** The examples in TypeScript; the others are one file to copy, and import nothing of ours. */
const FOLDERS = readdirSync(join(ROOT, "examples")).filter((folder) =>
  readdirSync(join(ROOT, "examples", folder)).some((file) => file.endsWith(".ts")),
);

/** The published name of an entry's source: `../../lib/middy.js` is `holdfast/middy`. */
function publishedAs(source: string): string {
  const built = ["./dist/", "./dist/cjs/"].map((directory) => JSON.stringify(source.replace("../../", directory)));
  const [entry] = Object.entries(entries).find(([, to]) => built.some((file) => JSON.stringify(to).includes(file))) ?? [];
  if (entry === undefined) throw new Error(`${source} is published under no name`);
  return `holdfast${entry.slice(1)}`;
}

/** The replacements on the page. */
function replacements(page: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...page.matchAll(/`(\.\.\/\.\.\/[\w/.]+)`\s+becomes\s+`([\w/]+)`/g)].map(([, from = "", to = ""]) => [from, to]),
  );
}

/** The sources of ours that a folder's programs import, from the root of the repository. */
function importedIn(folder: string): readonly string[] {
  const files = readdirSync(join(ROOT, "examples", folder)).filter((file) => file.endsWith(".ts"));
  const imports = files.flatMap((file) => [...read("examples", folder, file).matchAll(/from "(\.\.\/\.\.\/[^"]+)"/g)]);
  return [...new Set(imports.map(([, source = ""]) => source))];
}

describe.each(FOLDERS)("examples/%s, copied", (folder) => {
  const page = read("examples", folder, "README.md");
  const local = (source: string): boolean => source.startsWith("../../infra/local/");
  const imported = importedIn(folder);

  it("says what each import of ours becomes, and nothing else", () => {
    const published = imported.filter((source) => !local(source)).map((source) => [source, publishedAs(source)]);
    expect(published.length).toBeGreaterThan(0);
    expect(replacements(page)).toEqual(Object.fromEntries(published));
  });

  it("says so where it needs the engine on localhost, which is not published", () => {
    expect(page.includes("`../../infra/local/`")).toBe(imported.some(local));
  });
});

describe("the page on testing", () => {
  it("says the same as its example's README", () => {
    expect(replacements(read("docs/testing.md"))).toEqual(replacements(read("examples/testing/README.md")));
  });
});
