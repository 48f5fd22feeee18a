/**
 * The documents of the repository as a site, at the paths that they have there. The navigation is the README's table of pages, so a page
 * that is linked there is in the site's menu too.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { DefaultTheme, MarkdownRenderer } from "vitepress";
import { defineConfig } from "vitepress";
import { diagramName } from "../diagram-name.ts";
import { exported } from "../symbols.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const SITE = "docs/site";
/** A label's paragraph, which is three tokens, and the block below it. */
const FORM_TOKENS = 4;
/** The documents that are pages. */
const PAGES = /^(?:README\.md|CHANGELOG\.md|CONTRIBUTING\.md|docs\/(?!site\/).*\.md|examples\/[^/]+\/README\.md|test\/e2e\/README\.md)$/;

export default defineConfig({
  title: "holdfast",
  description: "Locks for serverless teams on AWS",
  lang: "en",
  srcDir: "../..",
  srcExclude: [
    "**/node_modules/**",
    "lib/**",
    "lambda/**",
    "infra/**",
    "bin/**",
    "bench/**",
    "test/!(e2e)/**",
    "test/*.md",
    ".*/**",
    "coverage/**",
  ],
  rewrites: { "README.md": "index.md", [`${SITE}/sdk/:symbol.md`]: "docs/sdk/:symbol.md" },
  cleanUrls: true,
  head: [["link", { rel: "icon", href: "data:," }]],
  markdown: { config: (markdown) => [linkPagesOnly, drawDiagrams, groupForms].forEach((change) => change(markdown)) },
  themeConfig: {
    nav: [
      { text: "Start here", link: "/docs/start-here" },
      { text: "SDK", link: "/docs/sdk" },
      { text: "HTTP API", link: "/docs/http-api" },
    ],
    sidebar: [...sections(), exports()],
    outline: [2, 3],
    search: {
      provider: "local",
      options: { detailedView: true, miniSearch: { searchOptions: { prefix: true, fuzzy: 0.1, boost: { title: 4, text: 2, titles: 1 } } } },
    },
    footer: { message: "Apache-2.0" },
  },
});

/** The sections of the README's table "Where to read on", with their pages. */
function sections(): DefaultTheme.SidebarItem[] {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const table = readme.split("## Where to read on")[1]?.split(/^## /m)[0] ?? "";
  const rows = [...table.matchAll(/^\| (\S[^|]*?) *\| (.*) \|$/gm)].slice(2);
  return rows.map(([, text = "", links = ""]) => ({
    text: capital(text),
    items: [...links.matchAll(/\[([^\]]+)\]\(([^)]+)\.md\)/g)].map(([, page = "", path]) => ({ text: capital(page), link: `/${path}` })),
  }));
}

/** The exports of the SDK, each on a page of its own. */
function exports(): DefaultTheme.SidebarItem {
  return { text: "Exports", collapsed: true, items: exported().map(({ name, page }) => ({ text: name, link: `/docs/sdk/${page}` })) };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
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
  return [target, `${target}.md`, target === "" ? "README.md" : "", target.replace(/\.html$/, ".md")].some((one) => PAGES.test(one));
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
