/** The stored result of a command: its status and its output, as JSON that users of the SDK can read too. */
import { isUtf8 } from "node:buffer";

/** The result of a run by `holdfast once`. */
export interface CommandResult {
  readonly exitCode: number;
  /** Its output. Absent if it is not text or was not stored. */
  readonly stdout?: string;
  /** Its output in base64, if it is not text. */
  readonly stdoutBase64?: string;
  /** The size of an output that was too large to be stored, in bytes. */
  readonly stdoutOmittedBytes?: number;
}

/** The service's limit for a result as JSON, in bytes. */
export const RESULT_BYTES = 256 * 1024;

/** Collects a command's output, in no more memory than can be stored. */
export class OutputBuffer {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= RESULT_BYTES) this.#chunks.push(chunk);
    else this.#chunks.length = 0;
  }

  /** Returns the result of a command that ended with `exitCode`. */
  result(exitCode: number): CommandResult {
    const omitted = { exitCode, stdoutOmittedBytes: this.#bytes };
    if (this.#bytes > RESULT_BYTES) return omitted;
    const all = Buffer.concat(this.#chunks);
    const whole = isUtf8(all) ? { exitCode, stdout: all.toString("utf8") } : { exitCode, stdoutBase64: all.toString("base64") };
    return Buffer.byteLength(JSON.stringify(whole)) <= RESULT_BYTES ? whole : omitted;
  }
}

/** A replayed result: the status and the output to print, or the size of an output that was not stored. */
export type Replay = { readonly exitCode: number; readonly stdout: Buffer } | { readonly exitCode: number; readonly omittedBytes: number };

/** Returns the replay of a stored result. A result recorded by other code is printed as text, or as JSON. */
export function replayOf(value: unknown): Replay {
  const { exitCode, stdout, stdoutBase64, stdoutOmittedBytes } = isOurs(value) ? value : foreign(value);
  if (stdoutOmittedBytes !== undefined) return { exitCode, omittedBytes: stdoutOmittedBytes };
  return { exitCode, stdout: stdoutBase64 === undefined ? Buffer.from(stdout ?? "") : Buffer.from(stdoutBase64, "base64") };
}

function isOurs(value: unknown): value is CommandResult {
  if (typeof value !== "object" || value === null) return false;
  const { exitCode, stdout, stdoutBase64, stdoutOmittedBytes } = value as { readonly [name in keyof CommandResult]: unknown };
  const printed = typeof stdout === "string" || typeof stdoutBase64 === "string" || Number.isSafeInteger(stdoutOmittedBytes);
  return Number.isInteger(exitCode) && (exitCode as number) >= 0 && (exitCode as number) <= 255 && printed;
}

function foreign(value: unknown): CommandResult {
  if (value === undefined) return { exitCode: 0, stdout: "" };
  return { exitCode: 0, stdout: typeof value === "string" ? value : `${JSON.stringify(value)}\n` };
}
