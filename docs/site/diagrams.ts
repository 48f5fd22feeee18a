/**
 * `npm run diagrams`: draws the Mermaid diagrams of docs/ in Chromium, light and dark, into docs/site/diagrams/. Each picture names the digest
 * of its text, so that a test sees one that is of another text. Needs `chromium` on the path, and `npm ci --prefix docs/site`.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { diagramName } from "./diagram-name.ts";

const SITE = fileURLToPath(new URL(".", import.meta.url));
const DOCS = join(SITE, "..");
const LOOKS = { light: "neutral", dark: "dark" } as const;

const sources = readdirSync(DOCS)
  .filter((name) => name.endsWith(".md"))
  .flatMap((name) =>
    [...readFileSync(join(DOCS, name), "utf8").matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)].map(([, source = ""]) => source),
  );

const script = readFileSync(join(SITE, "node_modules/mermaid/dist/mermaid.min.js"), "utf8").replaceAll("</script", "<\\/script");
const folder = mkdtempSync(join(tmpdir(), "holdfast-diagrams-"));
rmSync(join(SITE, "diagrams"), { recursive: true, force: true });
mkdirSync(join(SITE, "diagrams"));
for (const [look, theme] of Object.entries(LOOKS)) for (const source of sources) draw(source, look, theme);
rmSync(folder, { recursive: true });
console.log(`${sources.length} diagrams`);

function draw(source: string, look: string, theme: string): void {
  const { file } = diagramName(source);
  // A fixed seed and names of our own make the same picture each time.
  const options = {
    theme,
    startOnLoad: false,
    deterministicIds: true,
    deterministicIDSeed: file,
    fontFamily: "system-ui, sans-serif",
    htmlLabels: false,
    flowchart: { htmlLabels: false },
  };
  const program = `mermaid.initialize(${JSON.stringify(options)});
    mermaid.render(${JSON.stringify(file)}, ${JSON.stringify(source)}).then(
      ({ svg }) => { document.body.textContent = "<<" + btoa(unescape(encodeURIComponent(svg))) + ">>"; },
      (error) => { document.body.textContent = "<!" + error + "!>"; });`;
  const page = join(folder, "page.html");
  writeFileSync(page, `<!doctype html><meta charset="utf-8"><body></body><script>${script}</script><script>${program}</script>`);
  const args = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom", `file://${page}`];
  const dom = execFileSync("chromium", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 2 ** 26 });
  const [, drawn] = /&lt;&lt;([\w+/=]+)&gt;&gt;/.exec(dom) ?? [];
  if (drawn === undefined) throw new Error(`${file}: ${/&lt;!([\s\S]*?)!&gt;/.exec(dom)?.[1] ?? "no picture"}`);
  const svg = Buffer.from(drawn, "base64").toString("utf8");
  const digest = createHash("sha256").update(source).digest("hex");
  writeFileSync(join(SITE, "diagrams", `${file}-${look}.svg`), `${svg}<!-- ${digest} -->\n`);
}
