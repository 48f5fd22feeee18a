/** Who believes to hold what, at any instant: S1, S11 and S12 as clients see them, S9 and S14. */
import type { Believable, Believer, Truth } from "./lock-truth.js";
import type { Share } from "./sharing.js";
import { clash } from "./sharing.js";
import type { Bench, Property } from "./verdict.js";

/** The believers of one history. */
export class Believers {
  readonly #all = new Set<Believer>();

  constructor(
    private readonly bench: Bench,
    /** Whoever is broken by force is warned by nobody. */
    private readonly isForced: (token: number) => boolean,
  ) {}

  /** `of` is believed from now on: of several keys, in each of these. */
  add(of: Believable, believers: readonly Believer[], onEnd: () => void = () => undefined): void {
    for (const believer of believers) this.#all.add(believer);
    of.signal.addEventListener("abort", () => {
      const [first] = believers;
      if (of.isHeld()) this.bench.fail("S14", `${first?.truth.key}: the signal fired and isHeld() is still true`);
      for (const believer of believers) this.#all.delete(believer);
      onEnd();
    });
  }

  /** Of a key, only those believe at once who may hold together. */
  atRest(): void {
    if (this.#all.size < 2) return;
    const shares = new Map<Truth, Share[]>();
    for (const believer of this.#all) {
      const { truth } = believer;
      const share = this.#believed(believer);
      if (!share) continue;
      const others = shares.get(truth);
      if (!others) shares.set(truth, [share]);
      else if (others.push(share) > 1) this.#together(truth, others);
    }
  }

  /** A lease was granted this, now, or changed to it. */
  granted(truth: Truth, share: Share): void {
    const others: Share[] = [];
    let longestMs = 0;
    for (const believer of this.#all) {
      if (believer.truth !== truth || believer.leaseId === share.leaseId) continue;
      const believed = this.#believed(believer);
      if (!believed) continue;
      others.push(believed);
      longestMs = Math.max(longestMs, remainingMs(believer));
    }
    if (others.length > 0 && clash([...others, share]))
      this.bench.fail("S9", `${truth.key}: granted while another client believes for ${Math.round(longestMs)} ms more`);
  }

  /** Somebody else ended this lease, because it ran out. */
  taken(truth: Truth, leaseId: string): void {
    for (const believer of this.#all)
      if (believer.truth === truth && believer.leaseId === leaseId && this.#believed(believer))
        this.bench.fail("S9", `${truth.key}: taken from a client that believes for ${Math.round(remainingMs(believer))} ms more`);
  }

  /** Garbage collection took the record. */
  collected(truth: Truth): void {
    for (const { truth: its, of } of this.#all)
      if (its === truth && of.isHeld()) this.bench.fail(asLock(truth, "S1"), `${truth.key}: collected under a believing holder`);
  }

  #together(truth: Truth, shares: readonly Share[]): void {
    const broken = clash(shares);
    if (broken) this.bench.fail(asLock(truth, broken), `${truth.key}: ${shares.length} clients believe at once that they hold it`);
  }

  /** What it believes to have of the key, if it does. */
  #believed({ truth, leaseId, of, mode }: Believer): Share | undefined {
    const granted = truth.granted.get(leaseId);
    if (!granted || this.isForced(granted.token) || !of.isHeld()) return undefined;
    return mode ? { ...granted.share, mode: mode() } : granted.share;
  }
}

/** One at a time is what locks promise as S1, and runs as R1. */
export function asLock({ kind }: Truth, property: Property): Property {
  return kind === "runs" && property === "S1" ? "R1" : property;
}

function remainingMs({ of }: Believer): number {
  return of.remainingMs?.() ?? 0;
}
