/** The README's claims about the code beside it: its figures, commands and map match the code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, RETENTION_MIN_MS, takeoverMarginMs } from "../../lib/core/limits.js";
import { allFiles, ROOT } from "../tidy/tree.js";
import { blockUnder, blocksUnder, README } from "./readme.js";

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

describe("the README's figures", () => {
  /** The takeover margin: a fixed part, and a share of the lease's length. */
  const fixedMs = takeoverMarginMs(0);
  const share = (takeoverMarginMs(LIMITS.leaseMaxMs) - fixedMs) / LIMITS.leaseMaxMs;
  const percent = (part: number): string => `${Number((part * 100).toPrecision(6))} %`;

  it.each([
    ["E", `is within ${DEFAULTS.clockErrorMs} ms of true time`],
    ["ρ", `a client's clock _rate_ is off by at most ${percent(DEFAULTS.clockRateError)}`],
    [
      "the longest stall, which is the shortest retention",
      "no conditional write lands later than an hour after its clock was read",
      RETENTION_MIN_MS === HOUR_MS,
    ],
    [
      "the takeover margin, but for its rounding up",
      `after a margin of ${Math.floor(fixedMs / 1000)} s + ${percent(share)} of the lease`,
      fixedMs % 1000 <= 1,
    ],
    ["retention", `a key that nobody has used for ${DEFAULTS.retentionMs / HOUR_MS} hours goes`],
    ["the port", `on \`http://127.0.0.1:${/DEFAULT_PORT = (\d+)/.exec(read("infra/local/start.ts"))?.[1]}\``],
    ["Node's version", `You need Node ${engines.node.replace(">=", "")} or newer and access to the npm registry`],
    ["the license", `how a change is made. ${license}.`],
  ])("say %s as the code has it: %s", (_what, sentence, alsoTrue = true) => {
    expect(README).toContain(sentence);
    expect(alsoTrue).toBe(true);
  });
});

describe("what the README says before all else", () => {
  const [top = ""] = README.split("\n## ");

  it.each(["**Nothing here has run on AWS yet.**", "**The package is not on npm yet**"])("is: %s", (sentence) => {
    expect(top).toContain(sentence);
  });

  it("is said on the pages that install it too: from what npm pack makes, by its version", () => {
    const tarball = `npm install ./${name}-${version}.tgz`;
    const pages = [README, read("docs/start-here.md"), read("docs/into-your-account.md")];
    expect(pages.filter((page) => !page.includes(tarball) || !page.includes("not on npm yet"))).toEqual([]);
    expect(pages.filter((page) => /npm install (?:-\S+ )*holdfast/.test(page))).toEqual([]);
  });

  it("and each entry's packages are its peers", () => {
    const [, said = ""] = /need nothing else\. (Other entry points need extra packages: [^\n]*)/.exec(README) ?? [];
    const named = [...said.matchAll(/`(@?[\w-]+(?:\/[\w-]+)?)`/g)].map(([, one]) => one);
    const twoAbove = ["@aws-sdk/client-dynamodb", "@aws-sdk/lib-dynamodb"];
    expect([...named, ...twoAbove].toSorted()).toEqual(Object.keys(peerDependencies).toSorted());
    expect(README).toContain(`\`npm install ${twoAbove.join(" ")}\``);
  });
});

describe("the README's commands", () => {
  const blocks = [...blocksUnder("Running in two commands", "sh"), ...blocksUnder("Looking around", "sh")];
  const lines = blocks.flatMap((block) => block.split(/\n|&&/));
  const commands = [...new Set(lines.map((line) => line.replace(/#.*/, "").trim()))];
  /** Commands that .ci/run doesn't run itself, and the tests that do. For the demo, the test runs a smaller one. */
  const ELSEWHERE = new Map([["npm start", "test/docs/readme.slow.test.ts"]]);

  it.each(commands)("%s is a script of package.json, or npm's own", (command) => {
    const [, script] = /^npm (?:run )?([\w:]+)/.exec(command) ?? [];
    expect(["ci", ...Object.keys(scripts)]).toContain(script);
  });

  it.each(commands)("%s is run before a change is taken", (command) => {
    const elsewhere = ELSEWHERE.get(command);
    if (elsewhere === undefined) expect(read(".ci/run")).toMatch(new RegExp(`^(step|tests \\w+) ${command}( --)?$`, "m"));
    else expect(allFiles().map(({ path }) => path)).toContain(elsewhere);
  });
});

describe("the README's map of the tree", () => {
  /** At the start of a line, or with a colon after it. */
  const named = [...blockUnder("Looking around", "").matchAll(/^[\w./-]+(?=\/ )|[\w-]+\/[\w-]+(?=: )/gm)].map(String);
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
