/** The site that `npm run site` builds. It needs the packages of docs/site: `npm ci --prefix docs/site`. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, posix } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MOVED } from "../../docs/site/moved.js";
import { SEARCH_OPTIONS } from "../../docs/site/search.js";
import { faultsOf } from "../support/axe.js";
import { CHROMIUM, startChromium } from "../support/chromium.js";
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

/** Returns the contrast of two colours, by WCAG 2. */
function contrast(one: string, other: string): number {
  const light = (color: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [bright = 0, dark = 0] = [light(one), light(other)].sort((a, b) => b - a);
  return (bright + 0.05) / (dark + 0.05);
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
    ["CommonJS", "docs/start-here"],
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
    ["how to install", "docs/start-here"],
    ["delete a lock", "docs/faq"],
  ])("finds %s first on %s", (words, page) => {
    const [first] = search(words);
    expect(first).toContain(`/${page}#`);
  });

  it("finds exactly once among the first five on docs/idempotency", () => {
    expect(search("exactly once").slice(0, 5).join(" ")).toContain("/docs/idempotency#");
  });

  it.each([
    ["migrate", "docs/recipes/migrate-once"],
    ["stale lock", "docs/operating"],
    ["lambda timeout", "docs/heartbeats-and-lambda"],
    ["force unlock", "docs/operating"],
    ["kubernetes", "docs/shutting-down"],
    ["vercel", "docs/web-frameworks"],
    ["nextjs", "docs/web-frameworks"],
    ["unauthorized", "docs/errors"],
    ["AccessDenied", "docs/errors"],
    ["uninstall", "docs/operating"],
    ["localstack", "docs/testing"],
    ["local development", "docs/start-here"],
    ["deadlock", "docs/choosing-a-lock"],
    ["terraform", "docs/without-the-cdk"],
    ["python", "docs/python"],
    ["leader", "docs/recipes/one-leader"],
    ["webhook twice", "docs/idempotency"],
    ["cron once", "docs/recipes/one-cron"],
    ["rate limit", "docs/limits"],
    ["throttled", "docs/operating"],
    ["cost", "docs/costs"],
    ["fencing", "docs/fencing-tokens"],
    ["queue", "docs/waiting"],
    ["semaphore", "docs/choosing-a-lock"],
    ["multi region", "docs/surviving-a-region"],
    ["unit test", "docs/testing"],
    ["java", "docs/java"],
    ["express", "docs/web-frameworks"],
    ["heartbeat", "docs/heartbeats-and-lambda"],
    ["idempotency", "docs/idempotency"],
    ["step functions", "docs/step-functions"],
    ["tenants", "docs/choosing-keys"],
  ])("finds for the job %s, among the first three, %s", (words, page) => {
    expect(search(words).slice(0, 3).join(" ")).toContain(`/${page}#`);
  });

  it("takes no word of six letters for another one, as `cause` for `close`; control: a long one with one wrong letter is found", () => {
    const { fuzzy } = SEARCH_OPTIONS;
    expect(["close", "queues"].map(fuzzy)).toEqual([false, false]);
    expect(search("idempotancy").join(" ")).toContain("/docs/idempotency#");
  });

  it.each(["namespace", "CommonJS", "Python"])("finds no page for those who work on holdfast, for %s", (words) => {
    expect(search(words).filter((id) => /decisions|CHANGELOG|CONTRIBUTING|\/test\//.test(id))).toEqual([]);
  });

  it("finds nothing for a word that no page has: the control", () => {
    expect(index.search("xylophone", {})).toEqual([]);
  });

  it("has the Markdown of each page beside it, and lists all for users in llms.txt", async () => {
    const list = await readFile(join(DIST, "llms.txt"), "utf8");
    const pages = [...list.matchAll(/\]\(\/([^)]+)\)/g)].map(([, page = ""]) => page);
    expect(pages.filter((page) => !existsSync(join(DIST, page)) || !existsSync(join(DIST, page.replace(/\.md$/, ".html"))))).toEqual([]);
    const written = ["docs", "docs/recipes"].map(async (folder) =>
      (await readdir(join(ROOT, folder))).filter((file) => file.endsWith(".md")).map((file) => `${folder}/${file}`),
    );
    expect(pages.filter((page) => page.startsWith("docs/")).toSorted()).toEqual((await Promise.all(written)).flat().toSorted());
    expect(await readFile(join(DIST, "docs/waiting.md"), "utf8")).toBe(await readFile(join(ROOT, "docs/waiting.md"), "utf8"));
  });

  it("has fewer than 35 pages for users in its menu: those for one job, tool or trouble are in an index", async () => {
    const page = await readFile(join(DIST, "docs/waiting.html"), "utf8");
    const [menu = ""] = /<nav[^>]*id="VPSidebarNav"[\s\S]*?<\/nav>/.exec(page) ?? [];
    const [forUsers = ""] = menu.split(">Contributing<");
    const pages = new Set([...forUsers.matchAll(/href="([^"]+)"/g)].map(([, href = ""]) => href));
    expect(pages).toContain("/docs/recipes");
    expect(pages.size).toBeGreaterThan(25);
    expect(pages.size).toBeLessThan(35);
  });

  it("has what is about work on holdfast in the menu's last section", async () => {
    const [, last = ""] = (await readFile(join(DIST, "llms.txt"), "utf8")).split("## Contributing");
    expect([...last.matchAll(/\(\/([^)]+)\.md\)/g)].map(([, page]) => page)).toEqual(
      expect.arrayContaining(["docs/mistakes", "docs/trackers", "docs/evidence"]),
    );
    expect(last).not.toContain("##");
  });

  it.each(Object.entries(MOVED))("sends on whoever comes by %s", async (from, to) => {
    // That the heading is there is asserted of all links below.
    expect(await readFile(join(DIST, `${from}.html`), "utf8")).toContain(`content="0; url=${posix.relative(posix.dirname(from), to)}"`);
    expect(existsSync(join(ROOT, `${from}.md`))).toBe(false);
  });

  it("opens with the trouble that one has, and with the tour", async () => {
    const home = await readFile(join(DIST, "index.html"), "utf8");
    expect(new Set([...home.matchAll(/href="\/docs\/recipes\/([\w-]+)"/g)].map(([, recipe]) => recipe)).size).toBe(8);
    expect(home).toMatch(
      /An order is paid twice[\s\S]*Stock goes below zero[\s\S]*<h2 id="the-tour"[\s\S]*<img[^>]*tour[\s\S]*<h2 id="first-lines"/,
    );
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

  describe("as it is built", () => {
    let built: ReadonlyMap<string, string>;
    beforeAll(async () => {
      const files = (await readdir(DIST, { recursive: true })).filter((file) => file.endsWith(".html"));
      built = new Map(await Promise.all(files.map(async (file) => [`/${file}`, await readFile(join(DIST, file), "utf8")] as const)));
    });
    const faults = (of: (html: string, page: string) => readonly string[]): readonly string[] =>
      [...built].flatMap(([page, html]) => of(html, page).map((fault) => `${page}: ${fault}`));

    it("has the heading of each link to one", () => {
      const idsOf = (page: string): ReadonlySet<string> =>
        new Set([...(built.get(page) ?? "").matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id));
      const dead = faults((html, from) =>
        [...html.matchAll(/href="([^"#:]*)#([^"]+)"/g)].flatMap(([, path = "", anchor = ""]) => {
          const target = path === "" ? from : `${posix.join(posix.dirname(from), path)}.html`;
          return anchor === "VPContent" || idsOf(target).has(decodeURIComponent(anchor)) ? [] : [`${path}#${anchor}`];
        }),
      );
      expect(dead).toEqual([]);
    });

    it("has no header of a table without a name, and one main landmark on each page", () => {
      expect(faults((html) => html.match(/<th[^>]*><\/th>/g) ?? [])).toEqual([]);
      expect(
        faults((html) => ((html.match(/<main\b|role="main"/g) ?? []).length === 1 ? [] : ["main"])).filter(
          (one) => !one.startsWith("/404"),
        ),
      ).toEqual([]);
    });

    it("has code of a contrast of 4.5 at least on the blocks' background, light and dark", () => {
      const BACKGROUND = { light: "#f6f6f7", dark: "#161618" } as const;
      for (const look of ["light", "dark"] as const) {
        const colors = new Set(
          [...built.values()].flatMap((html) =>
            [...html.matchAll(new RegExp(`--shiki-${look}:(#[0-9A-Fa-f]{6})`, "g"))].map(([, color = ""]) => color),
          ),
        );
        expect(colors.size).toBeGreaterThan(4);
        expect([...colors].filter((color) => contrast(color, BACKGROUND[look]) < 4.5)).toEqual([]);
      }
    });
  });

  describe.skipIf(CHROMIUM === undefined)("in Chromium (skipped without one on the path)", () => {
    const SITE_URL = "http://localhost";
    let browser: Browser;
    beforeAll(async () => {
      browser = await startChromium();
    });
    afterAll(() => browser.close());

    /** Returns a page that gets the files as from a host with clean URLs. */
    const served = async (options: BrowserContextOptions = {}): Promise<Page> => {
      const page = await browser.newPage(options);
      await page.route(`${SITE_URL}/**`, (route) => {
        const pathname = decodeURIComponent(new URL(route.request().url()).pathname);
        const file = pathname === "/" ? "index.html" : pathname;
        return route.fulfill({ path: join(DIST, extname(file) === "" ? `${file}.html` : file) });
      });
      return page;
    };

    it("loads the index of the search as its box opens, and says so until it is there", async () => {
      const page = await served();
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      let asked = 0;
      await page.route(/localSearchIndexroot/, async (route) => {
        asked++;
        await held;
        return route.fallback();
      });
      await page.goto(SITE_URL, { waitUntil: "networkidle" });
      expect(asked).toBe(0);
      await page.locator("#local-search button").click();
      await page.locator("#localsearch-input").fill("semaphore");
      const said = page.getByRole("status");
      await said.getByText("The index of the search is loading…").waitFor();
      expect([asked, await page.locator(".results li").count()]).toEqual([1, 0]);
      release();
      await page.locator(".results li").first().waitFor();
      await said.waitFor({ state: "hidden" });
      await page.close();
    });

    it("says that the index of the search could not be loaded", async () => {
      const page = await served();
      await page.route(/localSearchIndexroot/, (route) => route.abort());
      await page.goto(SITE_URL, { waitUntil: "networkidle" });
      await page.locator("#local-search button").click();
      await page.getByRole("status").getByText("The index of the search could not be loaded. Load the page again.").waitFor();
      await page.close();
    });

    /** The home page, tables, code, the largest page, figures, pictures, and an index. */
    const SEEN = ["/", "/docs/errors", "/docs/start-here", "/docs/sdk", "/docs/costs", "/docs/protocol", "/docs/console", "/docs/recipes"];
    const LOOKS = ["light", "dark"] as const;
    const WIDTHS_PX = [1280, 390];
    it.each(SEEN.flatMap((path) => LOOKS.flatMap((look) => WIDTHS_PX.map((width) => [path, look, width] as const))))(
      "breaks no rule of axe: %s, %s, %i px wide",
      async (path, look, width) => {
        const page = await served({ colorScheme: look, viewport: { width, height: 900 }, reducedMotion: "reduce" });
        await page.goto(SITE_URL + path, { waitUntil: "networkidle" });
        expect(await page.locator("html.dark").count()).toBe(look === "dark" ? 1 : 0);
        expect(await faultsOf(page)).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
        await page.close();
      },
    );
  });

  it("runs no script from elsewhere", async () => {
    const page = await readFile(join(DIST, "index.html"), "utf8");
    expect([...page.matchAll(/(?:src|href)="(https?:)?\/\//g)]).toEqual([]);
  });
});
