/** `holdfast` in its own terminal, made by util-linux's `script`: its screen, and typed keys. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { vi } from "vitest";
import { plainEnvironment } from "../docs/npm-start.js";
import { type Environment, programFile } from "./holdfast.js";

/** A terminal that runs a program. */
export interface Terminal {
  /** Resolves with everything shown when it matches. */
  showed(pattern: RegExp): Promise<string>;
  type(keys: string): void;
  /** Makes it as wide as this. */
  resize(columns: number): void;
  readonly ended: Promise<{ readonly status: number | null; readonly shown: string }>;
}

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** Runs it in a terminal of this size. */
export function inTerminal(
  args: readonly string[],
  env: Environment,
  { columns, rows }: { readonly columns: number; readonly rows: number } = { columns: 80, rows: 24 },
): Terminal {
  const line = [process.execPath, programFile(), ...args].map(quoted).join(" ");
  const script = spawn("script", ["-q", "-e", "-f", "-c", `stty cols ${columns} rows ${rows}; exec ${line}`, "/dev/null"], {
    env: plainEnvironment({ TERM: "xterm", SHELL: "/bin/sh", ...env }),
    stdio: ["pipe", "pipe", "inherit"],
  });
  let shown = "";
  script.stdout.setEncoding("utf8").on("data", (text: string) => (shown += text));
  return {
    showed: (pattern) =>
      vi.waitFor(
        () => {
          if (!pattern.test(shown)) throw new Error(`${String(pattern)} is not in ${JSON.stringify(shown)}`);
          return shown;
        },
        { timeout: 15_000, interval: 10 },
      ),
    type: (keys) => void script.stdin.write(keys),
    resize(columns) {
      const [child = ""] = readFileSync(`/proc/${script.pid}/task/${script.pid}/children`, "utf8").split(" ");
      spawnSync("stty", ["-F", `/proc/${child}/fd/1`, "cols", String(columns)]);
    },
    ended: once(script, "close").then(([status]) => ({ status: status as number | null, shown })),
  };
}
