/** The errors of waits that timed out: each says who holds the key. */
import { isA } from "../../core/brand.js";
import type { HolderView } from "../../core/errors.js";
import { type Instant, elapsedMs, instantOf } from "../../core/time.js";
import { CANCEL_HOLDS_MS } from "../ask/fresh-id.js";
import { LockTimeoutError, timeoutOf } from "../wire/errors.js";
import type { Session } from "./session.js";

/** The time for which the holders are reused that were read for a wait that timed out. */
const REUSED_MS = 1000;

/** The waits of one client that time out. */
export class TimedOutWaits {
  readonly #session: Session;
  /** The holders of each key that was read in the last second; an empty list while a read is in progress. */
  readonly #holders = new Map<string, readonly HolderView[]>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Throws the error that ended a wait; a timeout gets the holders of the key, if its cancel left time to look, and the time waited. */
  async refuse(error: unknown, what: string, key: string, began: Instant, waitMs: number): Promise<never> {
    if (!isA(error, LockTimeoutError)) throw error;
    const waitedMs = elapsedMs(began, instantOf(this.#session.deps.clock));
    const lookMs = CANCEL_HOLDS_MS - Math.max(0, waitedMs - waitMs);
    const holders = error.holders.length > 0 ? error.holders : await this.#holdersOf(key, lookMs);
    const { position, retryAfterMs, cause } = error;
    throw timeoutOf(what, { holders, position, retryAfterMs, cause }, waitedMs);
  }

  /**
   * Returns the key's holders, if there is time to read them. If many callers time out together, the first reads them and the others reuse
   * the result for a second.
   */
  async #holdersOf(key: string, lookMs: number): Promise<readonly HolderView[]> {
    const recent = this.#holders.get(key);
    if (recent || lookMs <= 0) return recent ?? [];
    this.#holders.set(key, []);
    const { deps } = this.#session;
    const found = await this.#session.read("inspect", (call) => deps.api.inspect({ key }, call), lookMs).catch(() => undefined);
    const holders = found && "inspection" in found ? found.inspection.holders : [];
    this.#holders.set(key, holders);
    deps.clock.inBackground(REUSED_MS, () => this.#holders.delete(key));
    return holders;
  }
}
