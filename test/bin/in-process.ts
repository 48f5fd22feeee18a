/**
 * `holdfast` in this process: its `main` with its own streams, environment and signals, for commands that inspect and
 * operate a service over HTTP. A command that runs another command, or for which the AWS SDK needs an environment,
 * needs its own process (holdfast.ts).
 */
import { EventEmitter, once } from "node:events";
import { Writable } from "node:stream";
import { expect } from "vitest";
import { type CliProcess, main } from "../../bin/main.js";
import type { Ended, Environment } from "./holdfast.js";

export function run(args: readonly string[], env: Environment): Promise<Ended> {
  return start(args, env).ended;
}

/** Runs it with --json, and returns what it printed: one document on one line. */
export async function jsonOf(args: readonly string[], env: Environment): Promise<unknown> {
  const { status, stdout, stderr } = await run(["--json", ...args], env);
  expect({ status, stderr, lines: stdout.split("\n").length }).toEqual({ status: 0, stderr: "", lines: 2 });
  return JSON.parse(stdout) as unknown;
}

export interface Running {
  readonly ended: Promise<Ended>;
  /** Resolves with all of stdout when it matches. @throws Error if it ends without */
  printed(pattern: RegExp): Promise<string>;
  /** Sends it a signal. This process gets none. */
  signal(name: NodeJS.Signals): void;
}

export function start(args: readonly string[], env: Environment): Running {
  const signals = new EventEmitter();
  const [stdout, stderr] = [new Collector(), new Collector()];
  const host = { env, stdout, stderr, on: (...listener: Parameters<EventEmitter["on"]>) => signals.on(...listener) };
  const ended = main(args, host as unknown as CliProcess).then((status) => ({ status, stdout: stdout.text, stderr: stderr.text }));
  return {
    ended,
    signal: (name) => void signals.emit(name),
    async printed(pattern) {
      const over = ended.then(({ stderr }) => Promise.reject(new Error(`it ended without ${String(pattern)}: ${stdout.text}${stderr}`)));
      over.catch(() => undefined);
      while (!pattern.test(stdout.text)) await Promise.race([once(stdout, "more"), over]);
      return stdout.text;
    },
  };
}

/** A pipe that is read at once. It emits `more` for each text. */
class Collector extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
    this.emit("more");
  }
}
