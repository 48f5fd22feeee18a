/** The site that `npm run site` builds. It needs the packages of docs/site: `npm ci --prefix docs/site`. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { SEARCH_OPTIONS } from "../../docs/site/search.js";
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

  const search = (words: string): readonly string[] => index.search(words, SEARCH_OPTIONS).map(({ id }) => id);

  it.each([
    ["namespace", "docs/choosing-keys"],
    ["limit concurrency", "docs/recipes/limit-concurrency"],
    ["webhook", "docs/recipes/webhooks-in-order"],
    ["OAuth", "docs/recipes/refresh-token"],
    ["migration", "docs/recipes/migrate-once"],
    ["lock expired", "docs/lease-lost"],
    ["CommonJS", "docs/install"],
    ["Python", "docs/over-http"],
    ["timeout", "docs/waiting"],
    ["costs", "docs/costs"],
    ["double payment", "docs/recipes/double-payments"],
    ["cron", "docs/recipes/one-cron"],
    ["leader election", "docs/recipes/one-leader"],
    ["import a file", "docs/recipes/import-once"],
    ["durable function", "docs/durable-functions"],
    ["state machine", "docs/step-functions"],
    ["one deploy", "docs/recipes/one-deploy"],
    ["Jest", "docs/testing"],
    ["fencing", "docs/fencing-tokens"],
    ["Terraform", "docs/without-the-cdk"],
    ["stuck lock", "docs/operating"],
    ["dlq", "docs/idempotency"],
    ["ReportBatchItemFailures", "docs/idempotency"],
    ["mysql", "docs/comparison"],
    ["debounce", "docs/limits"],
    ["outbox", "docs/do-you-need-a-lock"],
    ["mutex", "docs/choosing-a-lock"],
    ["semaphore", "docs/choosing-a-lock"],
  ])("finds %s first on %s", (words, page) => {
    const [first] = search(words);
    expect(first).toContain(`/${page}#`);
  });

  it.each([
    ["exactly once", "docs/idempotency"],
    ["rate limit", "docs/limits"],
  ])("finds %s among the first five on %s", (words, page) => {
    expect(search(words).slice(0, 5).join(" ")).toContain(`/${page}#`);
  });

  it.each(["namespace", "CommonJS", "Python"])("finds no page for those who work on holdfast, for %s", (words) => {
    expect(search(words).filter((id) => /decisions|CHANGELOG|CONTRIBUTING|\/test\//.test(id))).toEqual([]);
  });

  it("finds nothing for a word that no page has: the control", () => {
    expect(index.search("xylophone", {})).toEqual([]);
  });

  it("has the Markdown of each page beside it, and lists the menu's in llms.txt", async () => {
    const list = await readFile(join(DIST, "llms.txt"), "utf8");
    const pages = [...list.matchAll(/\]\(\/([^)]+)\)/g)].map(([, page = ""]) => page);
    expect(pages.length).toBeGreaterThan(35);
    expect(pages.filter((page) => !existsSync(join(DIST, page)) || !existsSync(join(DIST, page.replace(/\.md$/, ".html"))))).toEqual([]);
    expect(await readFile(join(DIST, "docs/waiting.md"), "utf8")).toBe(await readFile(join(ROOT, "docs/waiting.md"), "utf8"));
  });

  it("asks what you want to do: eight cards, each on a recipe", async () => {
    const home = await readFile(join(DIST, "index.html"), "utf8");
    expect(new Set([...home.matchAll(/href="\/docs\/recipes\/([\w-]+)"/g)].map(([, recipe]) => recipe)).size).toBe(8);
  });

  it.each(["faq", "threat-model"])("says no (test) that leads nowhere: %s", async (name) => {
    expect(await readFile(join(DIST, `docs/${name}.html`), "utf8")).not.toMatch(/\(tests?\b/);
  });

  it("has a page for each export, and shows the diagrams as pictures", async () => {
    expect((await readdir(join(DIST, "docs/sdk"))).length).toBeGreaterThan(90);
    expect(await readFile(join(DIST, "docs/waiting.html"), "utf8")).toMatch(/<img class="diagram light" alt="The queue"/);
  });

  it("has labelled blocks of the same thing as tabs, and leaves other blocks alone", async () => {
    const [page, other] = await Promise.all(["start-here", "waiting"].map((name) => readFile(join(DIST, `docs/${name}.html`), "utf8")));
    expect([...page!.matchAll(/<label data-title="([^"]+)"/g)].map(([, label]) => label)).toEqual([
      "SDK",
      "Table",
      "Lambda",
      "Unit test",
      "HTTP",
    ]);
    expect(other).not.toContain("vp-code-group");
  });

  it("runs no script from elsewhere", async () => {
    const page = await readFile(join(DIST, "index.html"), "utf8");
    expect([...page.matchAll(/(?:src|href)="(https?:)?\/\//g)]).toEqual([]);
  });
});
