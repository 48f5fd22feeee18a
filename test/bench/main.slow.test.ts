/** `npm run bench`: its command line, its data and its plots. No test asserts what it measures. */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PAGE } from "../../bench/page.js";
import { INSTALL_PEERS } from "../../bench/contest/peers.js";
import type { Run } from "../../bench/report/report.js";
import { ROOT } from "../tidy/tree.js";

/** The servers and all contestants start, on a machine that may be busy. */
const TRIAL_MS = 240_000;
const PLOT_BYTES_MAX = 60 * 1024;

let directory = "";
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), "holdfast-bench-"))));
afterAll(() => rm(directory, { recursive: true, force: true }));

function bench(...args: readonly string[]) {
  return promisify(execFile)(process.execPath, ["--import", "tsx", "bench/main.ts", ...args], { cwd: ROOT });
}

describe("the command line", () => {
  it("tells in one line which benchmarks there are, with status 2", async () => {
    const names = Array.from((await bench("--help")).stdout.matchAll(/^ {2}([a-z]\w+) {2}/gm), ([, name]) => name);
    expect(names).toContain("cycles");
    const stderr = `bench: there is no "speed", only ${names.join(" and ")}\n`;
    await expect(bench("cycles", "speed")).rejects.toMatchObject({ code: 2, stdout: "", stderr });
  });

  it("refuses an option that it doesn't know, with status 2", async () => {
    await expect(bench("--fast")).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(/^bench: .*--fast/) });
  });
});

describe("a trial run", () => {
  const CONTESTS = ["cycles", "waiters", "buyers"];
  const NAMES = [...CONTESTS, "growth"];
  let run: Run;
  let output = "";
  beforeAll(async () => {
    const file = join(directory, "trial.json");
    output = (await bench(...NAMES, "--quick", "--json", file, "--plots", join(directory, "plots"))).stdout;
    run = JSON.parse(await readFile(file, "utf8")) as Run;
  }, TRIAL_MS);

  it("stores the figures of each benchmark, and says that it is a trial", () => {
    expect(Object.keys(run.reports)).toEqual(NAMES);
    expect(run.isQuick).toBe(true);
    expect(output).toContain("A TRIAL");
  });

  it.each(["bare AWS SDK", "raw HTTP", "holdfast, table", "holdfast, HTTP"])("has a row of %s in each contest", (title) => {
    for (const name of CONTESTS) expect(rowsOf(run, name).join("\n"), name).toContain(title);
  });

  it.each(["dynamodb-lock-client", "@deliveryhero/dynamodb-lock", "dynamodb-mutex"])(
    "has a row of %s in each contest, or says by which command it is installed",
    (title) => {
      for (const name of CONTESTS) {
        const missing = notesOf(run, name).filter((note) => note.startsWith(`Not run, because \`${INSTALL_PEERS}\``));
        expect([...rowsOf(run, name), ...missing].join("\n"), name).toContain(title);
      }
    },
  );

  it("has a row of redlock, or says in one line why not", () => {
    for (const name of CONTESTS) {
      const said = [...rowsOf(run, name), ...notesOf(run, name).filter((note) => note.startsWith("Not run"))];
      expect(said.filter((line) => line.includes("redlock")).length, name).toBe(1);
    }
  });

  it("keeps the order of arrival and sells exactly, by holdfast", () => {
    const own = (name: string) => rowsOf(run, name).filter((row) => row.includes("holdfast, table") || row.includes("holdfast, HTTP"));
    for (const row of own("waiters")) expect(row).toContain("kept");
    for (const row of own("buyers")) expect(row).toMatch(/\| 30 +\| yes/);
  });

  it("plots what it measured, in files that a page can carry", async () => {
    const files = await readdir(join(directory, "plots"));
    expect(files.toSorted()).toEqual(["cycles.svg", "growth-requests.svg", "growth-units.svg", "waiters.svg"]);
    for (const file of files) {
      const path = join(directory, "plots", file);
      expect((await stat(path)).size).toBeLessThan(PLOT_BYTES_MAX);
      expect(await readFile(path, "utf8")).toMatch(/^<svg [^>]*xmlns=[\s\S]*prefers-color-scheme:dark[\s\S]*<\/svg>\n$/);
    }
  });

  it("is shown again without measuring", async () => {
    const again = await bench("--from", join(directory, "trial.json"));
    expect(again.stdout).toBe(output);
  });

  it("is not written into the page without the other benchmarks", async () => {
    await expect(bench("--from", join(directory, "trial.json"), "--record")).rejects.toMatchObject({
      code: 1,
      stderr: `bench: ${PAGE} also needs takeover and leases and crowd and crowds and memory and weight and simulation\n`,
    });
  });
});

/** The rows of a benchmark's tables, below their heads. */
function rowsOf({ reports }: Run, name: string): readonly string[] {
  return reports[name]!.tables.flatMap((table) => table.split("\n").slice(2));
}

function notesOf({ reports }: Run, name: string): readonly string[] {
  return reports[name]!.notes ?? [];
}
