/** A client that closes on SIGTERM: its leases are released when the process is asked to end and its work has returned. */
import type { CloseOptions } from "../hold/closing.js";
import type { LockClient } from "./lock-client.js";

/**
 * Returns `client`, closed by SIGTERM, with `drain`. The signal is then sent again for its default effect, unless there is another listener,
 * such as that of a server, or of another client of this process that is still releasing its keys.
 */
export function closedBySigterm(client: LockClient, drain: () => Promise<void>): LockClient {
  const { process } = globalThis as { readonly process?: NodeJS.Process };
  const close = client.close.bind(client);
  let isAsked = false;
  const passOn = (): void => {
    process?.off("SIGTERM", onSigterm);
    if (process?.listenerCount("SIGTERM") === 0) process.kill(process.pid, "SIGTERM");
  };
  const onSigterm = (): void => {
    // A second SIGTERM waits neither for work nor for releases.
    if (isAsked) return passOn();
    isAsked = true;
    void drain().finally(passOn);
  };
  process?.on("SIGTERM", onSigterm);
  return Object.assign(client, {
    close(options?: CloseOptions) {
      if (!isAsked) process?.off("SIGTERM", onSigterm);
      return close(options);
    },
  });
}
