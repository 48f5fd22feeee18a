/**
 * The documents of the repository as a site, at the paths that they have there. The menu is the README's list "Where to read on", so a
 * page that is linked there is in the menu too. Beside each page stands its Markdown, and `llms.txt` lists them.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { DefaultTheme, MarkdownRenderer, SiteConfig } from "vitepress";
import { defineConfig } from "vitepress";
import { diagramName } from "../diagram-name.ts";
import { MOVED } from "../moved.ts";
import { SEARCH_OPTIONS } from "../search.ts";
import { anchorOf } from "../slug.ts";
import { exported } from "../symbols.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const SITE = "docs/site";
/** A label's paragraph, which is three tokens, and the block below it. */
const FORM_TOKENS = 4;
/** The documents that are pages. The README is for the forge: the site begins with a page of its own. */
const PAGES = /^(?:CHANGELOG\.md|CONTRIBUTING\.md|docs\/(?!site\/).*\.md|examples\/[^/]+\/README\.md|test\/e2e\/README\.md)$/;
/** Pages for those who work on holdfast. The search leaves them out: they have every word, and are nobody's answer. */
const NOT_SEARCHED = /^(?:CHANGELOG|CONTRIBUTING|docs\/decisions\/|docs\/(?:evidence|mistakes|trackers|skill\/)|test\/)/;
/** Other words for what a page is about. A comment at the page's start, which only the search reads. */
const KEYWORDS = /<!-- search: (.*?) -->/;
const ICON = readFileSync(join(ROOT, "console/page/icon.svg")).toString("base64");
/** The index of what is for one job, tool or trouble. The menu has the index alone. */
const RECIPES = "/docs/recipes";
const MENU = sections();

export default defineConfig({
  title: "holdfast",
  description: "Locks for serverless teams on AWS",
  lang: "en",
  srcDir: "../..",
  srcExclude: [
    "README.md",
    "**/node_modules/**",
    "lib/**",
    "lambda/**",
    "infra/**",
    "bin/**",
    "console/**",
    "bench/**",
    "test/!(e2e)/**",
    "test/*.md",
    ".*/**",
    "coverage/**",
  ],
  rewrites: { [`${SITE}/home.md`]: "index.md", [`${SITE}/sdk/:symbol.md`]: "docs/sdk/:symbol.md" },
  cleanUrls: true,
  head: [["link", { rel: "icon", href: `data:image/svg+xml;base64,${ICON}` }]],
  markdown: {
    anchor: { slugify: anchorOf },
    // Each colour of the code has a contrast of 4.5 at least.
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    languageAlias: { crontab: "sh" },
    config: (markdown) => [dropTestLinks, linkPagesOnly, drawDiagrams, groupForms, nameHeaders].forEach((change) => change(markdown)),
  },
  // The exports of the SDK are in the menu, so the outline of their page has its parts alone.
  transformPageData: ({ relativePath, frontmatter }) => {
    if (relativePath === "docs/sdk.md") frontmatter["outline"] = 2;
  },
  transformHtml: (html) => html.replace('<div class="VPHome"', '<div class="VPHome" role="main"'),
  themeConfig: {
    nav: MENU.map(({ text, items }) => ({ text, link: items[0]!.link })),
    sidebar: [...MENU, exports()],
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        detailedView: true,
        _render: searchedText,
        miniSearch: { searchOptions: SEARCH_OPTIONS },
      },
    },
    footer: { message: "Apache-2.0" },
  },
  buildEnd: writeMarkdown,
});

/** The sections of the README's list "Where to read on", with their pages. */
function sections(): MenuSection[] {
  const list = readFileSync(join(ROOT, "README.md"), "utf8").split("## Where to read on")[1] ?? "";
  return [...list.matchAll(/^- \*\*([^*]+)\*\*: (.*)$/gm)].map(([, text = "", links = ""]) => ({ text, items: pagesIn(links) }));
}

