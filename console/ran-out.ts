/**
 * The leases that ran out and that no request has met since: no line of the log tells their end yet. By the log they go on, the list of held
 * keys has them no more, and a look at the key says when each was over.
 */
import type { LockClient } from "../lib/index.js";
import type { KeyView, Line, Untold } from "./data.js";

/** The most keys that are looked at for it in one look at the list. */
const LOOKS_MAX = 20;
/** The time for which it is remembered, in ms: the longest that a view counts losses of. */
const REMEMBERED_MS = 86_400_000;

/** A lease that goes on by the log, or has run out. */
interface Going {
  readonly key: string;
  readonly lease: string;
  readonly fencingToken: number;
  /** The time since its end when that was read, and when that was, in ms. */
  over?: { readonly agoMs: number; readonly readAtMs: number };
}

/** Keeps what goes on by the log. */
export class RanOut {
  /** By lease and key: a set has one lease. */
  readonly #going = new Map<string, Going>();

  /** Adds the next lines of the log. */
  add(lines: readonly Line[]): void {
    for (const { kind, event, lease = "", key, fencingToken } of lines) {
      if (kind !== "lock") continue;
      const name = `${lease} ${key}`;
      if (event === "ended") this.#going.delete(name);
      else if ((event === "granted" || event === "transferred") && fencingToken !== undefined)
        this.#going.set(name, { key, lease, fencingToken });
    }
  }

  /**
   * Returns the leases that ran out in the last day without an end in the log. `held` are all held keys, read before the lines that were added
   * last.
   */
  async untold(held: readonly KeyView[], inspect: LockClient["inspect"], nowMs: number): Promise<readonly Untold[]> {
    const present = new Set(held.flatMap(({ key, holders }) => holders.map(({ fencingToken }) => `${fencingToken} ${key}`)));
    const unseen: [string, Going][] = [];
    for (const [name, going] of this.#going) {
      // A lease that nobody took over can still be renewed.
      if (present.has(`${going.fencingToken} ${going.key}`)) delete going.over;
      else if (!going.over) unseen.push([name, going]);
    }
    await Promise.all(
      unseen.slice(0, LOOKS_MAX).map(async ([name, going]) => {
        const { holders, lapsed = [] } = await inspect(going.key);
        const isSame = ({ fencingToken }: { readonly fencingToken: number }): boolean => fencingToken === going.fencingToken;
        const end = lapsed.find(isSame);
        if (end) going.over = { agoMs: end.endedAgoMs, readAtMs: nowMs };
        else if (!holders.some(isSame)) this.#going.delete(name);
      }),
    );
    const untold: Untold[] = [];
    for (const [name, { key, lease, over }] of this.#going) {
      if (!over) continue;
      const agoMs = over.agoMs + nowMs - over.readAtMs;
      if (agoMs <= REMEMBERED_MS) untold.push({ key, lease, agoMs });
      else this.#going.delete(name);
    }
    return untold;
  }
}
