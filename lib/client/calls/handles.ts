/** Lock handles: a key with its options, as a mutex, semaphore, read-write lock or segments. They have no state of their own. */
import { createHash } from "node:crypto";
import { type KeyPart, bounded } from "../../core/key.js";
import { key as keyOf } from "./key.js";
import type { LockClient, LockHandle, SegmentsHandle, Work } from "./lock-client.js";
import { type AcquireOptions, checkKey, withDefaults, optionsAndWork } from "./options.js";
import { refused, whole } from "../wire/checks.js";
import type { LockError } from "../wire/errors.js";

type LockCalls = Pick<LockClient, "tryAcquire" | "acquire" | "withLock">;

/** Returns the calls of `client` that create handles. @param random returns 0 to 1 */
export function handleCalls(client: LockCalls, random: () => number): Pick<LockClient, "mutex" | "semaphore" | "readWrite" | "segments"> {
  return {
    mutex: (name, defaults = {}) => handleOf(client, name, { ...defaults, mode: "exclusive", limit: 1 }),
    semaphore(name, defaults: Partial<AcquireOptions> | null = {}) {
      if (defaults?.limit === undefined) throw refused("limit", defaults?.limit, "a semaphore needs one");
      return handleOf(client, name, { ...defaults, mode: "exclusive" });
    },
    readWrite: (name, defaults = {}) => ({
      read: handleOf(client, name, { ...defaults, mode: "shared" }),
      write: handleOf(client, name, { ...defaults, mode: "exclusive" }),
    }),
    segments: (name, count, defaults = {}) => segmentsOf(client, name, count, defaults, random),
  };
}

/** Returns a handle of the key with these default options, which each call can override. */
function handleOf(client: LockCalls, key: string, defaults: AcquireOptions): LockHandle {
  return {
    key,
    tryAcquire(options = {}) {
      const { waitMs: _waits, ...once } = defaults;
      return client.tryAcquire(key, withDefaults(once, options));
    },
    acquire: (options = {}) => client.acquire(key, withDefaults(defaults, options)),
    withLock<T>(...rest: [Work<T>] | [AcquireOptions, Work<T>]): Promise<T> {
      const [options, work] = optionsAndWork(rest);
      return client.withLock(key, withDefaults(defaults, options), work);
    },
  };
}

const MOST_SEGMENTS = 1000;

/**
 * Returns `count` segments of `key`. A call without a part starts at a random segment. `tryAcquire` tries the next ones while they are
 * held or full; the others wait for the first one.
 * @param random returns 0 to 1
 */
function segmentsOf(client: LockCalls, key: string, count: number, defaults: AcquireOptions, random: () => number): SegmentsHandle {
  whole(1, MOST_SEGMENTS)("segments", count);
  checkKey(key);
  const keys = Array.from({ length: count }, (_, index) => bounded(`${key}:${index}`));
  const segment = (index: number): LockHandle => handleOf(client, bounded(`${key}:${index % count}`), defaults);
  const first = (): number => Math.floor(random() * count);
  return {
    keys,
    at: (part) => segment(Number.parseInt(digestHex(part), 16)),
    async tryAcquire(options = {}) {
      const from = first();
      for (let step = 0; step < count; step++) {
        const lease = await segment(from + step)
          .tryAcquire(options)
          .catch((error: unknown) => {
            if ((error as Partial<LockError> | undefined)?.code !== "key-full" || step === count - 1) throw error;
          });
        if (lease) return lease;
      }
      return null;
    },
    acquire: (options = {}) => segment(first()).acquire(options),
    withLock<T>(...rest: [Work<T>] | [AcquireOptions, Work<T>]): Promise<T> {
      const handle = segment(first());
      return handle.withLock(...optionsAndWork(rest));
    },
  };
}

/** Returns the first 48 bits of a digest, which fit into a safe integer. */
function digestHex(part: KeyPart): string {
  return createHash("sha256").update(keyOf(part)).digest("hex").slice(0, 12);
}
