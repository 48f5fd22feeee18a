/** The outcome of a command under a lease, as an exit status or as a CLI error if the lease was lost. */
import { CliError } from "../cli-error.js";
import type { Outcome } from "./supervise.js";

/** Returns the command's own status. @throws CliError if it could not be started. */
export function statusOf(outcome: Outcome): number {
  if (!outcome.started) throw new CliError(outcome.exit, outcome.why);
  return outcome.status;
}

/** Returns the error for a lost lease. `why` is its reason; it doesn't count for a command that was ended while the lease was still held. */
export function lostUnder(key: string, outcome: Outcome, why: string): CliError {
  const how = outcome.cutOff ? "the command was ended" : `the command had ended${outcome.started ? ` with ${outcome.status}` : ""}`;
  if (outcome.cutOff && outcome.inTime) {
    return new CliError("lost", `${key}: no renewal of the lease was answered, and ${how} while it was still held`, {
      next: "Nobody else held the key meanwhile. What the command left undone is its own affair.",
    });
  }
  return new CliError("lost", `the lease was lost while the command ran, and ${how}: ${why}`, {
    next: "Another may have held the key before it ended: look at what it did before it runs again.",
  });
}
