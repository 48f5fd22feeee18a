/** A scenario of a lost response: an operation on its own key, and the write whose response is lost. */
import type { AnswerTo, Command } from "../../../lib/core/commands.js";
import type { LockRecord } from "../../../lib/core/record.js";
import type { LockStore } from "../../../lib/store/port.js";
import type { Fixture } from "../fixture.js";

/** True for the condition of a write that followed a read: it has the version seen, or requires that there is no record. */
export const decided = (condition: string): boolean => condition.startsWith("v = :seen") || condition.startsWith("attribute_not_exists(v)");
/** True for the condition of a write on the fast path, without a read. */
export const fast = (condition: string): boolean => !decided(condition);

/** A row, on fixtures of this type. */
export interface Row<S extends Fixture> {
  readonly operation: string;
  readonly before?: (fixture: S) => Promise<unknown>;
  readonly act: (fixture: S) => Promise<AnswerTo<Command>>;
  /** Selects the write whose response is lost. */
  readonly write: (condition: string) => boolean;
  readonly outcome: string;
  /** The outcome without the loss, if it has another name. */
  readonly otherwise?: string;
  /** A repeated renewal extends the lease again. Either the fast path's condition still holds, or a new decision is written once more. */
  readonly extends?: "each time" | "once more";
}

/** A row on any type of fixture. */
export interface AnyRow extends Omit<Row<Fixture>, "before" | "act"> {
  /** Opens a key of its own for the row. */
  open(store: LockStore): { before(): Promise<unknown>; act(): Promise<AnswerTo<Command>>; read(): Promise<LockRecord | undefined> };
}

/** Rows on fixtures that `make` constructs. */
export function rowsOn<S extends Fixture>(make: new (store: LockStore) => S, rows: readonly Row<S>[]): readonly AnyRow[] {
  return rows.map(({ before, act, ...row }) => ({
    ...row,
    open(store) {
      const fixture = new make(store);
      return { before: async () => before?.(fixture), act: () => act(fixture), read: () => fixture.read() };
    },
  }));
}
