/**
 * "The command line": each command after a `$` runs and prints the text below it, and the page's claims about options
 * and statuses are true.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CODES, INTERRUPTED } from "../../bin/cli-error.js";
import { EXITS } from "../../bin/exit-codes.js";
import { RESULT_BYTES } from "../../bin/exec/stored-output.js";
import { programFor } from "../../bin/program.js";
import { ERRORS } from "../../lib/core/errors.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { mayLinkTo } from "../docs/generated.js";
import { plainEnvironment } from "../docs/npm-start.js";
import { ROOT } from "../tidy/tree.js";
import { endAll, loadedAtOnce, onPath, run } from "./holdfast.js";
import { type Service, serve } from "./service.js";

const PATH = "docs/command-line.md";
const PAGE = readFileSync(join(ROOT, PATH), "utf8");
/** The page as one line, regardless of wrapping. */
const TEXT = PAGE.replaceAll(/\s+/g, " ");
/** The time limit for all of its commands together. */
const ALL_MS = 120_000;

/** The scripts of the page's jobs. */
const SCRIPTS = {
  "report.sh": "echo ran >> reports; echo written once",
  "sync-stock.sh": "echo stock is in step",
  "deploy.sh": "echo deployed",
  "write-ledger.sh": 'echo "written under $2"',
};

/** A command of the page, and the output below it. */
interface Step {
  readonly command: string;
  readonly prints: string;
}

const steps: readonly Step[] = [...PAGE.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = ""]) =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command = "", ...prints] = step.trimEnd().split("\n");
      return { command, prints: prints.join("\n") };
    }),
);

const program = programFor(
  {
    argv: [],
    print: () => Promise.resolve(),
    ends: () => undefined,
    context: () => Promise.reject(new Error()),
    contextIfGiven: () => Promise.reject(new Error()),
    runContext: () => Promise.reject(new Error()),
    processContext: () => {
      throw new Error();
    },
  },
  "0",
);
const optionsOf = (name: string): readonly string[] => {
  const command = program.commands.find((one) => one.name() === name) ?? program;
  return command.options.flatMap(({ long }) => (typeof long === "string" ? [long] : []));
};

let service: Service;
let directory: string;
/** The output of each step. */
let printed: readonly string[];

