/** Makes leaseIds whose timestamp the service accepts, even if this process's clock is wrong. */
import type { Refusal } from "../../core/errors.js";
import { type LeaseId, leaseIdFrom } from "../../core/lease-id.js";
import type { Clock } from "../../core/time.js";

/** Makes leaseIds from this process's clock, corrected by the service's time. */
export class LeaseIds {
  readonly #clock: Clock;
  readonly #randomBytes: (count: number) => Uint8Array;
  #correctionMs = 0;

  constructor(clock: Clock, randomBytes: (count: number) => Uint8Array) {
    this.#clock = clock;
    this.#randomBytes = randomBytes;
  }

  /** Returns a new id with a timestamp later than `aboveMs`, of this age in ms. */
  next(aboveMs = 0, ageMs = 0): LeaseId {
    return leaseIdFrom(Math.max(this.#clock.wallMs() + this.#correctionMs - ageMs, aboveMs + 1), this.#randomBytes(10));
  }

  /** Takes the service's time from the refusal of an id. */
  correct({ serverTimeMs }: Refusal): void {
    if (serverTimeMs !== undefined) this.#correctionMs = serverTimeMs - this.#clock.wallMs();
  }
}
