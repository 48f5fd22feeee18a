/**
 * A key as it changes, by looking again and again. Each look says which state it knows already, so that one at which
 * nothing is new costs a read and an empty answer; a heartbeat is nothing new. It does not ask the service to hold the
 * request until something happens: a function that waits is paid by the millisecond, for as long as somebody watches.
 */
import type { Inspection } from "../../core/lock/views.js";
import { retry, pause } from "../transport/retry.js";
import { errorOf } from "../errors.js";
import type { Session } from "../session.js";
import { CALL_BUDGET_MS, closedError } from "../session.js";
import { checkMs, checkNames, checkSignal } from "../options.js";

/** Options of a watch. */
export interface WatchOptions {
  /** How long after one look the next one is made, in ms. @default 1000 (100 – 3 600 000) */
  readonly intervalMs?: number;
  /** Ends it. @default never: it ends with the loop that reads it, and with the client */
  readonly signal?: AbortSignal;
}

const INTERVAL_MS = 1000;
const INTERVAL_MIN_MS = 100;
const INTERVAL_MAX_MS = 3_600_000;

/** @throws InvalidRequestError naming what is wrong with the options of a watch. */
export function checkWatch(options: WatchOptions): void {
  checkNames("watch", options, ["intervalMs", "signal"]);
  checkMs("intervalMs", options.intervalMs, INTERVAL_MIN_MS, INTERVAL_MAX_MS);
  checkSignal(options.signal);
}

/** What is so now, then every change that a look finds. @throws LockError when looks stay without an answer, or are refused */
export async function* watch(session: Session, key: string, options: WatchOptions): AsyncGenerator<Inspection, void> {
  const { deps, registry } = session;
  const { intervalMs = INTERVAL_MS, signal } = options;
  const bounds = { attemptMs: CALL_BUDGET_MS / 2, budgetMs: CALL_BUDGET_MS };
  const isOver = (): boolean => {
    if (registry.isClosed) throw closedError();
    return signal?.aborted === true;
  };
  let ifNoneMatch: string | undefined;
  while (!isOver()) {
    const request = { key, ifNoneMatch };
    const { answer } = await registry.run(signal, (given) =>
      retry((attempt) => deps.api.inspect(request, attempt), { ...bounds, signal: given }, deps),
    );
    if (isOver()) return;
    if (!answer.ok) throw errorOf(answer, `watch ${key}`);
    if ("inspection" in answer) yield answer.inspection;
    ifNoneMatch = answer.tag;
    await registry.run(signal, (given) => pause(intervalMs, deps.clock, given));
  }
}
