/** The documents name only existing commands. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type SourceText, ROOT, allFiles } from "./tree.js";

const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };

function missing({ path, text }: SourceText): readonly string[] {
  const named = [...text.matchAll(/\bnpm run ([a-z][\w:]*)/g)].map(([, name = ""]) => name);
  return named.filter((name) => !(name in scripts)).map((name) => `${path}: npm run ${name}`);
}

describe("npm scripts", () => {
  it("named in a document exist", () => {
    expect(
      allFiles()
        .filter(({ path }) => path.endsWith(".md"))
        .flatMap(missing),
    ).toEqual([]);
  });
});
