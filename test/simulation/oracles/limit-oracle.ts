/**
 * The oracle of limits. It sees every grant of a take, with the time from sending its write to the answer, and when clients start. In true
 * time no more may start than each rate allows (S17), and nothing that was taken after a shut starts before its end (S20). It doesn't know how a
 * limit is stored, or what a take is charged.
 */
import type { RateWithBurst } from "../../../lib/core/rate.js";
import type { Bench } from "./verdict.js";

/** A take that was granted. */
interface Grant {
  /** When it starts, in true time. */
  readonly startMs: number;
  readonly cost: number;
  /** S: the time from sending its write, right after the clocks were read, to the answer. */
  readonly lateMs: number;
  /** When its write was sent, in true time. */
  readonly sentMs: number;
  isUsed: boolean;
}

/** A shut that was answered. */
interface Shutting {
  readonly answeredMs: number;
  /** Its end, in true time, if its clocks were right when its write was sent. */
  readonly untilMs: number;
}

/** Rounding of the answers, which are whole milliseconds, and of sums. */
const ROUNDING_MS = 2;

/** Checks the limits of one history. */
export class LimitOracle {
  readonly #grants = new Map<string, Grant[]>();
  readonly #shuts = new Map<string, Shutting[]>();
  #answered = { atMs: Number.NaN, tookMs: 0, isRefused: false };

  constructor(private readonly bench: Bench) {}

  /** Records that a process gets the answer to a write of a limit, which it sent this long ago, and whether that refuses the write. */
  answered(tookMs: number, isRefused: boolean): void {
    this.#answered = { atMs: this.bench.now(), tookMs, isRefused };
  }

  /** Records that a take is granted. That happens when its write is answered, in the same instant. */
  granted(key: string, cost: number, startInMs: number): void {
    const { atMs, tookMs, isRefused } = this.#answered;
    if (isRefused || atMs !== this.bench.now()) this.bench.fail("S17", `${key}: granted without a write`);
    this.bench.coverage.takes++;
    if (startInMs > 0) this.bench.coverage.takesLater++;
    const nowMs = this.bench.now();
    of(this.#grants, key).push({ startMs: nowMs + startInMs, cost, lateMs: tookMs, sentMs: nowMs - tookMs, isUsed: false });
  }

  /** Records that a limit is shut for this time from when its write was sent. That is answered with the write, or with its refusal: shut for longer. */
  shut(key: string, forMs: number): void {
    const { atMs, tookMs } = this.#answered;
    if (atMs !== this.bench.now()) this.bench.fail("S20", `${key}: shut without a write`);
    this.bench.coverage.shuts++;
    of(this.#shuts, key).push({ answeredMs: atMs, untilMs: atMs - tookMs + forMs });
  }

  /** Counts a take that was refused. */
  refused(): void {
    this.bench.coverage.takesRefused++;
  }

  /** Checks that a client which starts now has a grant whose time has come. Its clock may count a wait this much too short. */
  started(key: string, cost: number, earlyMs: number): void {
    const latestMs = this.bench.now() + earlyMs + ROUNDING_MS;
    const grant = of(this.#grants, key).find((one) => !one.isUsed && one.cost === cost && one.startMs <= latestMs);
    if (grant) grant.isUsed = true;
    else this.bench.fail("S17", `${key}: a client starts ${cost} before any grant lets it`);
  }

  /** Checks all grants of a limit against its rates and its shuts, within `slackMs`, by which clocks may be wrong. */
  judge(key: string, rates: readonly RateWithBurst[], slackMs: number): void {
    this.#judgeRates(key, rates, slackMs);
    this.#judgeShuts(key, slackMs);
  }

  #judgeShuts(key: string, slackMs: number): void {
    for (const { answeredMs, untilMs } of of(this.#shuts, key))
      for (const { startMs, sentMs } of of(this.#grants, key)) {
        const earlyMs = untilMs - startMs - slackMs - ROUNDING_MS;
        if (sentMs < answeredMs || earlyMs <= 0) continue;
        this.bench.fail("S20", `${key}: what was taken after it was shut starts ${Math.round(earlyMs)} ms before the end`);
        return;
      }
  }

  /**
   * Checks all grants of a limit: in each true time, at most the burst and what flows in, also within `slackMs`, by which clocks may be wrong.
   * The time begins where one of its grants might have started at the earliest, which is S before its start.
   */
  #judgeRates(key: string, rates: readonly RateWithBurst[], slackMs: number): void {
    const grants = of(this.#grants, key).toSorted((a, b) => a.startMs - b.startMs);
    for (const { count, perMs, burst } of rates)
      for (const [index, first] of grants.entries()) {
        let [taken, fromMs] = [0, first.startMs];
        for (const { startMs, cost, lateMs } of grants.slice(index)) {
          taken += cost;
          fromMs = Math.min(fromMs, startMs - lateMs);
          const lastedMs = startMs - fromMs;
          const excessMs = ((taken - burst) * perMs) / count - lastedMs - slackMs - ROUNDING_MS;
          if (excessMs <= 0) continue;
          const rate = `${count} in ${perMs} ms, ${burst} at once`;
          this.bench.fail("S17", `${key}: ${taken} started in ${Math.round(lastedMs)} ms of ${rate}: ${Math.round(excessMs)} ms too soon`);
          return;
        }
      }
  }
}

function of<T>(lists: Map<string, T[]>, key: string): T[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
