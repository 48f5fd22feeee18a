/** Links of the documents: each leads to a file of the repository, and to a heading that the file has; and the tests that they cite. */
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { anchorOf } from "../../docs/site/slug.js";
import { type SourceText, allFiles } from "../tidy/tree.js";
import { citedTests, isThere } from "./cited-tests.js";
import { mayLinkTo } from "./generated.js";

/** Templates of pages in docs/: their links start there, and the tests of the reference check them. */
const TEMPLATES = ["test/docs/sdk-page.md", "test/docs/http-api-page.md"];
const DOCUMENTS = allFiles().filter(({ path }) => path.endsWith(".md") && !TEMPLATES.includes(path));

/** The anchors of a page's headings. */
function anchorsOf(page: string): readonly string[] {
  const headings = [...page.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) => anchorOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")));
}

function deadLinksIn({ path, text }: SourceText): readonly string[] {
  const links = [...text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "").matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)/g)].map(([, link = ""]) => link);
  const dead = links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [file = "", anchor] = link.split("#");
    // The site's first page is at its root, so it names pages by their address there.
    const target = file === "" ? path : file.startsWith("/") ? `${file.slice(1)}.md` : join(dirname(path), file);
    // The site has pages of files, and none of a folder.
    if (target !== path && (!mayLinkTo(target) || (path.startsWith("docs/") && target.endsWith("/")))) return true;
    const page = target === path ? { text } : DOCUMENTS.find((one) => one.path === target);
    return anchor !== undefined && page !== undefined && !anchorsOf(page.text).includes(anchor);
  });
  return dead.map((link) => `${path}: ${link}`);
}

describe("links in documents", () => {
  it("name what they lead to, not its file", () => {
    const named = ({ path, text }: SourceText) => [...text.matchAll(/\[`?[\w./-]+\.md`?\]\(/g)].map(([link]) => `${path}: ${link}`);
    expect(DOCUMENTS.flatMap(named)).toEqual([]);
    expect(named({ path: "a.md", text: "[the evidence](docs/evidence.md), [docs/evidence.md](docs/evidence.md)" })).toHaveLength(1); // The control.
  });

  it("lead to a file, and to a heading of it", () => {
    expect(DOCUMENTS.length).toBeGreaterThan(30);
    expect(DOCUMENTS.flatMap(deadLinksIn)).toEqual([]);
  });

  it.each(["[none](none.md)", "[none](docs/faq.md#no-such-question)", "# Here\n[none](#there)"])("control: %s is reported", (text) => {
    expect(deadLinksIn({ path: "a.md", text })).toHaveLength(1);
  });
});

describe("tests that documents cite", () => {
  const cited = DOCUMENTS.flatMap(({ text }) => citedTests(text));

  it("are there, by their titles", () => {
    expect(cited.length).toBeGreaterThan(100);
    expect(cited.filter((test) => !isThere(test))).toEqual([]);
  });

  it("are named by each row and each item of a list of docs/upgrading.md", () => {
    const { text = "" } = DOCUMENTS.find(({ path }) => path === "docs/upgrading.md") ?? {};
    const lines = text.split("\n").filter((line) => /^(?:\d+\.|-|\| (?!-|Number)) /.test(line));
    expect(lines.length).toBeGreaterThan(15);
    expect(lines.filter((line) => citedTests(line).length === 0)).toEqual([]);
  });
});
