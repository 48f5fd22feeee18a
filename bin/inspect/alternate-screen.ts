/** Draws text repeatedly on the terminal's alternate screen, so that the previous content comes back afterwards. */
import { clearScreenDown, cursorTo } from "node:readline";
import type { WriteStream } from "node:tty";
import { cutEnd } from "../terminal.js";

const OTHER_SCREEN = "\u001B[?1049h\u001B[?25l";
const FIRST_SCREEN = "\u001B[?25h\u001B[?1049l";

/** The alternate screen of a terminal. */
export class AlternateScreen {
  readonly #terminal: WriteStream;
  #lines: readonly string[] = [];

  constructor(terminal: WriteStream) {
    this.#terminal = terminal;
    terminal.write(OTHER_SCREEN);
  }

  /** Draws these lines, as many as fit. */
  draw(lines: readonly string[]): void {
    this.#lines = lines;
    const rows = Math.max(2, this.#terminal.rows);
    const hidden = lines.length - (rows - 1);
    const shown = hidden > 0 ? [...lines.slice(0, rows - 2), `… ${hidden + 1} more`] : lines;
    cursorTo(this.#terminal, 0, 0);
    clearScreenDown(this.#terminal);
    this.#terminal.write(shown.join("\n"));
  }

  /** Draws the last lines again, with a notice above them. */
  note(news: string): void {
    const [title = "", , ...rest] = this.#lines;
    this.draw([title, cutEnd(news, this.#terminal.columns), ...rest]);
    this.#lines = [title, "", ...rest];
  }

  /** Restores the terminal's main screen. */
  close(): void {
    this.#terminal.write(FIRST_SCREEN);
  }
}
