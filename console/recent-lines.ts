/** The last lines of the log, for the console: a ring of bounded size, without ids of requests, and without principals except an operator's. */
import type { LogLine } from "../lib/dynamodb.js";
import { deedOf } from "./activity.js";
import type { Line, Lines } from "./data.js";

/** The number of lines that are kept. */
const CAPACITY = 10_000;
/** The largest number of lines in an answer. */
const MOST = 2000;

/** Keeps the last lines. */
export class RecentLines {
  readonly #capacity: number;
  readonly #ring: (Line & { readonly namespace: string })[] = [];
  #next = 0;
  #fromMs: number;

  /** @param fromMs the time at which the log begins, in epoch ms */
  constructor(fromMs: number, capacity = CAPACITY) {
    this.#fromMs = fromMs;
    this.#capacity = capacity;
  }

  /** The time from which no line is missing, in epoch ms. */
  get fromMs(): number {
    return this.#fromMs;
  }

  /** Adds a line, and drops the oldest if there are too many. */
  add({ principal, by = principal, requestId: _request, model, id, operateAtMs: atMs, ...line }: LogLine): void {
    const seq = this.#next++;
    const dropped = this.#ring[seq % this.#capacity];
    if (dropped) this.#fromMs = dropped.atMs;
    const key = model === "" ? id : `${model}_${id}`;
    this.#ring[seq % this.#capacity] = { ...line, seq, key, atMs, ...(deedOf(line) && { by }) };
  }

  /**
   * Returns the lines of a namespace from position `from` on, at most 2000. Of an older position, it returns those that are left; a position
   * that isn't reached yet is another start's, and begins anew.
   */
  since(from: number, namespace: string): Lines {
    const first = Math.max(from > this.#next ? 0 : from, this.#next - this.#capacity, 0);
    const end = Math.min(this.#next, first + MOST);
    const lines: Line[] = [];
    for (let seq = first; seq < end; seq++) {
      const found = this.#ring[seq % this.#capacity];
      if (found?.namespace !== namespace) continue;
      const { namespace: _own, ...line } = found;
      lines.push(line);
    }
    return { lines, next: end, fromMs: this.#fromMs };
  }
}
