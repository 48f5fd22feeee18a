/**
 * A command must not outlive who holds its lock, even if that is killed in a way that it can't notice. Beside the
 * command stands a shell that waits for the end of its input: it comes when this process is gone, however.
 */
import { spawn } from "node:child_process";

/** The first line names a process, or the group of a negative number; `$1` are the seconds between asking it to end and forcing it. */
const SCRIPT = 'read -r target || exit 0; read -r end_of_holder; kill -s TERM -- "$target"; sleep "$1"; kill -s KILL -- "$target"';

/** A guard that stands ready. */
export interface Watchdog {
  /**
   * From now on it ends `target`, a process or as a negative number a group, should this process end. Call it in the same
   * breath in which the target was started: in between, nothing would end it.
   */
  watch(target: number): void;
  /** It does so no more. */
  dismiss(): void;
}

/** A guard for what is started next: there before it, so that nothing runs without one. */
export function startWatchdog(killAfterMs: number): Watchdog {
  if (process.platform === "win32") return { watch: () => undefined, dismiss: () => undefined };
  const shell = spawn("sh", ["-c", SCRIPT, "holdfast-guard", String(killAfterMs / 1000)], {
    detached: true, // What ends this process, such as a Ctrl-C, must leave it alone.
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.on("error", () => undefined); // There is no shell: there is no guard either.
  shell.stdin.on("error", () => undefined);
  shell.unref();
  return {
    watch: (target) => void shell.stdin.write(`${target}\n`),
    dismiss: () => void shell.kill("SIGKILL"),
  };
}