interface MenuSection {
  readonly text: string;
  readonly items: MenuPage[];
}

interface MenuPage {
  readonly text: string;
  readonly link: string;
  readonly collapsed?: true;
  /** Its pages, which stand in brackets after it. */
  readonly items?: MenuPage[];
}

function pagesIn(text: string): MenuPage[] {
  return [...text.matchAll(/\[([^\]]+)\]\(([^)]+)\.md\)(?: \(((?:(?:, )?\[[^\]]+\]\([^)]+\))+)\))?/g)].map(([, page = "", path, below]) => {
    const own = { text: page, link: `/${path}` };
    return below === undefined ? own : { ...own, collapsed: true, items: pagesIn(below) };
  });
}

/** Returns the part of a page that the search reads. */
function searchedText(source: string, env: { relativePath: string }, markdown: MarkdownRenderer): string {
  if (NOT_SEARCHED.test(env.relativePath)) return "";
  const html = markdown.render(source, env);
  const [, keywords] = KEYWORDS.exec(source) ?? [];
  return keywords === undefined ? html : html.replace("</h1>", `</h1><p>${keywords}</p>`);
}

/** Writes the Markdown of each page beside it, for readers that are programs, and the list of the pages as `llms.txt`: the menu's, and those of the recipes. */
function writeMarkdown({ pages, srcDir, outDir, rewrites }: SiteConfig): void {
  for (const page of pages.filter((one) => existsSync(join(srcDir, one)))) {
    const to = join(outDir, rewrites.map[page] ?? page);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(srcDir, page), to);
  }
  for (const [from, to] of Object.entries(MOVED)) writeFileSync(join(outDir, `${from}.html`), movedPage(relative(dirname(from), to)));
  const listed = MENU.map(({ text, items }) => ({ text, pages: items.flatMap((one) => [one, ...(one.items ?? [])]) }));
  const inMenu = new Set(listed.flatMap(({ pages }) => pages.map(({ link }) => link)));
  const lines = listed
    .map(({ text, pages }) => ({ text, pages: pages.flatMap((one) => [one, ...pagesBelow(one, inMenu)]) }))
    .map(({ text, pages }) => [`## ${text}`, "", ...pages.map((one) => `- [${one.text}](${one.link}.md)`), ""].join("\n"));
  const [, what] = /^\*\*(.*)$/m.exec(readFileSync(join(ROOT, "README.md"), "utf8")) ?? [];
  writeFileSync(join(outDir, "llms.txt"), `# holdfast\n\n> ${what!.replace("**", "")}\n\n${lines.join("\n")}`);
}

/** The pages that the index of recipes leads to and that the menu doesn't have. */
function pagesBelow({ link }: MenuPage, inMenu: ReadonlySet<string>): MenuPage[] {
  if (link !== RECIPES) return [];
  const pages = pagesIn(readFileSync(join(ROOT, `${RECIPES}.md`), "utf8"));
  return pages.map((one) => ({ ...one, link: join(dirname(RECIPES), one.link) })).filter((one) => !inMenu.has(one.link));
}

