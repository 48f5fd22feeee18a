/** An error of the command line's own: what happened, what to do next, and the status to end with. */
import type { ExitName } from "./exit-codes.js";
import { EXITS } from "./exit-codes.js";

/** The `code` of each kind with `--json`: the service's and the SDK's where they have one, so that a program reads one vocabulary. */
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
/** The `code` of a command that a signal ended while it waited. */
export const INTERRUPTED = "interrupted";

/** What goes with a complaint. */
export interface CliErrorDetails {
  /** @default that of its kind */
  readonly code?: string;
  /** What to do now. */
  readonly next?: string;
  /** @default the one of its name */
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

/** A signal came while nothing ran yet: what was waited for is given up, and nothing of it stays behind. */
export class Interrupted extends Error {
  /** What the SDK throws on when a wait is given up. */
  override readonly name = "AbortError";

  constructor(
    readonly by: NodeJS.Signals,
    message = `given up by ${by}`,
  ) {
    super(message);
  }
}
