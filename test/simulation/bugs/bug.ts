/** A must-fail switch, as each list of them has it. */
import type { Property } from "../oracles/verdict.js";

/** One mistake. */
export interface Bug {
  readonly name: string;
  /** The reason why a developer might do this, and the property that it breaks. */
  readonly why: string;
  readonly file: string;
  /**
   * The file and the title of the test that fails with it, where no history has to show it: the rule that it breaks is one test's alone.
   * @default a history breaks a property
   */
  readonly noticedBy?: readonly [file: string, title: string];
  /** True if histories of a table in several Regions show it. @default histories of one Region */
  readonly inRegions?: true;
  /** The property that the simulation must find broken. @default the first that breaks, an internal error apart */
  readonly breaks?: Property;
  /** The texts to replace and their replacements; in `file` if given, else in the bug's own file. */
  readonly edits: readonly (readonly [find: string, replace: string, file?: string])[];
}
