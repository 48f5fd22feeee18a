/** What a client may be told when it is made, whatever it speaks to, and the checks that name the option and the rule. */
import { isKey } from "../core/key.js";
import { InvalidRequestError } from "./errors.js";
import { checkNames, checkOwner } from "./options.js";

/** Something the client did or met, for metrics and logs. Never carries a leaseId. */
export interface LockClientEvent {
  /** `skipped` and `proceeded`: what became of a call whose lock could not be reached, by its `whenUnavailable`. */
  readonly type: "acquired" | "released" | "lost" | "renew-failed" | "release-failed" | "skipped" | "proceeded";
  /** Of a set: its keys, with spaces between them. */
  readonly key: string;
  /** The lease's; absent where there was none. */
  readonly fencingToken?: number;
  readonly error?: unknown;
}

/** Options of every client. */
export interface ClientOptions {
  /** Put before every key as it is, e.g. `"billing:"`. */
  readonly prefix?: string | undefined;
  /** The owner of leases that don't say otherwise: a label for people. */
  readonly owner?: string | undefined;
  /** Told of everything that happens to the client's leases. What it throws, or rejects with, is ignored. */
  readonly onEvent?: ((event: LockClientEvent) => void) | undefined;
  /**
   * When the process is told to end by SIGTERM: closes the client, so that its keys are free at once and not when their
   * leases run out, and lets the signal take its course unless somebody else listens to it. @default false
   */
  readonly closeOnSigterm?: boolean | undefined;
}

const OPTIONS = ["prefix", "owner", "onEvent", "closeOnSigterm"];

/** @throws InvalidRequestError naming what is wrong with the options of a client that takes `own` ones as well. */
export function checkClient(options: ClientOptions, own: readonly string[]): void {
  checkNames("createLockClient", options, [...own, ...OPTIONS]);
  const { prefix, owner, onEvent, closeOnSigterm } = options;
  if (prefix !== undefined && prefix !== "" && !(typeof prefix === "string" && isKey(`${prefix}:`)))
    throw new InvalidRequestError("prefix: must be what a key may begin with: characters of A-Z a-z 0-9 . _ : ~ -", "prefix");
  checkOwner(owner);
  checkType("onEvent", onEvent, "function");
  checkType("closeOnSigterm", closeOnSigterm, "boolean");
}

/** @throws InvalidRequestError when an option is given and of another type. */
export function checkType(name: string, value: unknown, ...types: readonly string[]): void {
  if (value !== undefined && !types.includes(typeof value))
    throw new InvalidRequestError(`${name}: must be a ${types.join(" or a ")}`, name);
}
