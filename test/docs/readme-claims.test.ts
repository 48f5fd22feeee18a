/**
 * The claims of the README, and of the pages that a newcomer opens first, about the code beside them: figures, commands, sizes and the map
 * of the tree match the code.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, RETENTION_MIN_MS, takeoverMarginMs } from "../../lib/core/limits.js";
import { allFiles, ROOT } from "../tidy/tree.js";
import { oneLine } from "./generated.js";
import { blocksUnder, docsPage, README } from "./readme.js";

/** The heading of the README's first screen, with its picture. */
const TITLE = /^# (.*)$/m.exec(README)?.[1] ?? "";
const HOUR_MS = 3_600_000;
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const { name, version, scripts, engines, license, peerDependencies } = JSON.parse(read("package.json")) as {
  name: string;
  version: string;
  peerDependencies: Record<string, string>;
  scripts: Record<string, string>;
  engines: { node: string };
  license: string;
};

const GUARANTEES = oneLine(docsPage("guarantees"));
const CONTRIBUTING = read("CONTRIBUTING.md");

describe("the figures of the first pages", () => {
  /** The takeover margin: a fixed part, and a share of the lease's length. */
  const fixedMs = takeoverMarginMs(0);
  const share = (takeoverMarginMs(LIMITS.leaseMaxMs) - fixedMs) / LIMITS.leaseMaxMs;
  const percent = (part: number): string => `${Number((part * 100).toPrecision(6))} %`;
  const devPort = /DEV_PORT = (\d+)/.exec(read("bin/serve/commands.ts"))?.[1];

  it.each([
    ["E", GUARANTEES, `clocks is within ${DEFAULTS.clockErrorMs} ms of true time`],
    ["ρ", GUARANTEES, `The rate of a client's clock is off by at most ${percent(DEFAULTS.clockRateError)}`],
    [
      "the longest stall, which is the shortest retention",
      GUARANTEES,
      "No conditional write lands later than an hour after its clock was read",
      RETENTION_MIN_MS === HOUR_MS,
    ],
    [
      "the takeover margin, but for its rounding up",
      GUARANTEES,
      `after a margin of ${Math.floor(fixedMs / 1000)} s + ${percent(share)} of the lease`,
      fixedMs % 1000 <= 1,
    ],
    ["retention", GUARANTEES, `a key that nobody has used for ${DEFAULTS.retentionMs / HOUR_MS} hours goes`],
    ["the port", README, `export HOLDFAST_URL=http://127.0.0.1:${devPort}`],
    ["the port", docsPage("over-http"), `URL=http://127.0.0.1:${devPort}`],
    [
      "the port of npm start",
      docsPage("over-http"),
      `on a DynamoDB engine, at \`http://127.0.0.1:${/DEFAULT_PORT = (\d+)/.exec(read("infra/local/start.ts"))?.[1]}\``,
    ],
    ["Node's version", README, `You need Node ${engines.node.replace(">=", "")} or newer`],
    ["the license", README, `how a change is made. ${license}.`],
  ])("say %s as the code has it", (_what, page, sentence, alsoTrue = true) => {
    expect(page).toContain(sentence);
    expect(alsoTrue).toBe(true);
  });

  it("say what a million locks costs at the least as the page of costs does", () => {
    const [, least] = /from \$([\d.]+) for a million short locks/.exec(README) ?? [];
    expect(docsPage("costs")).toMatch(new RegExp(`^\\| nobody else wants it .*\\$${least} +\\|$`, "m"));
  });
});

describe("what the README says before all else", () => {
  const [top = ""] = README.split("\n## ");
  /** The size of a page that is read, and not skimmed. */
  const MAX_BYTES = 9 * 1024;

  it.each(["**Status: preview.**", "Not yet run on AWS, not yet on npm."])("is, once: %s", (sentence) => {
    expect(top).toContain(sentence);
    expect(README.split(sentence)).toHaveLength(2);
  });

  it("is code, then commands, then the moving picture, and the whole is short", () => {
    const places = ["withLock(", "runOnce(", "npm run demo", "npx holdfast dev", "tour.svg", "docs/start-here.md"].map((one) =>
      top.indexOf(one),
    );
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(places[0]).toBeGreaterThan(0);
    expect(Buffer.byteLength(README)).toBeLessThan(MAX_BYTES);
  });

  it("is said on the pages that install it too: from what npm pack makes, by its version", () => {
    const tarball = `npm install ./${name}-${version}.tgz`;
    const pages = [README, ...["install", "start-here", "into-your-account"].map(docsPage)];
    expect(pages.filter((page) => !page.includes(tarball) || !/not (yet )?on npm/.test(page))).toEqual([]);
    expect(pages.filter((page) => /npm install (?:-\S+ )*holdfast/.test(page))).toEqual([]);
  });

  it("and each entry's packages are its peers", () => {
    const [, said = ""] = /need nothing else\. (Other entry points need extra packages: [^\n]*)/.exec(docsPage("install")) ?? [];
    const named = [...said.matchAll(/`(@?[\w-]+(?:\/[\w-]+)?)`/g)].map(([, one]) => one);
    expect(named.toSorted()).toEqual(Object.keys(peerDependencies).toSorted());
    expect(docsPage("on-the-table")).toContain("`npm install @aws-sdk/client-dynamodb @aws-sdk/lib-dynamodb`");
  });
});

