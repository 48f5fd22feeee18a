/**
 * Plays a table of states: every command on its own key, which was brought into the state first. Each command is sent
 * twice, because a duplicate must get the same answer and change nothing.
 */
import type { AnswerTo, Command } from "../../../lib/core/commands.js";
import type { LockRecord } from "../../../lib/core/record.js";
import { type Fixture, A, B, C, D, outcomeOf } from "../fixture.js";

/** A column: the command in every state. `at` is the result of preparing the state. */
export type Column<S extends Fixture, At> = readonly [name: string, send: (fixture: S, at: At) => Promise<AnswerTo<Command>>];

/** A table, and how to play and print it. */
export interface Played<S extends Fixture, At> {
  readonly columns: readonly Column<S, At>[];
  readonly sceneOf: () => S;
  /** Brings a key into the state. */
  readonly prepare: (fixture: S) => Promise<At>;
  /** The record's description in a cell, besides its holders. */
  readonly show?: (record: LockRecord | undefined) => string;
}

/** The outcome of one command in a state: the cell, and any rule that the duplicate broke. */
export interface Came {
  readonly cell: string;
  readonly again: string;
}

/** The outcome of a duplicate, if it has another name. */
const AGAIN: Readonly<Record<string, string>> = { granted: "replayed", transferred: "replayed", recorded: "replayed" };

/** Plays a row of the table. */
export async function playRow<S extends Fixture, At>({
  columns,
  sceneOf,
  prepare,
  show,
}: Played<S, At>): Promise<Readonly<Record<string, Came>>> {
  const row = await Promise.all(
    columns.map(async ([column, send]) => {
      const fixture = sceneOf();
      const at = await prepare(fixture);
      const before = await fixture.read();
      const outcome = outcomeOf(await send(fixture, at));
      const after = await fixture.read();
      const again = outcomeOf(await send(fixture, at));
      const names = Object.keys(after?.holds ?? {}).map((id) => NAMES.get(id));
      const changed = before?.version !== after?.version;
      const cell = [outcome, [changed ? "+" : "", ...names].join(""), show?.(after)].filter(Boolean).join(" ");
      const wanted = column.startsWith("release") ? outcome : (AGAIN[outcome] ?? outcome);
      return [
        column,
        { cell, again: again === wanted ? whatChanged(outcome, after, await fixture.read()) : `sent again: ${again}` },
      ] as const;
    }),
  );
  return Object.fromEntries(row);
}

/** The row as the table has it, with `|` between its cells. */
export function rowOf<S extends Fixture, At>(columns: readonly Column<S, At>[], cells: string): Readonly<Record<string, Came>> {
  const texts = cells.split("|").map((cell) => cell.trim());
  return Object.fromEntries(columns.map(([column], index) => [column, { cell: texts[index] ?? "", again: "" }]));
}

const NAMES = new Map([
  [A, "A"],
  [B, "B"],
  [C, "C"],
  [D, "D"],
]);

/** Checks that a duplicate changes nothing; only a renewal may extend again. */
function whatChanged(outcome: string, after: LockRecord | undefined, afterAgain: LockRecord | undefined): string {
  return outcome === "renewed" || after?.version === afterAgain?.version ? "" : "sent again: the record changed";
}
