/**
 * `holdfast` as a process of its own: what it prints, how it ends, and signals to it. Built from its sources once for
 * each file of tests, since a process that compiles them anew takes a second to start.
 */
import { build } from "esbuild";
import type { ChildProcessByStdio } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { vi } from "vitest";
import { plainEnvironment } from "../docs/npm-start.js";
import { ROOT } from "../tidy/tree.js";

/** How it ended. */
export interface Ended {
  /** Null when a signal ended it. */
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running `holdfast`. */
export interface Running {
  readonly pid: number;
  readonly stdin: Writable;
  readonly ended: Promise<Ended>;
  /** Resolves with all of stdout when it matches; @throws when it doesn't in time. */
  printed(pattern: RegExp, withinMs?: number): Promise<string>;
  /** The same of stderr. */
  said(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
  /** Stops listening to what it prints. */
  closeOutput(): void;
}

/** Where it finds its locks, and whatever else is in its environment. */
export type Environment = Readonly<Record<string, string>>;

/** For a machine under load. */
const PATIENCE_MS = 15_000;

/** Below node_modules, so that it finds its packages and git does not find it. */
const CACHE = join(ROOT, "node_modules/.cache");

await mkdir(CACHE, { recursive: true });
const directory = await mkdtemp(join(CACHE, "holdfast-"));
await copyFile(join(ROOT, "package.json"), join(directory, "package.json"));
const { metafile } = await build({
  metafile: true,
  entryPoints: [join(ROOT, "bin/holdfast.ts")],
  outdir: directory,
  bundle: true,
  splitting: true, // What is loaded when it is needed stays so.
  packages: "external",
  format: "esm",
  platform: "node",
  target: "node20",
  logLevel: "warning",
});

/** The program. */
export const PROGRAM = join(directory, "holdfast.js");

/** The sources and packages that it loads before it knows what it is to do. */
export function loadedAtOnce(): readonly string[] {
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
  const command = join(directory, "bin/holdfast");
  await mkdir(join(directory, "bin"), { recursive: true });
  await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`, { mode: 0o755 });
  return join(directory, "bin");
}

const started = new Set<ChildProcessByStdio<Writable, Readable, Readable>>();

/** Starts it; stdin is open until it is ended. */
export function start(args: readonly string[], env: Environment): Running {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: ROOT,
    env: plainEnvironment(env),
    stdio: ["pipe", "pipe", "pipe"],
    detached: true, // A session of its own: it has no terminal, whoever runs the tests.
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

/** Runs it to its end, with nothing on stdin. */
export async function run(args: readonly string[], env: Environment): Promise<Ended> {
  const running = start(args, env);
  running.stdin.end();
  return running.ended;
}

/** Ends whatever a failed test left behind; its guards see to the commands. Nothing is started after it. */
export async function endAll(): Promise<void> {
  for (const child of started) child.kill("SIGKILL");
  await rm(directory, { recursive: true });
}

/** Whether a process runs; one that has ended and was not reaped doesn't. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    return !/\) [ZX] /.test(stat);
  } catch {
    return false;
  }
}
