/** An error of the command line: what happened, advice, and the exit status. */
import { type ExitName, EXITS } from "./exit-codes.js";

/** The `code` of each kind for `--json`: that of the service or the SDK where they have one, so that programs read one vocabulary. */
export const CODES: Readonly<Record<ExitName, string>> = {
  ok: "ok",
  usage: "invalid-request",
  refused: "refused",
  notFound: "not-found",
  unavailable: "unavailable",
  internal: "internal",
  notKept: "result-omitted",
  notPrinted: "output-failed",
  notGot: "wait-timeout",
  lost: "lease-lost",
  forbidden: "forbidden",
  config: "not-configured",
  notExecutable: "not-executable",
  commandNotFound: "command-not-found",
};
/** The `code` of a command that a signal interrupted while it waited. */
export const INTERRUPTED = "interrupted";

export interface CliErrorDetails {
  /** The code. @default that of its kind */
  readonly code?: string;
  readonly next?: string;
  /** The exit status. @default that of its kind */
  readonly status?: number;
}

/** Ends the command with a message of one or two lines. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly code: string;
  readonly status: number;
  readonly next: string;

  constructor(exit: ExitName, message: string, { code = CODES[exit], next = "", status = EXITS[exit].status }: CliErrorDetails = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.next = next;
  }
}

/** A signal arrived before anything ran: the wait is cancelled and leaves nothing behind. */
export class Interrupted extends Error {
  /** The name of the error that the SDK rethrows when a wait is cancelled. */
  override readonly name = "AbortError";

  constructor(
    readonly by: NodeJS.Signals,
    message = `given up by ${by}`,
  ) {
    super(message);
  }
}
