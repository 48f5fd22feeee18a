/** A child process that reports in lines of JSON, for tests that freeze it, kill it or watch it exit. */
import { buildSync } from "esbuild";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { ROOT } from "../tidy/tree.js";

/** One line that a child wrote. */
export interface Report {
  readonly event: string;
  // The members depend on the script.
  readonly [member: string]: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- a test reads what it wrote
}

/** A running script. */
export interface Child {
  /** Waits for the line with this event and returns it. @throws Error if the child ends without it. */
  reported(event: string): Promise<Report>;
  /** Sends a signal, such as SIGSTOP. */
  signal(name: NodeJS.Signals): void;
  /** The exit code, and everything written to stderr. */
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
  /** Kills it, frozen or not. */
  kill(): Promise<void>;
}

const bundles = new Map<string, string>();

/** Returns the script and its imports in one text. Compiled at every start, a script took a second of processor time before its first line. */
function bundleOf(path: string): string {
  const known = bundles.get(path);
  if (known !== undefined) return known;
  const { outputFiles } = buildSync({
    entryPoints: [path],
    write: false,
    bundle: true,
    packages: "external",
    ignoreAnnotations: true, // The package has no side effects, but a script may import a file for them.
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
  });
  const { text } = outputFiles[0]!;
  bundles.set(path, text);
  return text;
}

/** Runs a TypeScript file, named relative to `from` (an import.meta.url), with `argument` as JSON. */
export function startChild(script: string, from: string, argument: unknown, env: Readonly<Record<string, string>> = {}): Child {
  const bundle = bundleOf(fileURLToPath(new URL(script, from)));
  // Node finds the packages of a program that comes by stdin from its working directory.
  const child = spawn(process.execPath, ["--input-type=module", "-", JSON.stringify(argument)], {
    cwd: ROOT,
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  child.stdin.on("error", () => undefined); // It was killed before it had read the program.
  child.stdin.end(bundle);
  const reports: Report[] = [];
  let unfinished = "";
  let stderr = "";
  const waiting = new Set<() => void>();
  const changed = (): void => waiting.forEach((wake) => wake());
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (unfinished + text).split("\n");
    unfinished = lines.pop() ?? "";
    reports.push(...lines.map((line) => JSON.parse(line) as Report));
    changed();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  let over = false;
  const ended = once(child, "close").then(([code]) => {
    over = true;
    changed();
    return { code: code as number | null, stderr };
  });
  return {
    async reported(event) {
      for (;;) {
        const report = reports.find((one) => one.event === event);
        if (report) return report;
        if (over) throw new Error(`the child ended without reporting ${event}: ${JSON.stringify(reports)} ${stderr}`);
        await new Promise<void>((resolve) => waiting.add(resolve));
      }
    },
    signal: (name) => void child.kill(name),
    ended,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
