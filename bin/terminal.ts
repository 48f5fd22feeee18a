/**
 * Terminal output. Colours are used only if the terminal supports them and NO_COLOR isn't set. Text from other users, such as an owner,
 * reaches a terminal only as plain text (plain-text.ts).
 */
import pico from "picocolors";
import stringWidth from "fast-string-truncated-width";

/** The width and colours of an output. */
export interface Screen {
  /** The characters per line; undefined on a pipe, where nothing is shortened. */
  readonly columns: number | undefined;
  readonly colors: ReturnType<typeof pico.createColors>;
}

/** Returns the screen of a stream. */
export function screenOn(stream: NodeJS.WriteStream): Screen {
  // For a pipe, isTTY is undefined, whatever its type says, and it has no colours.
  const isTerminal = (stream.isTTY as boolean | undefined) === true;
  return { columns: isTerminal ? stream.columns : undefined, colors: pico.createColors(isTerminal && stream.hasColors()) };
}

/** Returns the number of terminal columns that `text` takes. */
export function widthOf(text: string): number {
  return stringWidth(text).width;
}

const ELLIPSIS = "…";

/** Returns `text` in at most `columns`: its beginning and an ellipsis. */
export function cutEnd(text: string, columns: number): string {
  const { index, ellipsed } = stringWidth(text, { limit: columns, ellipsis: ELLIPSIS, ellipsisWidth: 1 });
  return ellipsed ? text.slice(0, index) + ELLIPSIS : text;
}
