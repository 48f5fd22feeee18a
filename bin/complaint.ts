/** An error of the command line's own: what happened, what to do next, and the status to end with. */
import type { ExitName } from "./exit-codes.js";
import { EXITS } from "./exit-codes.js";

/** What goes with a complaint. */
export interface ComplaintDetails {
  /** What to do now. */
  readonly next?: string;
  /** @default the one of its name */
  readonly status?: number;
}

/** Ends the command with a message of one or two lines. */
export class Complaint extends Error {
  override readonly name: string = "Complaint";
  readonly code: string;
  readonly status: number;
  readonly next: string;

  constructor(exit: ExitName, message: string, { next = "", status = EXITS[exit].status }: ComplaintDetails = {}) {
    super(message);
    this.code = EXITS[exit].name;
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
