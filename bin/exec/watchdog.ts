/**
 * Ends a command when its lock holder, this process, is killed in a way that it can't handle. A shell runs beside the command and waits for
 * the end of its input, which comes when this process is gone for any reason.
 */
import { spawn } from "node:child_process";

/**
 * The shell's script. The first line names a process, or a group as a negative number; `$1` is the time between SIGTERM and SIGKILL, in
 * seconds.
 */
const SCRIPT = 'read -r target || exit 0; read -r end_of_holder; kill -s TERM -- "$target"; sleep "$1"; kill -s KILL -- "$target"';

/** A watchdog that is ready. */
export interface Watchdog {
  /**
   * Watches `target`, a process, or a group as a negative number: ends it if this process ends. Call it immediately after starting the
   * target, because nothing would end the target in between.
   */
  watch(target: number): void;
  /** Stops watching. */
  dismiss(): void;
}

/** Starts a watchdog before the process that it watches, so that the process never runs without one. */
export function startWatchdog(killAfterMs: number): Watchdog {
  if (process.platform === "win32") return { watch: () => undefined, dismiss: () => undefined };
  const shell = spawn("sh", ["-c", SCRIPT, "holdfast-guard", String(killAfterMs / 1000)], {
    detached: true, // A signal to this process's group, such as Ctrl-C, must not reach it.
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.on("error", () => undefined); // Without a shell there is no watchdog.
  shell.stdin.on("error", () => undefined);
  shell.unref();
  return {
    watch: (target) => void shell.stdin.write(`${target}\n`),
    dismiss: () => void shell.kill("SIGKILL"),
  };
}
