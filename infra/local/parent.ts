/**
 * The end of the process that started this one. npm, and so `npx`, forwards no SIGKILL, and SIGTERM only to its shell, which forwards nothing.
 * So whoever ends npm would leave behind what npm started: nothing but a change of its parents tells.
 */
import { readFileSync } from "node:fs";

/** The interval at which the parents are looked at, in ms. */
const POLL_MS = 250;

/**
 * Calls `end` once, soon after the parent process has ended, or the parent of the shell that it is. Keeps no process alive. On Windows a
 * process keeps the number of a parent that has ended, and `end` isn't called.
 */
export function whenParentEnds(end: () => void): void {
  const parent = process.ppid;
  const above = parentOfShell(parent);
  const timer = setInterval(() => {
    if (process.ppid === parent && (parentOfShell(parent) ?? above) === above) return;
    clearInterval(timer);
    end();
  }, POLL_MS);
  timer.unref();
}

/** Returns the parent of a shell; undefined of any other process, and where there is no `/proc`: on macOS npm's shell doesn't stay between. */
function parentOfShell(pid: number): string | undefined {
  try {
    return /^\d+ \(\w*sh\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
