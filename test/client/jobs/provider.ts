/** An OAuth provider with token rotation, the caller's own store of tokens, and processes that share both, in virtual time. */
import type { LockClient, RefreshOptions } from "../../../lib/index.js";
import { type VirtualClock, type TestLockClient, createLockClient, key } from "../../../lib/testing.js";

export const HOUR_MS = 3_600_000;
export const TOKEN = key("TOKEN", "partner");

/** A token as it is stored: `by` is the fencing token of its writer. */
export interface Token {
  readonly refresh: string;
  readonly expiresAtMs: number;
  readonly by: number;
}

/** Loses every request of the process from now on, as if it had died or were cut off. */
export function cutOff({ faults }: TestLockClient): void {
  for (let requests = 0; requests < 1000; requests++) faults.loseNextRequest();
}

/** The provider, the store and the processes. */
export class Partner {
  readonly first: TestLockClient = createLockClient({ owner: "p0" });
  readonly clock: VirtualClock = this.first.clock;
  refreshes = 0;
  isRevoked = false;
  reads = 0;
  saves = 0;
  stored: Token | undefined = { refresh: "r0", expiresAtMs: 0, by: 0 };
  #valid = "r0";

  /** Returns the client of another process. */
  process(owner: string): TestLockClient {
    return createLockClient({ owner, clock: this.clock, store: this.first.store });
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }

  /** Exchanges a refresh token. A token that is used twice revokes the whole chain. */
  async exchange(refresh: string, answerAfterMs = 200): Promise<string> {
    await this.sleep(100);
    if (refresh !== this.#valid) this.isRevoked = true;
    if (this.isRevoked) throw new Error("invalid_grant");
    this.#valid = `r${++this.refreshes}`;
    const issued = this.#valid;
    await this.sleep(answerAfterMs);
    return issued;
  }

  async read(): Promise<Token | undefined> {
    this.reads++;
    await this.sleep(5);
    return this.stored;
  }

  /** Stores the token, unless a later holder has stored one. */
  async save(token: Token): Promise<void> {
    await this.sleep(5);
    if (token.by < (this.stored?.by ?? 0)) throw new Error("fenced off");
    this.saves++;
    this.stored = token;
  }

  isFresh({ expiresAtMs }: Token): boolean {
    return expiresAtMs > this.clock.wallMs() + 60_000;
  }

  async renew(old: Token | undefined, answerAfterMs?: number): Promise<Token> {
    return { refresh: await this.exchange(old?.refresh ?? "", answerAfterMs), expiresAtMs: this.clock.wallMs() + HOUR_MS, by: 0 };
  }

  /** The access token of one caller, as a program would ask for it. */
  ask(locks: LockClient, more: Partial<RefreshOptions<Token>> = {}): Promise<Token> {
    return locks.refresh<Token>(TOKEN, {
      read: () => this.read(),
      isFresh: (token) => this.isFresh(token),
      renew: (old) => this.renew(old),
      save: (token, { fencingToken }) => this.save({ ...token, by: fencingToken }),
      ...more,
    });
  }
}
