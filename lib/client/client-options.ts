/** The options of every client, and their checks. An error names the option and the rule. */
import { isKey } from "../core/key.js";
import * as LIMITS from "../core/request-limits.js";
import { InvalidRequestError } from "./errors.js";
import { checkMs, checkNames, checkOwner } from "./options.js";

/** A client event, for metrics and logs. It never carries a leaseId. */
export interface LockClientEvent {
  /**
   * The type. `refused` and `unavailable` report a wrapper (`withLock`, `withLocks`, `runOnce`, `elect`, and what is built on them) that could
   * not run its work: because it was refused, such as by a timeout, or because the locks could not be reached; `error` says why. `skipped`
   * and `proceeded` report a call whose locks could not be reached, according to its `whenUnavailable`. Of a client
   * with two ways (`holdfast/dynamodb`): `failover` reports that new requests go straight to the table, `fallback` that they go to the
   * service again, and `failover-refused` that they never will go to the table, because it would not know this client's leases.
   */
  readonly type:
    | ("acquired" | "released" | "lost" | "renew-failed" | "release-failed")
    | ("refused" | "unavailable" | "skipped" | "proceeded")
    | ("failover" | "fallback" | "failover-refused");
  /** The key; the keys of a set, separated by spaces; empty for a change of the way. */
  readonly key: string;
  /** The lease's token; absent if there was no lease. */
  readonly fencingToken?: number;
  readonly error?: unknown;
}

/** Options of every client. */
export interface ClientOptions {
  /** Prepended to every key unchanged, e.g. `"billing:"`. */
  readonly prefix?: string | undefined;
  /** The default owner of leases: a label for people. */
  readonly owner?: string | undefined;
  /** The default length of leases, in ms, of locks, sets and runs. @default 30 000 (1 000 – 86 400 000) */
  readonly leaseMs?: number | undefined;
  /**
   * The default time to wait for a key or for a concurrent run, in ms; 0 asks once. It should be longer than a crashed holder blocks the key:
   * the lease, about a second more, and a poll.
   * @default 45 000, or 1.5 × `leaseMs` if that is longer
   */
  readonly waitMs?: number | undefined;
  /** Called for every event of the client's leases. Errors and rejections of the listener are ignored. */
  readonly onEvent?: ((event: LockClientEvent) => void) | undefined;
  /**
   * Closes the client on SIGTERM, so that its keys are free at once instead of when their leases expire. Then the signal takes its default
   * effect, unless there is another listener for it. @default false
   */
  readonly closeOnSigterm?: boolean | undefined;
}

const OPTIONS = ["prefix", "owner", "leaseMs", "waitMs", "onEvent", "closeOnSigterm"];

/** @throws InvalidRequestError naming the invalid option of a client that also has the options in `own`. */
export function checkClient(options: ClientOptions, own: readonly string[]): void {
  checkNames("createLockClient", options, [...own, ...OPTIONS]);
  const { prefix, owner, leaseMs, waitMs, onEvent, closeOnSigterm } = options;
  if (prefix !== undefined && prefix !== "" && !(typeof prefix === "string" && isKey(`${prefix}:`)))
    throw new InvalidRequestError("prefix: must be characters of A-Z a-z 0-9 . _ : ~ -", "prefix");
  checkOwner(owner);
  checkMs("leaseMs", leaseMs, LIMITS.leaseMinMs, LIMITS.leaseMaxMs);
  checkMs("waitMs", waitMs, 0, Number.MAX_SAFE_INTEGER);
  checkType("onEvent", onEvent, "function");
  checkType("closeOnSigterm", closeOnSigterm, "boolean");
}

/** @throws InvalidRequestError if the option is given and has another type. */
export function checkType(name: string, value: unknown, ...types: readonly string[]): void {
  if (value !== undefined && !types.includes(typeof value))
    throw new InvalidRequestError(
      `${name}: must be ${types.map((type) => (type === "object" ? "an object" : `a ${type}`)).join(" or ")}`,
      name,
    );
}
