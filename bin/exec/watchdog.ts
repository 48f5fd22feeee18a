/**
 * Ends a command when its lock holder, this process, is killed or stands still. A process beside the command (guard-main.ts) is told at
 * every look for how long the lease is held. It ends the command when that time is over, and when this process is gone for any reason.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import type { EndTimes, GuardMessage } from "./guard.js";

export interface Watchdog {
  /**
   * Watches `target`, a process, or a group as a negative number. Call it immediately after starting the target, because nothing would end
   * the target in between.
   */
  watch(target: number): void;
  /** Tells when the target is to end, if nothing else is told before. */
  tell(ending: EndTimes): void;
  /** Stops watching. Returns true if it asked the target to end. */
  dismiss(): Promise<boolean>;
}

const PROGRAM = fileURLToPath(new URL("./guard-main.js", import.meta.url));

/**
 * Starts a watchdog before the process that it watches, so that the process never runs without one.
 * @param killAfterMs the time between SIGTERM and SIGKILL once this process is gone, in ms
 */
export function startWatchdog(killAfterMs: number): Watchdog {
  if (process.platform === "win32") return { watch: () => undefined, tell: () => undefined, dismiss: () => Promise.resolve(false) };
  const guard = spawn(process.execPath, [PROGRAM, String(killAfterMs)], {
    detached: true, // A signal to this process's group, such as Ctrl-C, must not reach it.
    stdio: ["pipe", "pipe", "ignore"],
    env: { ...process.env, NODE_OPTIONS: "" }, // Options such as --inspect are meant for this process.
  });
  let hasTermed = false;
  guard.on("error", () => undefined); // Without a process there is no watchdog.
  guard.stdin.on("error", () => undefined);
  guard.stdout.on("data", () => (hasTermed = true));
  const closed = new Promise<void>((resolve) => void guard.on("close", resolve));
  hold(guard, "unref");
  const send = (message: GuardMessage): void => void guard.stdin.write(`${JSON.stringify(message)}\n`);
  return {
    watch: (target) => send({ target }),
    tell: (ending) => send({ ...ending, sentWallMs: Date.now() }),
    async dismiss() {
      hold(guard, "ref");
      guard.kill("SIGKILL");
      await closed;
      return hasTermed;
    },
  };
}

/** Makes this process stay alive for the watchdog, or not. */
function hold(guard: ChildProcess, how: "ref" | "unref"): void {
  for (const part of [guard, guard.stdin, guard.stdout] as readonly (ChildProcess | Socket | null)[]) part?.[how]();
}
