/** The site that `npm run site` builds. It needs the packages of docs/site: `npm ci --prefix docs/site`. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";

const SITE = join(ROOT, "docs/site");
const DIST = join(SITE, ".vitepress/dist");
const HAS_PACKAGES = existsSync(join(SITE, "node_modules/vitepress"));

/** The part of minisearch that the site's search uses. */
interface MiniSearch {
  search(words: string, options: object): readonly { readonly id: string }[];
}
interface Loader {
  loadJSON(json: string, options: object): MiniSearch;
}

async function searchIndex(): Promise<MiniSearch> {
  const chunks = join(DIST, "assets/chunks");
  const [name] = (await readdir(chunks)).filter((file) => file.includes("localSearchIndex"));
  const { default: json } = (await import(pathToFileURL(join(chunks, name!)).href)) as { default: string };
  const { default: loader } = (await import(pathToFileURL(join(SITE, "node_modules/minisearch/dist/es/index.js")).href)) as {
    default: Loader;
  };
  return loader.loadJSON(json, { fields: ["title", "titles", "text"], storeFields: ["title", "titles"] });
}

describe.skipIf(!HAS_PACKAGES)("the site, if `npm ci --prefix docs/site` installed its builder", () => {
  let index: MiniSearch;
  // Its builder fails for a link that leads nowhere.
  beforeAll(async () => {
    await promisify(execFile)("npm", ["run", "site"], { cwd: ROOT, maxBuffer: 2 ** 26 });
    index = await searchIndex();
  }, 300_000);

  it.each([
    ["namespace", "docs/into-your-account"],
    ["Jest", "docs/testing"],
    ["CommonJS", "decisions/021-node-loads-one-copy"],
    ["fencing", "docs/fencing-tokens"],
    ["lock expired", "docs/errors"],
    ["exactly once", "docs/idempotency"],
    ["Terraform", "docs/into-your-account"],
    ["costs", "docs/costs"],
  ])("finds %s among the first five, on %s", (words, page) => {
    const found = index.search(words, { prefix: true, fuzzy: 0.1, boost: { title: 4, text: 2, titles: 1 } }).slice(0, 5);
    expect(found.map(({ id }) => id).join(" ")).toContain(page);
  });

  it("finds nothing for a word that no page has: the control", () => {
    expect(index.search("xylophone", {})).toEqual([]);
  });

  it("has a page for each export, and shows the diagrams as pictures", async () => {
    expect((await readdir(join(DIST, "docs/sdk"))).length).toBeGreaterThan(90);
    expect(await readFile(join(DIST, "docs/waiting.html"), "utf8")).toMatch(/<img class="diagram light" alt="The queue"/);
  });

  it("has labelled blocks of the same thing as tabs, and leaves other blocks alone", async () => {
    const [page, other] = await Promise.all(["start-here", "waiting"].map((name) => readFile(join(DIST, `docs/${name}.html`), "utf8")));
    expect([...page!.matchAll(/<label data-title="([^"]+)"/g)].map(([, label]) => label)).toEqual(["SDK", "Table", "Unit test", "HTTP"]);
    expect(other).not.toContain("vp-code-group");
  });

  it("runs no script from elsewhere", async () => {
    const page = await readFile(join(DIST, "index.html"), "utf8");
    expect([...page.matchAll(/(?:src|href)="(https?:)?\/\//g)]).toEqual([]);
  });
});
