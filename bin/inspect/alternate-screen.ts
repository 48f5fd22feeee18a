/** A screenful of text that is drawn again and again, on the terminal's other screen, so that what was there before comes back. */
import { clearScreenDown, cursorTo } from "node:readline";
import type { WriteStream } from "node:tty";
import { cutEnd } from "../terminal.js";

const OTHER_SCREEN = "\u001B[?1049h\u001B[?25l";
const FIRST_SCREEN = "\u001B[?25h\u001B[?1049l";

/** The picture on a terminal. */
export class AlternateScreen {
  readonly #terminal: WriteStream;
  #lines: readonly string[] = [];

  constructor(terminal: WriteStream) {
    this.#terminal = terminal;
    terminal.write(OTHER_SCREEN);
  }

  /** Draws these lines, as many as there is room for. */
  draw(lines: readonly string[]): void {
    this.#lines = lines;
    const rows = Math.max(2, this.#terminal.rows);
    const hidden = lines.length - (rows - 1);
    const shown = hidden > 0 ? [...lines.slice(0, rows - 2), `… ${hidden + 1} more`] : lines;
    cursorTo(this.#terminal, 0, 0);
    clearScreenDown(this.#terminal);
    this.#terminal.write(shown.join("\n"));
  }

  /** Draws what was there, with a line of news above it. */
  note(news: string): void {
    const [title = "", , ...rest] = this.#lines;
    this.draw([title, cutEnd(news, this.#terminal.columns), ...rest]);
    this.#lines = [title, "", ...rest];
  }

  /** Gives the terminal back as it was. */
  close(): void {
    this.#terminal.write(FIRST_SCREEN);
  }
}
