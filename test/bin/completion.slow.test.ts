/** Completion in real shells: the candidates on TAB, and the guarantee that it never runs the command line. */
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { access, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { COMMANDS } from "./commands.js";
import { plainEnvironment } from "../docs/npm-start.js";
import { endAll, onPath, run } from "./holdfast.js";
import { serve } from "./service.js";

const runFile = promisify(execFile);
const HAS_FISH = spawnSync("fish", ["--version"]).status === 0;
const HAS_ZSH = spawnSync("zsh", ["--version"]).status === 0;

let directory: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-"));
  env = plainEnvironment({ PATH: `${await onPath()}:${process.env["PATH"] ?? ""}` });
  for (const shell of ["bash", "zsh", "fish"]) await writeFile(join(directory, shell), (await run(["completion", shell], {})).stdout);
});
afterAll(async () => {
  await endAll();
  await rm(directory, { recursive: true });
});

/** Returns bash's completions for the last of these words, where there is no service. */
async function bashOffers(...words: readonly string[]): Promise<readonly string[]> {
  return bashOffersIn(env, ...words);
}

/** Returns bash's completions for the last of these words, through bash's own completion function. */
async function bashOffersIn(environment: NodeJS.ProcessEnv, ...words: readonly string[]): Promise<readonly string[]> {
  const script = `
    source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}
    _holdfast
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = await runFile("bash", ["--norc", "-uc", script, "bash", join(directory, "bash"), ...words], {
    env: environment,
    cwd: directory,
  });
  expect(stderr).toBe("");
  return stdout.split("\n").filter((line) => line !== "");
}

describe("bash", () => {
  it("accepts the script", async () => {
    expect(await runFile("bash", ["-n", join(directory, "bash")])).toEqual({ stdout: "", stderr: "" });
  });

  it.each([
    [["holdfast", ""], COMMANDS],
    [
      ["holdfast", "r"],
      ["runs", "reset"],
    ],
    [["holdfast", "lock", "k", "--pri"], ["--priority"]],
    [["holdfast", "lock", "--lease", "5s", "--kill"], ["--kill-after"]],
    [["holdfast", "once", "k", "--ur"], ["--url"]],
    [
      ["holdfast", "once", "k", "--large-output", ""],
      ["error", "drop"],
    ],
    [
      ["holdfast", "runs", "--state", "s"],
      ["succeeded", "skipped"],
    ],
    [
      ["holdfast", "completion", ""],
      ["bash", "zsh", "fish"],
    ],
    [["holdfast", "--js"], ["--json"]],
    [["holdfast", "nonsense", "--lea"], []],
  ])("completes %j", async (words, offers) => {
    expect(await bashOffers(...words)).toEqual(offers);
  });

  it("offers all that a command takes, and what every command takes", async () => {
    const help = (await run(["lock", "--help"], {})).stdout;
    const offered = await bashOffers("holdfast", "lock", "k", "--");
    const listed = [...help.matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)].map(([, name]) => name).filter((name) => name !== "--help");
    expect(listed.length).toBeGreaterThan(10);
    expect(offered).toEqual(expect.arrayContaining([...listed, "--json", "--table", "--no-sign"]));
  });

  it("offers the keys that are held, those of runs, and those of limits in use", async () => {
    const service = await serve();
    await service.locks.acquire("ORDER_1");
    await service.locks.acquire("STOCK_1");
    await service.locks.runOnce("REPORT_1", () => "done");
    await service.locks.limiter("PARTNER_1", { rates: [{ count: 9, perMs: 3_600_000 }] }).take();
    // A machine that is busy offers no keys within the second. Whoever presses TAB again gets them.
    const offers = (...words: readonly string[]) =>
      vi.waitUntil(
        async () => {
          const offered = await bashOffersIn({ ...env, ...service.env }, ...words);
          return offered.length > 0 && offered;
        },
        { timeout: 30_000 },
      );
    for (const command of ["show", "break", "ls", "lock"]) expect(await offers("holdfast", command, "OR")).toEqual(["ORDER_1"]);
    expect(await offers("holdfast", "show", "")).toEqual(["ORDER_1", "STOCK_1"]);
    for (const command of ["runs", "reset", "once"]) expect(await offers("holdfast", command, "")).toEqual(["REPORT_1"]);
    for (const command of ["limit", "limits"]) expect(await offers("holdfast", command, "")).toEqual(["PARTNER_1"]);
    expect(await offers("holdfast", "show", "--ru")).toEqual(["--run"]);
    await service.close();
  });

  it("offers no keys after a second, if the service doesn't answer", async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const asked = once(silent, "connection");
    const offered = bashOffersIn({ ...env, HOLDFAST_URL: url }, "holdfast", "show", "OR");
    const [socket] = (await asked) as [Socket];
    // The end of the process ends its connection. The client itself would try for 10 s.
    const ended = once(socket, "close");
    expect(await offered).toEqual([]);
    await ended;
    silent.close();
  });

  it("leaves what stands after -- to the other command's own completion, or names of commands and files", async () => {
    await writeFile(join(directory, "a-report.sh"), "", { mode: 0o755 });
    expect(await bashOffers("holdfast", "lock", "k", "--", "./a-rep")).toEqual(["./a-report.sh"]);
    expect(await bashOffers("holdfast", "lock", "k", "--", "cat", "a-rep")).toEqual(["a-report.sh"]);
    expect(await bashOffers("holdfast", "lock", "k", "--", "holdfas")).toContain("holdfast");
  });

  it("evaluates nothing that stands on the line", async () => {
    const file = join(directory, "evaluated");
    for (const word of [`$(touch ${file})`, `\`touch ${file}\``, ">", file, ";", "touch", file]) {
      await bashOffers("holdfast", "show", word, "");
      await bashOffers("holdfast", "lock", "k", "--", "echo", word, "");
    }
    await bashOffers("holdfast", "lock", "k", "--", "echo", ">", file, "");
    await expect(access(file)).rejects.toThrow("ENOENT");
  });

  it("control: a shell that evaluates its line does make that file", async () => {
    const file = join(directory, "control");
    await runFile("bash", ["-c", `eval "echo $1"`, "bash", `$(touch ${file})`]);
    await expect(access(file)).resolves.toBeUndefined();
  });
});