describe("the first commands", () => {
  /** Those of CONTRIBUTING that a reader tries first. */
  const TASKS = ["npm start", "npm test", "npm run sim", "npm run check", "npm run synth"];
  const lines = blocksUnder(TITLE, "sh").flatMap((block) => block.split("\n"));
  const commands = [...new Set([...lines.map((line) => line.replace(/#.*/, "").trim()), ...TASKS])];
  /** Commands that .ci/run doesn't run itself, and the tests that do. For the demo, the test runs a smaller one. */
  const ELSEWHERE = new Map([
    ["npm start", "test/docs/readme.slow.test.ts"],
    ["npx holdfast dev", "test/docs/guides-start-here.slow.test.ts"],
  ]);

  it.each(TASKS)("%s is in CONTRIBUTING", (command) => expect(CONTRIBUTING).toContain(`\`${command}\``));

  it.each(commands)("%s is a script of package.json, npm's own, or ours", (command) => {
    const [, script] = /^npm (?:run )?([\w:]+)/.exec(command) ?? [];
    expect(["ci", "npx holdfast dev", ...Object.keys(scripts)]).toContain(script ?? command);
  });

  it.each(commands)("%s is run before a change is taken", (command) => {
    const elsewhere = ELSEWHERE.get(command);
    if (elsewhere === undefined)
      expect(read(".ci/run")).toMatch(new RegExp(`^ *(step|tests \\w+) (nice (-n \\d+ )?)?${command}( --| \\|\\| status=\\$\\?)?$`, "m"));
    else expect(allFiles().map(({ path }) => path)).toContain(elsewhere);
  });
});

describe("CONTRIBUTING's map of the tree", () => {
  const [map = ""] = CONTRIBUTING.split("## The house")[1]?.split("\n## ") ?? [];
  const firstCells = [...map.matchAll(/^\| (`[^|]*) \|/gm)].map(([, cell = ""]) => cell);
  const named = firstCells.flatMap((cell) => [...cell.matchAll(/`([\w./-]+)\/`/g)].map(([, directory = ""]) => directory));
  const directories = new Set(
    allFiles().flatMap(({ path }) =>
      path
        .split("/")
        .slice(0, -1)
        .map((_, depth, parts) => parts.slice(0, depth + 1).join("/")),
    ),
  );

  it("names directories that there are", () => {
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((directory) => !directories.has(directory))).toEqual([]);
  });

  it("names all of the top, and all of lib", () => {
    const first = [...directories].filter((directory) => directory !== "lib" && /^(lib\/)?[^/]+$/.test(directory));
    expect(first.filter((directory) => !named.includes(directory))).toEqual([]);
  });
});

describe("the menu of the site, which is the README's list of pages", () => {
  const list = README.split("## Where to read on")[1] ?? "";
  const linksIn = (text: string, folder: string): readonly (readonly [string, string])[] =>
    [...text.matchAll(/\[([^\]]+)\]\(([^)]+\.md)\)/g)].map(([, title = "", path = ""]) => [title, join(folder, path)]);
  const links = [...linksIn(list, ""), ...linksIn(docsPage("recipes"), "docs")];
  /** `npm run docs:reference` makes these. */
  const pages = links.filter(([, path]) => !["docs/sdk.md", "docs/http-api.md", "CONTRIBUTING.md"].includes(path));

  it("has the six sections", () => {
    const sections = [...list.matchAll(/^- \*\*([^*]+)\*\*/gm)].map(([, section]) => section);
    expect(sections).toEqual(["Quick start", "Recipes", "Guides", "Reference", "Operate", "How it works"]);
  });

  it.each(pages)("%s is the title of %s, or the part before its colon", (title, path) => {
    const [, heading = ""] = /^# (.*)$/m.exec(read(path)) ?? [];
    expect([heading, heading.split(":")[0]]).toContain(title);
  });

  it("has all pages of docs, and all recipes", () => {
    const there = allFiles().flatMap(({ path }) => (/^docs\/(?:recipes\/)?[\w-]+\.md$/.test(path) ? [path] : []));
    const inMenu = links.map(([, path]) => path);
    expect(there.filter((path) => !inMenu.includes(path))).toEqual([]);
  });
});

describe("the first page of the site", () => {
  it("shows the programs and commands of the README", () => {
    const blocks = [...read("docs/site/home.md").matchAll(/^```\w+\n[\s\S]*?^```$/gm)].map(String);
    expect(blocks).toHaveLength(3);
    expect(blocks.filter((block) => !README.includes(block))).toEqual([]);
  });
});
