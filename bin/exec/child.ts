/**
 * The command that runs under a lease. It inherits this process's input, output and environment, and has its own session, so that signals
 * reach all processes that it started. In a terminal it stays in the terminal's session: Ctrl-C comes from the terminal, programs can ask
 * for passwords and draw, and other signals reach only the command itself.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { isatty } from "node:tty";
import { CliError } from "../cli-error.js";
import { statusOfSignal } from "../exit-codes.js";
import type { Readable } from "node:stream";
import type { EndTimes } from "./guard.js";
import { type Watchdog, startWatchdog } from "./watchdog.js";

/** The command and its environment. */
export interface ChildArgs {
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The time between SIGTERM and SIGKILL, in ms. */
  readonly killAfterMs: number;
  /**
   * Receives what the command prints to stdout; the next chunk is read when it has settled. If absent, the command prints directly, without
   * buffering.
   */
  readonly onOutput?: (chunk: Buffer) => Promise<void>;
  /** The same for stderr. */
  readonly onErrorOutput?: (chunk: Buffer) => Promise<void>;
}

/** The outcome of the process. */
export type ChildEnd =
  | { readonly started: true; readonly status: number; readonly by?: NodeJS.Signals }
  | { readonly started: false; readonly exit: "commandNotFound" | "notExecutable"; readonly why: string };

/**
 * After the command ended, a process that it left behind can still print. What the command printed is in the pipe then, which has at most this
 * many bytes. Output is read until nothing came for this long in all, in ms, or until it is more.
 */
const LAST_WORDS_MS = 1000;
const TICK_MS = 50;
const PIPE_BYTES_MAX = 2 ** 20;

/** A running command. */
export class Child {
  readonly ended: Promise<ChildEnd>;
  /** Ends the command when it is told to, or when this process is gone. */
  readonly watchdog: Watchdog;
  readonly #process: ChildProcess;
  readonly #ownSession: boolean;
  readonly #killAfterMs: number;

  /** Starts the command. Its watchdog ends it as `ending` says, unless it is told otherwise before. */
  constructor({ command: [file = "", ...args], env, killAfterMs, onOutput, onErrorOutput }: ChildArgs, ending: EndTimes) {
    // The system has no name for it, and Node refuses it as a fault of the program.
    if (file === "") throw new CliError("commandNotFound", "the command after -- is empty text");
    this.#ownSession = process.platform !== "win32" && ![0, 1, 2].some((descriptor) => isatty(descriptor));
    this.#killAfterMs = killAfterMs;
    const stdio = ["inherit", onOutput ? "pipe" : "inherit", onErrorOutput ? "pipe" : "inherit"] as const;
    this.watchdog = startWatchdog(killAfterMs);
    this.watchdog.tell(ending);
    this.#process = spawn(file, args, { env, stdio: [...stdio], detached: this.#ownSession });
    if (this.#process.pid !== undefined) this.watchdog.watch(this.#target(this.#process.pid));
    const { stdout, stderr } = this.#process;
    this.ended = this.#end(file, [this.#listen(stdout, onOutput), this.#listen(stderr, onErrorOutput)]);
  }

  /** Asks the command to end. The watchdog kills it later if this process doesn't. */
  terminate(): void {
    this.signal("SIGTERM");
    this.signal("SIGCONT"); // A stopped process would not handle SIGTERM.
    this.watchdog.tell({ termInMs: null, killInMs: this.#killAfterMs });
  }

  /** Sends a signal to the command and all processes that it started; does nothing after its end. */
  signal(name: NodeJS.Signals): void {
    const { pid } = this.#process;
    if (pid === undefined) return;
    try {
      process.kill(this.#target(pid), name);
    } catch {
      // It has just ended.
    }
  }

  /** Forwards a signal from outside. The terminal already sends its own signals to the command. */
  handOn(name: NodeJS.Signals): void {
    if (this.#ownSession || (name !== "SIGINT" && name !== "SIGQUIT")) this.signal(name);
  }

  /** Returns the target of a signal: the process, or its whole group. */
  #target(pid: number): number {
    return this.#ownSession ? -pid : pid;
  }

  async #end(file: string, heard: readonly Promise<void>[]): Promise<ChildEnd> {
    const [ended] = await Promise.all([endOf(this.#process, file), ...heard]);
    return ended;
  }

  async #listen(output: Readable | null, onOutput: ChildArgs["onOutput"]): Promise<void> {
    if (!output || !onOutput) return;
    const course = { isOver: false, isPassing: false };
    let [leftMs, leftBytes] = [LAST_WORDS_MS, PIPE_BYTES_MAX];
    this.#process.once("exit", () => void (course.isOver = true));
    // The time in which output is passed on doesn't count: a reader may be slow.
    const silence = setInterval(() => {
      if (course.isOver && !course.isPassing && (leftMs -= TICK_MS) <= 0) output.destroy();
    }, TICK_MS);
    try {
      for await (const chunk of output as AsyncIterable<Buffer>) {
        if (course.isOver) leftBytes -= chunk.length;
        course.isPassing = true;
        await onOutput(chunk);
        course.isPassing = false;
        if (leftBytes < 0) break;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    } finally {
      clearInterval(silence);
    }
  }
}

function endOf(child: ChildProcess, file: string): Promise<ChildEnd> {
  return new Promise((resolve) => {
    child.once("error", ({ code = "" }: NodeJS.ErrnoException) => {
      if (child.pid !== undefined) return; // A signal could not be sent: the exit event follows.
      const isThere = code !== "ENOENT";
      resolve({
        started: false,
        exit: isThere ? "notExecutable" : "commandNotFound",
        why: isThere ? `${file} could not be started (${code})` : `${file}: command not found`,
      });
    });
    child.once("exit", (status, by) => {
      if (by === null) resolve({ started: true, status: status ?? 0 });
      else resolve({ started: true, status: statusOfSignal(by), by });
    });
  });
}