/** A page that sends its reader on. */
function movedPage(to: string): string {
  const goes = `<meta http-equiv="refresh" content="0; url=${to}">`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Moved</title>${goes}</head><body><main><a href="${to}">Moved</a></main></body></html>`;
}

/** The exports of the SDK, each on a page of its own. It has a link, since the theme makes a title without one a button around a button. */
function exports(): DefaultTheme.SidebarItem {
  return {
    text: "Exports",
    link: "/docs/sdk",
    collapsed: true,
    items: exported().map(({ name, page }) => ({ text: name, link: `/docs/sdk/${page}` })),
  };
}

/** A link to a test leads nowhere here, so "(test)" would be a word without a meaning. */
function dropTestLinks(markdown: MarkdownRenderer): void {
  const links = /\[test\]\([^)]*\)/.source;
  const inBrackets = new RegExp(` *\\(${links}(?:(?:,| and) ${links})*\\)`, "g");
  markdown.core.ruler.before("normalize", "drop-test-links", (state) => {
    state.src = state.src.replaceAll(inBrackets, "").replaceAll(new RegExp(`\\(${links}[:;,]? `, "g"), "(");
  });
}

/** Links to sources and folders become plain text: the site has pages only, and the repository's address is not known here. */
function linkPagesOnly(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("link-pages-only", ({ tokens, env }) => {
    for (const { children } of tokens) {
      const open: boolean[] = [];
      for (const token of children ?? []) {
        if (token.type === "link_open") open.push(isPage(token.attrGet("href") ?? "", (env as { path: string }).path));
        const keeps = token.type === "link_open" ? open.at(-1) : token.type === "link_close" ? open.pop() : true;
        if (keeps === false) [token.type, token.tag, token.nesting, token.content] = ["text", "", 0, ""];
      }
    }
  });
}

function isPage(href: string, from: string): boolean {
  if (/^(?:https?:|#)/.test(href)) return true;
  const path = decodeURIComponent(href.replace(/#.*/, ""));
  const target = path.startsWith("/") ? path.slice(1) : relative(ROOT, join(dirname(from), path));
  return [target, `${target}.md`, target.replace(/\.html$/, ".md")].some((one) => PAGES.test(one));
}

/** A diagram in Mermaid is shown as the picture that `npm run diagrams` made of it, in the reader's colours. */
function drawDiagrams(markdown: MarkdownRenderer): void {
  const otherwise = markdown.renderer.rules.fence!;
  markdown.renderer.rules.fence = (tokens, at, options, env, self) => {
    const { info, content } = tokens[at]!;
    if (info.trim() !== "mermaid") return otherwise(tokens, at, options, env, self);
    const { file, title } = diagramName(content);
    const picture = (look: string): string => {
      const path = join(ROOT, SITE, "diagrams", `${file}-${look}.svg`);
      const svg = existsSync(path) ? readFileSync(path, "utf8") : "";
      if (!svg.includes(createHash("sha256").update(content).digest("hex")))
        throw new Error(`${path} is of another text: npm run diagrams`);
      return `<img class="diagram ${look}" alt="${markdown.utils.escapeHtml(title)}" src="data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}">`;
    };
    return ["light", "dark"].map(picture).join("");
  };
}

/** An empty cell in the first row of a table is no header: it names nothing. */
function nameHeaders(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("name-headers", ({ tokens }) => {
    for (const [at, token] of tokens.entries()) {
      if (token.type === "th_open" && tokens[at + 1]?.content.trim() === "") token.tag = tokens[at + 2]!.tag = "td";
    }
  });
}

/**
 * Blocks of code that follow each other, each under a paragraph that is one bold label, are forms of the same thing, and become tabs. On a
 * forge they stay labelled blocks.
 */
function groupForms(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("group-forms", (state) => {
    const { tokens } = state;
    const labelAt = (at: number): string | undefined => {
      const [open, text, close, fence] = tokens.slice(at, at + FORM_TOKENS);
      if (open?.type !== "paragraph_open" || close?.type !== "paragraph_close" || fence?.type !== "fence") return undefined;
      return /^\*\*([^*]+)\*\*$/.exec(text?.content ?? "")?.[1];
    };
    const grouped: typeof tokens = [];
    for (let at = 0; at < tokens.length;) {
      const forms: typeof tokens = [];
      for (let label = labelAt(at); label !== undefined; label = labelAt(at)) {
        const fence = tokens[at + FORM_TOKENS - 1]!;
        fence.info += ` [${label}]`;
        forms.push(fence);
        at += FORM_TOKENS;
      }
      if (forms.length > 0)
        grouped.push(
          new state.Token("container_code-group_open", "div", 1),
          ...forms,
          new state.Token("container_code-group_close", "div", -1),
        );
      else grouped.push(tokens[at++]!);
    }
    state.tokens = grouped;
  });
}
