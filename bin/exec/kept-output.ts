/** What a run keeps of its command: the status, and what it printed, as JSON that the SDK's users can read too. */
import { isUtf8 } from "node:buffer";

/** The result of a run by `holdfast once`. */
export interface Kept {
  readonly exitCode: number;
  /** What it printed. Absent when that is not text, or was not kept. */
  readonly stdout?: string;
  /** What it printed, when that is not text. */
  readonly stdoutBase64?: string;
  /** What it printed was too large to be kept, and had so many bytes. */
  readonly stdoutOmittedBytes?: number;
}

/** The service keeps as much, as JSON. */
export const KEPT_BYTES = 256 * 1024;

/** Takes what a command prints, in no more memory than can be kept. */
export class Output {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= KEPT_BYTES) this.#chunks.push(chunk);
    else this.#chunks.length = 0;
  }

  /** The result of a command that ended with `exitCode`. */
  kept(exitCode: number): Kept {
    const omitted = { exitCode, stdoutOmittedBytes: this.#bytes };
    if (this.#bytes > KEPT_BYTES) return omitted;
    const all = Buffer.concat(this.#chunks);
    const whole = isUtf8(all) ? { exitCode, stdout: all.toString("utf8") } : { exitCode, stdoutBase64: all.toString("base64") };
    return Buffer.byteLength(JSON.stringify(whole)) <= KEPT_BYTES ? whole : omitted;
  }
}

/** What a caller is given of a result: what to print, and the status; or how much of it there was and is not any more. */
export type Replay = { readonly exitCode: number; readonly stdout: Buffer } | { readonly exitCode: number; readonly omittedBytes: number };

/** A result as it was kept; one that other code recorded is printed as text, or as JSON. */
export function replayOf(value: unknown): Replay {
  const { exitCode, stdout, stdoutBase64, stdoutOmittedBytes } = isOurs(value) ? value : foreign(value);
  if (stdoutOmittedBytes !== undefined) return { exitCode, omittedBytes: stdoutOmittedBytes };
  return { exitCode, stdout: stdoutBase64 === undefined ? Buffer.from(stdout ?? "") : Buffer.from(stdoutBase64, "base64") };
}

function isOurs(value: unknown): value is Kept {
  if (typeof value !== "object" || value === null) return false;
  const { exitCode, stdout, stdoutBase64, stdoutOmittedBytes } = value as { readonly [name in keyof Kept]: unknown };
  const printed = typeof stdout === "string" || typeof stdoutBase64 === "string" || Number.isSafeInteger(stdoutOmittedBytes);
  return Number.isInteger(exitCode) && (exitCode as number) >= 0 && (exitCode as number) <= 255 && printed;
}

function foreign(value: unknown): Kept {
  if (value === undefined) return { exitCode: 0, stdout: "" };
  return { exitCode: 0, stdout: typeof value === "string" ? value : `${JSON.stringify(value)}\n` };
}