beforeAll(async () => {
  service = await serve();
  directory = await mkdtemp(join(tmpdir(), "holdfast-"));
  for (const [name, text] of Object.entries(SCRIPTS)) await writeFile(join(directory, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const [, seed = ""] = /```json\n([\s\S]*?)```/.exec(PAGE) ?? [];
  await writeFile(join(directory, "seed.json"), seed);
  const end = "---end of the step---";
  const script = steps.map(({ command }) => `${command}\nstatus=$?; printf '%s' '${end}'; (exit $status)`).join("\n");
  const env = plainEnvironment({ ...service.env, PATH: `${await onPath()}:${process.env["PATH"] ?? ""}` });
  const { stdout } = await promisify(execFile)("bash", ["-c", `exec 2>&1\n${script}\ntrue`], { env, cwd: directory, timeout: ALL_MS });
  printed = stdout.split(end).slice(0, -1);
}, ALL_MS);
afterAll(async () => {
  await endAll();
  await service.close();
  await rm(directory, { recursive: true });
});

/** Replaces the parts that differ each time: times, tokens, and the width of their columns. */
function inGeneral(text: string): string {
  return text
    .trimEnd()
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "AT")
    .replaceAll(/\b1\d{12}\b/g, "TOKEN")
    .replaceAll(/\b\d+(ms|[smhd])( \d+[smhd])?\b/g, "TIME")
    .replaceAll(/ {2,}/g, " ");
}

describe("the page's commands", () => {
  it("are there for every command that holdfast has, but `ui`, which serves until Ctrl-C, and those about a table, which is not here", () => {
    const shown = steps.map(({ command }) => command).join("\n");
    const missing = program.commands.map((command) => command.name()).filter((name) => !new RegExp(`holdfast ${name}\\b`).test(shown));
    expect(missing).toEqual(["ui", "doctor", "sweep"]);
  });

  it.each(steps.map((step, at) => ({ ...step, at })))("$command", ({ at, prints }) => {
    expect(inGeneral(printed[at] ?? "")).toBe(inGeneral(prints));
  });

  it("ran what two schedulers start once", () => {
    expect(readFileSync(join(directory, "reports"), "utf8")).toBe("ran\n");
  });
});

describe("the page's options", () => {
  it("are those that there are", () => {
    const below = program.commands.flatMap(({ commands }) => commands).flatMap(({ options }) => options.map(({ long }) => long ?? ""));
    const all = new Set([...["", ...program.commands.map((command) => command.name())].flatMap(optionsOf), ...below]);
    const named = new Set(
      [
        ...PAGE.replaceAll(/npm pack --silent|docker run --init|timeout --signal|write-ledger\.sh --fence/g, "").matchAll(
          /(?<![\w-])--[a-z][\w-]*/g,
        ),
      ].map(([name]) => name),
    );
    named.delete("--help");
    expect([...named].filter((name) => !all.has(name))).toEqual([]);
    expect([...all].filter((name) => !named.has(name) && name !== "--version")).toEqual([]);
  });

  it.each([
    ["--lease", DEFAULTS.leaseMs, "| `--lease 30s` |"],
    ["--wait", DEFAULTS.waitMs, "| `-w, --wait 45s`,"],
    ["--keep", DEFAULTS.keepResultMs, "kept (for a day, or as long as `--keep` says)"],
    ["--max-attempts", DEFAULTS.maxAttempts, "up to `--max-attempts` (5)"],
  ])("%s has the SDK's default, and the page says which", (name, value, sentence) => {
    const options = program.commands.flatMap((command) => command.options.filter(({ long }) => long === name));
    expect(options.length).toBeGreaterThan(0);
    for (const option of options) expect(option.defaultValue).toBe(value);
    expect(TEXT).toContain(sentence);
  });

  it("over 256 KB are what isn't kept", () => {
    expect(TEXT).toContain(`Up to ${RESULT_BYTES / 1024} KB are kept`);
  });
});

describe("the page's statuses", () => {
  it("are the code's, row by row", () => {
    const rows = [...PAGE.matchAll(/^\| (\d+) +\| (?:`(EX_\w+)`)? *\| (.*?) *\|$/gm)].map(([, status, name = "", meaning]) => ({
      status: Number(status),
      name,
      meaning,
    }));
    expect(rows).toEqual(Object.values(EXITS));
  });

  it("are each of one kind", () => {
    const statuses = Object.values(EXITS).map(({ status }) => status);
    expect(new Set(statuses).size).toBe(statuses.length);
  });
});

describe("the page's codes of errors", () => {
  it("are the service's, the SDK's and the command line's own", () => {
    const [, part = ""] = PAGE.split("### Errors as JSON");
    const rows = [...part.matchAll(/^\| `([a-z-]+)` *\| \d/gm)].map(([, code = ""]) => code);
    const ofTheSdk = ["wait-timeout", "run-failed", "result-omitted"];
    const mine = [...Object.values(CODES), INTERRUPTED].filter((code) => !(code in ERRORS) && code !== "ok" && code !== "refused");
    expect(new Set(rows)).toEqual(new Set([...ofTheSdk, ...mine]));
  });
});

describe("the page's links", () => {
  it("lead somewhere", () => {
    const links = [...PAGE.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, link = ""]) => join(dirname(PATH), link));
    expect(links.length).toBeGreaterThan(1);
    expect(links.filter((link) => !mayLinkTo(link))).toEqual([]);
  });
});

describe("help", () => {
  it.each(program.commands.map((command) => command.name()))("of %s has an example of it, and fits a screen", async (name) => {
    const { status, stdout, stderr } = await run([name, "--help"], {});
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`\\$ (source <\\()?holdfast ${name}`));
    expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  it.each(["lock", "once"])("of %s names every variable that its command finds", async (name) => {
    const source = readFileSync(join(ROOT, `bin/exec/${name}.ts`), "utf8");
    const variables = new Set([...source.matchAll(/HOLDFAST_[A-Z_]+/g)].map(([variable]) => variable));
    expect(variables.size).toBeGreaterThan(2);
    const { stdout } = await run([name, "--help"], {});
    expect([...variables].filter((variable) => !new RegExp(`\\b${variable}\\b`).test(stdout))).toEqual([]);
  });

  it("and the version are there without loading any client", async () => {
    expect(loadedAtOnce()).toContain("bin/program.ts");
    expect(loadedAtOnce()).toContain("commander");
    expect(loadedAtOnce().filter((name) => /^lib\/|aws|smithy|bomb/.test(name))).toEqual([]);
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    expect(await run(["--version"], {})).toEqual({ status: 0, stdout: `${version}\n`, stderr: "" });
  });
});
