/**
 * Terminal output. Colours are used only if the terminal supports them and NO_COLOR isn't set. Text from other users, such as an owner,
 * reaches a terminal only as plain text (plain-text.ts). A stream can be slow, full or closed.
 */
import pico from "picocolors";
import stringWidth from "fast-string-truncated-width";

/** The width and colours of an output. */
export interface Screen {
  /** The characters per line; undefined on a pipe, where nothing is shortened. */
  readonly columns: number | undefined;
  readonly colors: ReturnType<typeof pico.createColors>;
}

/** A screen without a width and without colours, such as a pipe or a file. */
export const PLAIN: Screen = { columns: undefined, colors: pico.createColors(false) };

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

/** Returns as much of the beginning of `text` as fits into `columns`. */
export function startOf(text: string, columns: number): string {
  return fitting(charactersOf(text), columns).join("");
}

/** Returns as much of the end of `text` as fits into `columns`. */
export function endOf(text: string, columns: number): string {
  return fitting(charactersOf(text).toReversed(), columns).toReversed().join("");
}

/** Returns the characters as people count them: an accent belongs to its letter. */
function charactersOf(text: string): readonly string[] {
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

function fitting(characters: readonly string[], columns: number): readonly string[] {
  let left = columns;
  const end = characters.findIndex((character) => (left -= widthOf(character)) < 0);
  return end < 0 ? characters : characters.slice(0, end);
}

/** Returns `text` in at most `columns`: its beginning and an ellipsis. */
export function cutEnd(text: string, columns: number): string {
  const { index, ellipsed } = stringWidth(text, { limit: columns, ellipsis: ELLIPSIS, ellipsisWidth: 1 });
  return ellipsed ? text.slice(0, index) + ELLIPSIS : text;
}

/** The callbacks for a stream that accepts no more. */
export interface PrintFailures {
  /** Called if the reader has closed the stream. */
  readonly onClosed: () => void;
  /** Called once if the text could not be written, for example on a full disk. */
  readonly onFailed: (error: Error) => void;
}

/** Returns a function that prints to `stream` and resolves when the text is written or lost, so that more can be printed. */
export function printerOn(stream: NodeJS.WriteStream, { onClosed, onFailed }: PrintFailures): (text: string | Uint8Array) => Promise<void> {
  let isGone = false;
  const lost = (error: Error): void => {
    if (isGone) return;
    isGone = true;
    if ((error as NodeJS.ErrnoException).code === "EPIPE") onClosed();
    else onFailed(error);
  };
  stream.on("error", lost);
  return (text) =>
    new Promise((resolve) => {
      if (isGone) return resolve();
      stream.write(text, (error) => {
        if (error) lost(error);
        resolve();
      });
    });
}
