/** The operations on limits, as a caller requests them: the counterpart of {@link LockApi}. */
import type { Refusal } from "../errors.js";
import type { LimitView, Rate, Taken } from "../rate.js";
import type { CallOptions, PageRequest } from "./locks.js";

/** Takes `cost` from every rate of a limit, or from none. A take that is sent twice is charged twice. */
export interface TakeRequest {
  readonly key: string;
  readonly rates: readonly Rate[];
  /** @default 1 */
  readonly cost?: number | undefined;
  /** The longest time until its start, in ms: a start in the future is granted if it is that near. @default 0 */
  readonly waitMs?: number | undefined;
}

/** Shuts a limit: nothing starts for `forMs`. Sent twice, it lasts for as long from the second. */
export interface ShutRequest {
  readonly key: string;
  readonly rates: readonly Rate[];
  readonly forMs: number;
  /** For the log. */
  readonly reason: string;
}

export interface LimitFound {
  readonly ok: true;
  readonly limit: LimitView;
}

/** Limits that are not full, in the order of their names; `cursor` requests the next page. */
export interface LimitsListed {
  readonly ok: true;
  readonly items: readonly LimitView[];
  readonly cursor?: string;
}

/** Every operation on limits. */
export interface LimitApi {
  take(request: TakeRequest, options?: CallOptions): Promise<Taken | Refusal>;
  /** Answers with the time until a take of 1 may start, which is longer if the limit is shut for longer already. */
  shutLimit(request: ShutRequest, options?: CallOptions): Promise<Taken | Refusal>;
  limit(request: { readonly key: string }, options?: CallOptions): Promise<LimitFound | Refusal>;
  /** Makes a limit full. The reason is logged. */
  resetLimit(request: { readonly key: string; readonly reason: string }, options?: CallOptions): Promise<{ readonly ok: true } | Refusal>;
  limits(request: PageRequest, options?: CallOptions): Promise<LimitsListed | Refusal>;
}
