/** Clients that treat a lease as held, at any instant. Checks S1, S11 and S12 as clients see them, and S9 and S14. */
import type { Believable, Believer, Truth } from "./lock-truth.js";
import { type Share, clash } from "./sharing.js";
import type { Bench, Property } from "./verdict.js";

/** The clients of one history that treat a lease as held. */
export class Believers {
  readonly #all = new Set<Believer>();

  constructor(
    private readonly bench: Bench,
    /** True if the lease was broken by force. Its holder gets no warning. */
    private readonly isForced: (token: number) => boolean,
  ) {}

  /** The client treats `of` as held from now on. A lease on several keys counts for each of them. */
  add(of: Believable, believers: readonly Believer[], onEnd: () => void = () => undefined): void {
    for (const believer of believers) this.#all.add(believer);
    of.signal.addEventListener("abort", () => {
      const [first] = believers;
      if (of.isHeld()) this.bench.fail("S14", `${first?.truth.key}: the signal fired and isHeld() is still true`);
      for (const believer of believers) this.#all.delete(believer);
      onEnd();
    });
  }

  /** Checks that only compatible leases of a key are treated as held at the same time. */
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

  /** Records that a lease was granted this share now, or changed to it. */
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

  /** Records that another client ended this lease because it had expired. */
  taken(truth: Truth, leaseId: string): void {
    for (const believer of this.#all)
      if (believer.truth === truth && believer.leaseId === leaseId && this.#believed(believer))
        this.bench.fail("S9", `${truth.key}: taken from a client that believes for ${Math.round(remainingMs(believer))} ms more`);
  }

  /** Records that garbage collection removed the record. */
  collected(truth: Truth): void {
    for (const { truth: its, of } of this.#all)
      if (its === truth && of.isHeld()) this.bench.fail(asLock(truth, "S1"), `${truth.key}: collected under a believing holder`);
  }

  #together(truth: Truth, shares: readonly Share[]): void {
    const broken = clash(shares);
    if (broken) this.bench.fail(asLock(truth, broken), `${truth.key}: ${shares.length} clients believe at once that they hold it`);
  }

  /** Returns the share of the key that the client treats as held, if any. */
  #believed({ truth, leaseId, of, mode }: Believer): Share | undefined {
    const granted = truth.granted.get(leaseId);
    if (!granted || this.isForced(granted.token) || !of.isHeld()) return undefined;
    return mode ? { ...granted.share, mode: mode() } : granted.share;
  }
}

/** Maps a property of locks to that of runs: mutual exclusion is S1 for locks and R1 for runs. */
export function asLock({ kind }: Truth, property: Property): Property {
  return kind === "runs" && property === "S1" ? "R1" : property;
}

function remainingMs({ of }: Believer): number {
  return of.remainingMs?.() ?? 0;
}
