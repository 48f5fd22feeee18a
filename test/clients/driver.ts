/** A driver: a program in any language that carries out commands, one line each, and answers each by one line (docs/write-a-client.md). */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { ROOT } from "../tidy/tree.js";

/** An answer, and when its command was sent and answered, by this process's monotonic clock in ms. */
export interface Answered {
  readonly reply: string;
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** A driver that takes longer for one command than any scene asks of it. */
const SILENT_MS = 60_000;

/** A running driver. One command is under way at a time. */
export class Driver {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: string[] = [];
  #wake: () => void = () => undefined;
  #stderr = "";
  #isOver = false;

  /** @param command the program and its arguments, run in the root of the repository */
  constructor(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const [program = "", ...rest] = command;
    this.#child = spawn(program, rest, { cwd: ROOT, env: { ...process.env, ...env } });
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.#lines.push(line);
      this.#wake();
    });
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    this.#child.stdin.on("error", () => undefined);
    this.#child.on("error", (error) => (this.#stderr += error.message));
    this.#child.on("close", () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  /** All that it wrote on stderr. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Sends a command; the answer comes by the promise. @throws Error if the driver ends, or is silent for a minute */
  async ask(command: string): Promise<Answered> {
    const askedMs = performance.now();
    this.#child.stdin.write(`${command}\n`);
    for (;;) {
      const reply = this.#lines.shift();
      if (reply !== undefined) return { reply, askedMs, answeredMs: performance.now() };
      if (this.#isOver) throw new Error(`the driver ended at ${JSON.stringify(command)}: ${this.#stderr}`);
      const leftMs = SILENT_MS - (performance.now() - askedMs);
      if (leftMs <= 0) throw new Error(`the driver gave no answer to ${JSON.stringify(command)}: ${this.#stderr}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async end(): Promise<void> {
    if (this.#isOver) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "close");
  }
}
