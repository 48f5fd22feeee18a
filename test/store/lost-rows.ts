/** A scenario of a lost response: an operation on its own key, and the write whose response is lost. */
import type { AnswerTo, Command } from "../../lib/core/commands.js";
import type { LockRecord } from "../../lib/core/record.js";
import type { LockStore } from "../../lib/store/port.js";
import type { Fixture } from "./fixture.js";

/** A write that was decided carries the version that was seen, or says that there was no record. */
export const decided = (condition: string): boolean => condition.startsWith("v = :seen") || condition.startsWith("attribute_not_exists(v)");
/** One that was sent without looking. */
export const fast = (condition: string): boolean => !decided(condition);

/** A row, on scenes of this kind. */
export interface Row<S extends Fixture> {
  readonly operation: string;
  readonly before?: (fixture: S) => Promise<unknown>;
  readonly act: (fixture: S) => Promise<AnswerTo<Command>>;
  /** Whose answer is lost. */
  readonly write: (condition: string) => boolean;
  readonly outcome: string;
  /** The outcome without the loss, if it has another name. */
  readonly otherwise?: string;
  /** Renewing again extends again: the guess's condition still holds, a decision is made anew and written once more. */
  readonly extends?: "each time" | "once more";
}

/** A row whatever its scene is. */
export interface AnyRow extends Omit<Row<Fixture>, "before" | "act"> {
  /** A key of its own to play it on. */
  open(store: LockStore): { before(): Promise<unknown>; act(): Promise<AnswerTo<Command>>; read(): Promise<LockRecord | undefined> };
}

/** Rows that are played on scenes like `make`'s. */
export function rowsOn<S extends Fixture>(make: new (store: LockStore) => S, rows: readonly Row<S>[]): readonly AnyRow[] {
  return rows.map(({ before, act, ...row }) => ({
    ...row,
    open(store) {
      const fixture = new make(store);
      return { before: async () => before?.(fixture), act: () => act(fixture), read: () => fixture.read() };
    },
  }));
}
