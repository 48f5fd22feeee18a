/** Makes leaseIds whose time the service accepts, although this process's clock may be wrong. */
import type { Refusal } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import { leaseIdFrom } from "../../core/lease-id.js";
import type { Clock } from "../../core/time.js";

/** Makes leaseIds by this process's clock, corrected by what the service said of its own. */
export class LeaseIds {
  readonly #clock: Clock;
  readonly #randomBytes: (count: number) => Uint8Array;
  #correctionMs = 0;

  constructor(clock: Clock, randomBytes: (count: number) => Uint8Array) {
    this.#clock = clock;
    this.#randomBytes = randomBytes;
  }

  /** A new id, made after `aboveMs`. */
  next(aboveMs = 0): LeaseId {
    return leaseIdFrom(Math.max(this.#clock.wallMs() + this.#correctionMs, aboveMs + 1), this.#randomBytes(10));
  }

  /** Learns the service's time from a refused id. */
  correct({ serverTimeMs }: Refusal): void {
    if (serverTimeMs !== undefined) this.#correctionMs = serverTimeMs - this.#clock.wallMs();
  }
}
