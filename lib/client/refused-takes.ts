/** The takes of limits that a client was refused lately: one that costs as much can't start sooner, so nobody needs to ask for it. */
import { type Instant, elapsedMs } from "../core/time.js";

/** A refusal of a take. */
interface RefusedTake {
  readonly cost: number;
  readonly askedAt: Instant;
  readonly retryAfterMs: number;
}

/** The most refusals that are remembered. */
const REMEMBERED_MAX = 1000;

/** The last refusal of each limit. */
export class RefusedTakes {
  readonly #ofKey = new Map<string, RefusedTake>();

  /** Returns the time in ms before which a take of this cost certainly has no room; 0 if it may have room now. */
  roomInMs(key: string, cost: number, now: Instant): number {
    const refused = this.#ofKey.get(key);
    return refused && cost >= refused.cost ? Math.max(0, Math.ceil(refused.retryAfterMs - elapsedMs(refused.askedAt, now))) : 0;
  }

  /** Remembers a refusal. */
  add(key: string, refused: RefusedTake): void {
    this.#ofKey.delete(key);
    this.#ofKey.set(key, refused);
    const [oldest = ""] = this.#ofKey.keys();
    if (this.#ofKey.size > REMEMBERED_MAX) this.#ofKey.delete(oldest);
  }
}
