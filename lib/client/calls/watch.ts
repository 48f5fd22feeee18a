/**
 * Watches a key by polling. Each poll sends the tag of the state that it knows, so a poll without news costs one read and an empty answer;
 * a heartbeat doesn't change the tag. The service doesn't hold the request until something changes: a waiting Lambda function is billed by
 * the millisecond for as long as the watch lasts.
 */
import type { Inspection } from "../../core/lock/views.js";
import { retry, pause } from "../wire/retry.js";
import { readErrorOf } from "../wire/errors.js";
import { closedError } from "../hold/registry.js";
import { type Session, CALL_BUDGET_MS } from "./session.js";
import { type Checks, CHECKS, ms } from "../wire/checks.js";

export interface WatchOptions {
  /** The pause between two polls, in ms. @default 1000 (100 – 3 600 000) */
  readonly intervalMs?: number | undefined;
  /** Ends the watch. @default never: it ends with the loop that reads it, and with the client */
  readonly signal?: AbortSignal | undefined;
}

const INTERVAL_MS = 1000;
const INTERVAL_MIN_MS = 100;
const INTERVAL_MAX_MS = 3_600_000;

export const WATCH_OPTIONS: Checks<WatchOptions> = { intervalMs: ms(INTERVAL_MIN_MS, INTERVAL_MAX_MS), signal: CHECKS.signal };

/** Yields the present state, then every change that a poll finds. @throws LockError if a poll gets no response or is refused */
export async function* watch(session: Session, key: string, options: WatchOptions): AsyncGenerator<Inspection, void> {
  const { deps, registry } = session;
  const { intervalMs = INTERVAL_MS, signal } = options;
  const bounds = { attemptMs: CALL_BUDGET_MS / 2, budgetMs: CALL_BUDGET_MS };
  const isOver = (): boolean => {
    if (registry.closedBy) throw closedError();
    return signal?.aborted === true;
  };
  let ifNoneMatch: string | undefined;
  while (!isOver()) {
    const request = { key, ifNoneMatch };
    const { answer } = await registry.run(signal, (giveUp) =>
      retry((attempt) => deps.api.inspect(request, attempt), { ...bounds, signal: giveUp }, deps),
    );
    if (isOver()) return;
    if (!answer.ok) throw readErrorOf(answer, `watch ${key}`);
    if ("inspection" in answer) yield answer.inspection;
    ifNoneMatch = answer.tag;
    await registry.run(signal, (giveUp) => pause(intervalMs, deps.clock, giveUp));
  }
}
