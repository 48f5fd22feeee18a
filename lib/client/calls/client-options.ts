/** The options of every client, and their checks. An error names the option and the rule. */
import { isKey } from "../../core/key.js";
import type { CloseOptions } from "../hold/closing.js";
import { InvalidRequestError } from "../wire/errors.js";
import type { LockClientEvent } from "../wire/events.js";
import { type Checks, CHECKS, checkOptions, ms, ofType } from "../wire/checks.js";

export interface ClientOptions {
  /**
   * Prepended to every key, e.g. `"billing:"`; at most 100 characters. A key that begins with it is taken as it is, so what a list, a lease
   * or an event has as its key is what every call takes. A key that would be too long is cut as {@link key} cuts it.
   */
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
  /**
   * Repeats a call that only reads, such as `list` or `inspect`, for up to 10 s until it has an answer. With false it fails at once, as suits a
   * page or a check that asks again anyway; another way, if the client has several, is still tried, and `watch` repeats its reads all the same. @default true
   */
  readonly retryReads?: boolean | undefined;
  /** Called for every event of the client's leases. Errors and rejections of the listener are ignored. */
  readonly onEvent?: ((event: LockClientEvent) => void) | undefined;
  /**
   * Closes the client on SIGTERM, so that its keys are free when its work has returned instead of when their leases expire: as `close()` does,
   * but the leases of `acquire()` have `drainMs` too. Then the signal takes its default effect, unless there is another listener for it.
   * @default false
   */
  readonly closeOnSigterm?: boolean | undefined;
  /** The default of `close({ drainMs })`, in ms, and the time on SIGTERM. @default as {@link CloseOptions.drainMs} says */
  readonly drainMs?: number | undefined;
}

/** The longest prefix. A key that is too long behind it is cut, and ends with a hash. */
const PREFIX_CHARS = 100;

/** The checks of the options of `close()`. */
export const CLOSE_OPTIONS: Checks<CloseOptions> = { drainMs: ms(0) };

const OPTIONS: Checks<ClientOptions> = {
  prefix(name, value) {
    if (value !== "" && !(typeof value === "string" && value.length <= PREFIX_CHARS && isKey(`${value}:`)))
      throw new InvalidRequestError(`prefix: must be at most ${PREFIX_CHARS} characters of A-Z a-z 0-9 . _ : ~ -`, name);
  },
  owner: CHECKS.owner,
  leaseMs: CHECKS.leaseMs,
  waitMs: CHECKS.waitMs,
  retryReads: ofType("boolean"),
  onEvent: ofType("function"),
  closeOnSigterm: ofType("boolean"),
  ...CLOSE_OPTIONS,
};

/** @throws InvalidRequestError naming the invalid option of a client that also has the options in `own`. */
export function checkClient(options: ClientOptions, own: Checks): void {
  checkOptions("createLockClient", options, { ...own, ...OPTIONS });
}
