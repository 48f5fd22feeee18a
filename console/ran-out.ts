/**
 * The leases that ran out and that no request has met since: no line of the log tells their end yet. By the log they go on, the list of held
 * keys has them no more, and a look at the key says when each was over.
 */
import type { LockClient } from "../lib/index.js";
import type { KeyView, Line } from "./data.js";
import { LOSSES_MS } from "./activity.js";

/** The most keys that are looked at for it in one look at the list. */
const LOOKS_MAX = 20;

/** A lease that goes on by the log, or has run out. */
interface Going {
  readonly key: string;
  readonly fencingToken: number;
  /** The time since its end when that was read, and when that was, in ms. */
  over?: { readonly agoMs: number; readonly readAtMs: number };
}

/** Keeps what goes on by the log. */
export class RanOut {
  readonly #going = new Map<string, Going>();

  /** Adds the next lines of the log. */
  add(lines: readonly Line[]): void {
    for (const { kind, event, lease = "", key, fencingToken } of lines) {
      if (kind !== "lock") continue;
      if (event === "ended") this.#going.delete(lease);
      else if ((event === "granted" || event === "transferred") && fencingToken !== undefined)
        this.#going.set(lease, { key, fencingToken });
    }
  }

  /**
   * Returns how many leases ran out in the last ten minutes without an end in the log. `held` are all held keys, read before the lines that were
   * added last.
   */
  async count(held: readonly KeyView[], inspect: LockClient["inspect"], nowMs: number): Promise<number> {
    const present = new Set(held.flatMap(({ key, holders }) => holders.map(({ fencingToken }) => `${fencingToken} ${key}`)));
    const unseen: [string, Going][] = [];
    for (const [lease, going] of this.#going) {
      // A lease that nobody took over can still be renewed.
      if (present.has(`${going.fencingToken} ${going.key}`)) delete going.over;
      else if (!going.over) unseen.push([lease, going]);
    }
    await Promise.all(
      unseen.slice(0, LOOKS_MAX).map(async ([lease, going]) => {
        const { holders, lapsed = [] } = await inspect(going.key);
        const isSame = ({ fencingToken }: { readonly fencingToken: number }): boolean => fencingToken === going.fencingToken;
        const end = lapsed.find(isSame);
        if (end) going.over = { agoMs: end.endedAgoMs, readAtMs: nowMs };
        else if (!holders.some(isSame)) this.#going.delete(lease);
      }),
    );
    let count = 0;
    for (const [lease, { over }] of this.#going) {
      if (!over) continue;
      if (over.agoMs + nowMs - over.readAtMs <= LOSSES_MS) count += 1;
      else this.#going.delete(lease);
    }
    return count;
  }
}
