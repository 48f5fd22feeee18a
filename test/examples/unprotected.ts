/** A client for controls: `runOnce` without any protection. The example's own code is unchanged. */
import type { LockClient, Run, RunOptions } from "../../lib/index.js";

/** A client whose `runOnce` simply calls the work, as the first attempt with its key. */
export function unprotected(): LockClient {
  let fencingToken = 0;
  const client = {
    async runOnce<T>(idempotencyKey: string, _options: RunOptions, work: (run: Run) => Promise<T> | T) {
      const run: Run = {
        idempotencyKey,
        attempt: 1,
        takeover: false,
        checkpoint: undefined,
        fencingToken: ++fencingToken,
        signal: new AbortController().signal,
        remainingMs: () => 0,
        isHeld: () => true,
        assertHeld: () => undefined,
        progress: () => true,
        saveCheckpoint: () => Promise.resolve(),
      };
      return { value: await work(run), replayed: false, attempt: 1 };
    },
    forInvocation: () => client,
  };
  return client as unknown as LockClient;
}