describe("zsh", () => {
  beforeEach(({ skip }) => skip(!HAS_ZSH, "there is no zsh on the path"));

  it("accepts the script", async () => {
    expect(await runFile("zsh", ["-n", join(directory, "zsh")])).toEqual({ stdout: "", stderr: "" });
  });

  it.each([
    ["holdfast ", COMMANDS],
    ["holdfast runs --state s", ["succeeded", "skipped"]],
    ["holdfast lock k --pri", ["--priority"]],
  ])("completes %j", async (line, offers) => {
    // Replaces the function that shows the candidates: its arguments are the candidates.
    const script = `
      autoload -Uz compinit; compinit -u -D; source "$1"
      _describe() { shift; print -rl -- "\${(@P)1}" }
      words=(\${=2}); [[ $2 == *' ' ]] && words+=(''); CURRENT=\${#words}
      _holdfast`;
    const { stdout } = await runFile("zsh", ["-fc", script, "zsh", join(directory, "zsh"), line], { env });
    const found = stdout.split("\n").flatMap((text) => (text === "" ? [] : [text.split(":", 1)[0] ?? ""]));
    expect(found.filter((one) => one.startsWith(line.split(" ").at(-1) ?? ""))).toEqual(offers);
  });
});

describe("fish", () => {
  beforeEach(({ skip }) => skip(!HAS_FISH, "there is no fish on the path"));

  /** Returns fish's completions for the end of a line. */
  async function fishOffers(line: string): Promise<readonly string[]> {
    const script = 'source $argv[1]; complete -C "$argv[2]"';
    const { stdout } = await runFile("fish", ["-N", "-c", script, join(directory, "fish"), line], { env, cwd: directory });
    return stdout.split("\n").flatMap((offer) => (offer === "" ? [] : [offer.split("\t")[0] ?? ""]));
  }

  it.each([
    ["holdfast ", COMMANDS],
    ["holdfast lo", ["lock"]],
    ["holdfast show --ru", ["--run"]],
    ["holdfast completion ", ["bash", "zsh", "fish"]],
  ])("completes %j", async (line, offers) => {
    expect((await fishOffers(line)).toSorted()).toEqual(offers.toSorted());
  });

  it("leaves what stands after -- to the other command's own completion", async () => {
    await writeFile(join(directory, "b-report.sh"), "", { mode: 0o755 });
    expect(await fishOffers("holdfast lock k -- ./b-rep")).toEqual(["./b-report.sh"]);
    expect(await fishOffers("holdfast lock k -- cat b-rep")).toEqual(["b-report.sh"]);
    expect(await fishOffers("holdfast lock k -- holdfast lo")).toEqual(["lock"]);
  });

  it("evaluates nothing that stands on the line", async () => {
    const file = join(directory, "evaluated-by-fish");
    for (const word of [`(touch ${file})`, `$(touch ${file})`, `'(touch ${file})'`]) {
      await fishOffers(`holdfast show ${word} `);
      await fishOffers(`holdfast lock k -- echo ${word} `);
    }
    await expect(access(file)).rejects.toThrow("ENOENT");
  });
});
