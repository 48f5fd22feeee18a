/** A client that ends with its process: what it holds is released when the process is told to end. */
import type { LockClient } from "./lock-client.js";

/** What is used of Node's `process`. */
interface Process {
  readonly pid: number;
  on(signal: "SIGTERM", listener: () => void): unknown;
  off(signal: "SIGTERM", listener: () => void): unknown;
  listenerCount(signal: "SIGTERM"): number;
  kill(pid: number, signal: "SIGTERM"): unknown;
}

/**
 * `client`, closed by SIGTERM. Then the signal is sent again, to do what it would have done, unless somebody else
 * listens: as another client of this process does until its own keys are released.
 */
export function closedBySigterm(client: LockClient): LockClient {
  const { process } = globalThis as { readonly process?: Process };
  const close = client.close.bind(client);
  let isAsked = false;
  const passOn = (): void => {
    process?.off("SIGTERM", onSigterm);
    if (process?.listenerCount("SIGTERM") === 0) process.kill(process.pid, "SIGTERM");
  };
  const onSigterm = (): void => {
    // Asked once more, nobody waits for the releases.
    if (isAsked) return passOn();
    isAsked = true;
    void close().finally(passOn);
  };
  process?.on("SIGTERM", onSigterm);
  return Object.assign(client, {
    close() {
      if (!isAsked) process?.off("SIGTERM", onSigterm);
      return close();
    },
  });
}
