/** The diagrams of docs/, in Mermaid: the site shows pictures of them, which `npm run diagrams` draws. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { diagramName } from "../../docs/site/diagram-name.js";
import { allFiles, ROOT } from "../tidy/tree.js";

const DIAGRAMS = allFiles()
  .filter(({ path }) => path.endsWith(".md"))
  .flatMap(({ path, text }) => [...text.matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)].map(([, source = ""]) => ({ path, source })));

/** True if the picture was drawn of this text. */
function isDrawn(source: string, look: string): boolean {
  const picture = join(ROOT, "docs/site/diagrams", `${diagramName(source).file}-${look}.svg`);
  const digest = createHash("sha256").update(source).digest("hex");
  return existsSync(picture) && readFileSync(picture, "utf8").includes(digest);
}

describe("the diagrams", () => {
  it("are six or more, all in docs/, and have names of their own", () => {
    expect(DIAGRAMS.length).toBeGreaterThanOrEqual(6);
    expect(DIAGRAMS.filter(({ path }) => !/^docs\/[^/]+\.md$/.test(path))).toEqual([]);
    expect(new Set(DIAGRAMS.map(({ source }) => diagramName(source).file)).size).toBe(DIAGRAMS.length);
  });

  it.each(["light", "dark"])("have a picture of their present text: %s", (look) => {
    expect(DIAGRAMS.filter(({ source }) => !isDrawn(source, look)).map(({ source }) => diagramName(source).title)).toEqual([]);
  });
});
