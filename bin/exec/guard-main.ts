/**
 * The watchdog's process. Its argument is the time between SIGTERM and SIGKILL in ms; its input has a message a line, and ends with the
 * holder. It prints a line if it sent SIGTERM itself.
 */
import { createInterface } from "node:readline";
import { systemClock } from "../../lib/core/time.js";
import { type GuardMessage, Guard } from "./guard.js";

process.stdout.on("error", () => undefined); // The holder may be gone.

const guard = new Guard({
  clock: systemClock,
  killAfterMs: Number(process.argv[2]),
  signal(target, name) {
    try {
      process.kill(target, name);
    } catch {
      // It has ended.
    }
  },
  onTerm: () => void process.stdout.write("SIGTERM\n"),
});
createInterface({ input: process.stdin })
  .on("line", (line) => guard.hear(JSON.parse(line) as GuardMessage))
  .on("close", () => guard.holderGone());
