/** A client that ends with its process: what it holds is released when the process is told to end. */
import type { LockClient } from "./lock-client.js";

/** What is used of Node's `process`. */
interface Process {
  readonly pid: number;
  once(signal: "SIGTERM", listener: () => void): unknown;
  off(signal: "SIGTERM", listener: () => void): unknown;
  listenerCount(signal: "SIGTERM"): number;
  kill(pid: number, signal: "SIGTERM"): unknown;
}

/** `client`, closed by SIGTERM. Then the signal is sent again, to do what it would have done, unless somebody else listens. */
export function closedBySigterm(client: LockClient): LockClient {
  const { process } = globalThis as { readonly process?: Process };
  const close = client.close.bind(client);
  const onSigterm = (): void =>
    void close().finally(() => {
      if (process?.listenerCount("SIGTERM") === 0) process.kill(process.pid, "SIGTERM");
    });
  process?.once("SIGTERM", onSigterm);
  return Object.assign(client, {
    close() {
      process?.off("SIGTERM", onSigterm);
      return close();
    },
  });
}
