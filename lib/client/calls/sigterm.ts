/** A client that closes on SIGTERM: its leases are released when the process is asked to end. */
import type { LockClient } from "./lock-client.js";

/**
 * Returns `client`, closed by SIGTERM. The signal is then sent again for its default effect, unless there is another listener, such as
 * another client of this process that is still releasing its keys.
 */
export function closedBySigterm(client: LockClient): LockClient {
  const { process } = globalThis as { readonly process?: NodeJS.Process };
  const close = client.close.bind(client);
  let isAsked = false;
  const passOn = (): void => {
    process?.off("SIGTERM", onSigterm);
    if (process?.listenerCount("SIGTERM") === 0) process.kill(process.pid, "SIGTERM");
  };
  const onSigterm = (): void => {
    // A second SIGTERM doesn't wait for the releases.
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
