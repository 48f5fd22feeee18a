/**
 * Writes that met another one on the same item, of a transaction or of another Region, are sent again here. They were certainly not carried
 * out, and the SDK doesn't retry them.
 */
import type { Clock } from "../../core/time.js";
import type { TableCalls } from "./calls.js";
import { isWriteConflict } from "./unavailable.js";

/** Attempts at one write. */
const ATTEMPTS = 5;
/** The longest pause before the second attempt, in ms. Each further one is longer by as much. */
const PAUSE_MS = 20;

/** The clock and the jitter of the pauses. */
export interface ConflictDeps {
  readonly clock: Pick<Clock, "after">;
  /** Returns a number from 0 to 1, for jitter. */
  readonly random: () => number;
}

/** Sends a write, and again after a pause if it met another one. @throws the error of the last attempt */
export async function untilNoConflict<Result>(send: () => Promise<Result>, { clock, random }: ConflictDeps): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (!isWriteConflict(error) || attempt === ATTEMPTS) throw error;
      await new Promise<void>((resolve) => clock.after(random() * PAUSE_MS * attempt, resolve));
    }
  }
}

/** Returns these operations, whose writes of one item are sent again after a conflict. A transaction needs a new token each time. */
export function repeatingConflicts(calls: TableCalls, deps: ConflictDeps): TableCalls {
  return {
    updateItem: (input) => untilNoConflict(() => calls.updateItem(input), deps),
    getItem: (input) => calls.getItem(input),
    query: (input) => calls.query(input),
    transactWriteItems: (input) => calls.transactWriteItems(input),
  };
}

/** Returns these operations, and calls `onConflict` for each attempt at a write that met another one. */
export function tellingConflicts(calls: TableCalls, onConflict: () => void): TableCalls {
  const told = async <Result>(sent: Promise<Result>): Promise<Result> => {
    try {
      return await sent;
    } catch (error) {
      if (isWriteConflict(error)) onConflict();
      throw error;
    }
  };
  return {
    updateItem: (input) => told(calls.updateItem(input)),
    getItem: (input) => calls.getItem(input),
    query: (input) => calls.query(input),
    transactWriteItems: (input) => calls.transactWriteItems(input),
  };
}
