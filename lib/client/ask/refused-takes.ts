/**
 * The takes of limits that a client was refused lately. The same take can't start sooner, so nobody needs to ask for it. Another cost or other
 * rates get an answer of their own, and after {@link REFUSED_FOR_MS} so does the same, because an operator may have reset the limit.
 */
import { type RateWithBurst, ratesText, REFUSED_FOR_MS } from "../../core/rate.js";
import { type Instant, elapsedMs } from "../../core/time.js";

interface AskedTake {
  readonly rates: readonly RateWithBurst[];
  readonly cost: number;
}

/** A refusal of a take: it has no room, or others use the limit with other rates. */
interface RefusedTake extends AskedTake {
  readonly code: string;
  readonly askedAt: Instant;
  readonly retryAfterMs: number;
}

/** The most refusals that are remembered. */
const REMEMBERED_MAX = 1000;

/** The last refusal of each limit. */
export class RefusedTakes {
  readonly #ofKey = new Map<string, RefusedTake>();

  /** Returns the code of the refusal that this take certainly gets, and the time in ms for which it does; undefined if it may be granted. */
  refusalOf(key: string, { rates, cost }: AskedTake, now: Instant): Pick<RefusedTake, "code" | "retryAfterMs"> | undefined {
    const refused = this.#ofKey.get(key);
    if (refused?.cost !== cost || ratesText(refused.rates) !== ratesText(rates)) return undefined;
    const { code, askedAt, retryAfterMs } = refused;
    const sinceMs = elapsedMs(askedAt, now);
    const leftMs = Math.ceil(retryAfterMs - sinceMs);
    return sinceMs > REFUSED_FOR_MS || leftMs <= 0 ? undefined : { code, retryAfterMs: leftMs };
  }

  /** Remembers a refusal. */
  add(key: string, refused: RefusedTake): void {
    this.#ofKey.delete(key);
    this.#ofKey.set(key, refused);
    const [oldest = ""] = this.#ofKey.keys();
    if (this.#ofKey.size > REMEMBERED_MAX) this.#ofKey.delete(oldest);
  }

  /** Forgets the refusals of a limit that was reset. */
  forget(key: string): void {
    this.#ofKey.delete(key);
  }
}
