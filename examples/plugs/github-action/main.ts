/** The step of the action: starts a process that holds the key until the post step, and ends when the key is held. */
import { fork } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";

/** The one message of the process that holds the key: that it does, or why it doesn't. */
export type Told = { readonly port: number; readonly fencingToken: number } | { readonly error: string };

// Detached, so that it outlives this step. The runner ends what is left when the job is over.
const holder = fork(join(import.meta.dirname, "hold.mjs"), { detached: true, stdio: "ignore" });
holder.once("message", (told: Told) => {
  if ("error" in told) {
    console.log(`::error::${told.error}`);
    process.exitCode = 1;
  } else {
    appendFileSync(process.env["GITHUB_STATE"]!, `port=${told.port}\n`);
    appendFileSync(process.env["GITHUB_OUTPUT"]!, `fencing-token=${told.fencingToken}\n`);
    console.log(`held under token ${told.fencingToken}`);
  }
  holder.removeAllListeners("exit").disconnect();
  holder.unref();
});
holder.once("exit", (status) => {
  console.log(`::error::the process that should hold the key ended with ${status}`);
  process.exitCode = 1;
});
