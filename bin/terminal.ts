/**
 * What a person sees. Colours only where a terminal has them and NO_COLOR isn't set; and what others
 * wrote, such as an owner, never reaches a terminal as anything but text.
 */
import pico from "picocolors";
import stringWidth from "fast-string-truncated-width";

/** Where something is shown. */
export interface Screen {
  /** Characters in a line; undefined where nobody looks: on a pipe nothing is cut. */
  readonly columns: number | undefined;
  readonly colors: ReturnType<typeof pico.createColors>;
}

/** The screen behind a stream. */
export function screenOn(stream: NodeJS.WriteStream): Screen {
  // Of a pipe isTTY is undefined, whatever its type says, and there are no colours to ask for.
  const isTerminal = (stream.isTTY as boolean | undefined) === true;
  return { columns: isTerminal ? stream.columns : undefined, colors: pico.createColors(isTerminal && stream.hasColors()) };
}

const CONTROL = /[\u0000-\u001F\u007F-\u009F\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;

/** `text` without anything that moves a cursor, colours, or turns the direction of writing. */
export function plain(text: string): string {
  return text.replaceAll(CONTROL, "\u{FFFD}");
}

/** How many columns of a terminal `text` takes. */
export function widthOf(text: string): number {
  return stringWidth(text).width;
}

const ELLIPSIS = "…";

/** `text` in at most `columns`: its beginning, and that something is missing. */
export function cutEnd(text: string, columns: number): string {
  const { index, ellipsed } = stringWidth(text, { limit: columns, ellipsis: ELLIPSIS, ellipsisWidth: 1 });
  return ellipsed ? text.slice(0, index) + ELLIPSIS : text;
}
