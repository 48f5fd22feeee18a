/**
 * `holdfast` in this process: its `main` with its own streams, environment and signals, for commands that inspect and
 * operate a service over HTTP. A command that runs another command, or for which the AWS SDK needs an environment,
 * needs its own process (holdfast.ts).
 */
import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import { main } from "../../bin/main.js";
import type { CliProcess } from "../../bin/main.js";
import type { Ended, Environment } from "./holdfast.js";

/** Runs it to its end. */
export async function run(args: readonly string[], env: Environment): Promise<Ended> {
  const [stdout, stderr] = [new Collector(), new Collector()];
  const host = { env, stdout, stderr, on: (...listener: Parameters<EventEmitter["on"]>) => signals.on(...listener) };
  const signals = new EventEmitter();
  const status = await main(args, host as unknown as CliProcess);
  return { status, stdout: stdout.text, stderr: stderr.text };
}

/** A pipe that is read at once. */
class Collector extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
