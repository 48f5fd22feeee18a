/** The interface of the contestants of a benchmark: a lock to acquire and to release, on servers of this machine. */

/** The servers, and how often a contestant without a queue asks again. */
export interface Arena {
  /** The DynamoDB engine. */
  readonly endpoint: string;
  /** The lock service. */
  readonly url: string;
  /** The port of a Redis server, if this machine has one. */
  readonly redisPort?: number;
  /** The pause between two requests for a key that is held, in ms. */
  readonly pollMs: number;
}

/** A way to lock a key. */
export interface Contestant {
  /** Waits until the key is held, and returns its release. */
  acquire(key: string): Promise<() => Promise<unknown>>;
  /** The requests sent since the start, for a contestant that doesn't use HTTP. */
  requests?(): number;
}

/** A contestant's title, and how to open it. */
export interface Entry {
  readonly title: string;
  /** True if it can't wait for a key that is held. */
  readonly isForCyclesOnly?: boolean;
  /** True if its packages are there; absent if it needs none. */
  readonly isInstalled?: () => boolean;
  readonly open: (arena: Arena) => Promise<Contestant> | Contestant;
}

/** The contestant that all others are compared with. */
export const BASE_ID = "sdk";

/** The table of holdfast, which the service also uses. */
export const LOCKS_TABLE = "holdfast";
/** A table of the same layout, for the others. */
export const PLAIN_TABLE = "plain-locks";
/** A table whose key is one attribute, for the libraries that know no other. */
export const ONE_KEY_TABLE = "one-key-locks";
export const ONE_KEY = "key";
