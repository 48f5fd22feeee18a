/** Seeded randomness (sfc32, seeded by splitmix32): a seed replays a history exactly. */

/** Random draws for one history. */
export class Random {
  readonly #state: Uint32Array;

  constructor(seed: number) {
    let mixed = seed >>> 0;
    this.#state = Uint32Array.from({ length: 4 }, () => {
      mixed = (mixed + 0x9e3779b9) >>> 0;
      let z = mixed;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      return (z ^ (z >>> 16)) >>> 0;
    });
    for (let i = 0; i < 12; i++) this.#next();
  }

  /** Returns a number from 0 to 1. */
  unit(): number {
    return this.#next() / 2 ** 32;
  }

  /** Returns a number from `low` to `high`. */
  between(low: number, high: number): number {
    return low + (high - low) * this.unit();
  }

  /** Returns a whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  /** True with probability `p`. */
  chance(p: number): boolean {
    return this.unit() < p;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.whole(0, items.length - 1)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  /** Returns random bytes, for leaseIds. */
  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count; at++) bytes[at] = this.#next() & 0xff;
    return bytes;
  }

  #next(): number {
    const s = this.#state;
    const [a, b, c, d] = [s[0]!, s[1]!, s[2]!, s[3]!];
    const t = (((a + b) >>> 0) + d) >>> 0;
    s[3] = d + 1;
    s[0] = b ^ (b >>> 9);
    s[1] = c + (c << 3);
    s[2] = ((c << 21) | (c >>> 11)) + t;
    return t;
  }
}
