/**
 * The exit statuses of `holdfast`: the numbers of sysexits.h where it has one, and those of the shell for running a command.
 * docs/command-line.md has the same table; a test compares them.
 */
import { constants } from "node:os";

interface Exit {
  readonly status: number;
  /** Its name in sysexits.h; empty if it has none there. */
  readonly name: string;
  readonly meaning: string;
}

/** Every status of `holdfast` itself. The command that it runs can end with others. */
export const EXITS = {
  ok: { status: 0, name: "EX_OK", meaning: "Done" },
  usage: { status: 64, name: "EX_USAGE", meaning: "The command line breaks a rule. Nothing was sent, or it was refused" },
  refused: {
    status: 65,
    name: "EX_DATAERR",
    meaning: "Refused, and the same again will be too: another fingerprint or limit, no attempt left, another hold by now",
  },
  notFound: {
    status: 66,
    name: "EX_NOINPUT",
    meaning: "Not found: no hold to break, no run to show or to reset, no occurrence that was done in time",
  },
  unavailable: {
    status: 69,
    name: "EX_UNAVAILABLE",
    meaning: "The service or the table did not answer, or could not decide. The message says whether it may have happened",
  },
  internal: { status: 70, name: "EX_SOFTWARE", meaning: "Something went wrong inside of the service or of `holdfast`: a defect" },
  notKept: {
    status: 73,
    name: "EX_CANTCREAT",
    meaning: "`once`: the command succeeded, now or earlier, and its output was too large to be kept. It will not run again",
  },
  notPrinted: {
    status: 74,
    name: "EX_IOERR",
    meaning: "The output could not be written, as on a full disk. What the command did or recorded stays done",
  },
  notGot: {
    status: 75,
    name: "EX_TEMPFAIL",
    meaning: "Not acquired in time: the key is held, another caller has the run, or the limit has no room. The command was not run",
  },
  lost: { status: 76, name: "EX_PROTOCOL", meaning: "The lease was lost while the command ran, whatever the command's own status" },
  forbidden: { status: 77, name: "EX_NOPERM", meaning: "This principal may not do that" },
  config: {
    status: 78,
    name: "EX_CONFIG",
    meaning: "The location of the locks is missing or wrong, or AWS's credentials, the Region or a needed package are missing",
  },
  notExecutable: { status: 126, name: "", meaning: "The command was found and could not be started" },
  commandNotFound: { status: 127, name: "", meaning: "The command was not found" },
} as const satisfies Record<string, Exit>;

/** The name of a status. */
export type ExitName = keyof typeof EXITS;

/** The status of a process that a signal ended is this plus the signal's number, as in a shell. */
export const SIGNAL_BASE = 128;

/** Returns the status of a process that a signal ended. */
export function statusOfSignal(name: NodeJS.Signals): number {
  return SIGNAL_BASE + constants.signals[name];
}
