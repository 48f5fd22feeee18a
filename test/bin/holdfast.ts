/**
 * `holdfast` as a child process: its output, its exit, and signals to it. It is built from its sources once for each
 * test file, because compiling at every start takes a second.
 */
import { type Metafile, buildSync } from "esbuild";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { vi } from "vitest";
import { plainEnvironment } from "../docs/npm-start.js";
import { ROOT } from "../tidy/tree.js";

/** The end of the process. */
export interface Ended {
  /** Null if a signal ended it. */
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running `holdfast`. */
export interface Running {
  readonly pid: number;
  readonly stdin: Writable;
  readonly ended: Promise<Ended>;
  /** Resolves with all of stdout when it matches. @throws if it doesn't in time. */
  printed(pattern: RegExp, withinMs?: number): Promise<string>;
  /** The same for stderr. */
  said(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
  /** Stops reading its output. */
  closeOutput(): void;
}

/** The environment, with the address of the locks. */
export type Environment = Readonly<Record<string, string>>;

/** Enough for a machine under load. */
const PATIENCE_MS = 15_000;

/** Below node_modules, so that the program finds its packages and git ignores it. */
const CACHE = join(ROOT, "node_modules/.cache");

interface Built {
  readonly directory: string;
  readonly metafile: Metafile;
}

let built: Built | undefined;

function build(): Built {
  mkdirSync(CACHE, { recursive: true });
  const directory = mkdtempSync(join(CACHE, "holdfast-"));
  copyFileSync(join(ROOT, "package.json"), join(directory, "package.json"));
  const { metafile } = buildSync({
    metafile: true,
    entryPoints: [join(ROOT, "bin/holdfast.ts"), join(ROOT, "bin/exec/guard-main.ts")],
    entryNames: "[name]",
    outdir: directory,
    bundle: true,
    splitting: true, // Keeps lazily loaded code lazy.
    packages: "external",
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
  });
  return { directory, metafile };
}

/** The path of the built program. */
export function programFile(): string {
  built ??= build();
  return join(built.directory, "holdfast.js");
}

/** The sources and packages that it loads before it knows its command. */
export function loadedAtOnce(): readonly string[] {
  const { metafile } = (built ??= build());
  const loaded = new Set<string>();
  const load = (output: string): void => {
    const { inputs = {}, imports = [] } = metafile.outputs[output] ?? {};
    const names = imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => path);
    for (const name of [...Object.keys(inputs), ...names]) loaded.add(name);
    for (const { path, kind, external } of imports) if (kind === "import-statement" && external !== true) load(path);
  };
  load(Object.keys(metafile.outputs).find((output) => output.endsWith("/holdfast.js")) ?? "");
  return [...loaded];
}

/** A directory with `holdfast` in it, for a shell's path. */
export async function onPath(): Promise<string> {
  const program = programFile();
  const directory = join(dirname(program), "bin");
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "holdfast"), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 });
  return directory;
}

const started = new Set<ChildProcessByStdio<Writable, Readable, Readable>>();

/** Starts it. Stdin stays open until the test ends it. */
export function start(args: readonly string[], env: Environment): Running {
  const child = spawn(process.execPath, [programFile(), ...args], {
    cwd: ROOT,
    env: plainEnvironment(env),
    stdio: ["pipe", "pipe", "pipe"],
    detached: true, // A session of its own: without a terminal, even if the tests run in one.
  });
  started.add(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => undefined);
  const until = (what: () => string, pattern: RegExp, timeout = PATIENCE_MS): Promise<string> =>
    vi.waitFor(
      () => {
        if (!pattern.test(what())) throw new Error(`${String(pattern)} is not in ${JSON.stringify({ stdout, stderr })}`);
        return what();
      },
      { timeout, interval: 10 },
    );
  return {
    pid: child.pid ?? 0,
    stdin: child.stdin,
    ended: once(child, "close").then(([status]) => {
      started.delete(child);
      return { status: status as number | null, stdout, stderr };
    }),
    printed: (pattern, withinMs) => until(() => stdout, pattern, withinMs),
    said: (pattern) => until(() => stderr, pattern),
    signal: (name) => void child.kill(name),
    closeOutput: () => void child.stdout.destroy(),
  };
}

/** Runs it to its end, without input. */
export async function run(args: readonly string[], env: Environment): Promise<Ended> {
  const running = start(args, env);
  running.stdin.end();
  return running.ended;
}

/** Kills the processes that a failed test left behind, and removes the program; its watchdogs end the commands. */
export async function endAll(): Promise<void> {
  for (const child of started) child.kill("SIGKILL");
  if (built) await rm(built.directory, { recursive: true });
  built = undefined;
}

/** True if the process runs. A process that has exited but wasn't reaped doesn't run. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    return !/\) [ZX] /.test(stat);
  } catch {
    return false;
  }
}
