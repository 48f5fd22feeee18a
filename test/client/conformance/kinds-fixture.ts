/** A service and clients for each backend, for the conformance tests of all kinds of locks. Two clients stand for two processes. */
import { afterAll, beforeAll, describe } from "vitest";
import type { ClientOptions, Inspection, LockClient } from "../../../lib/index.js";
import { key } from "../../../lib/index.js";
import type { Backend } from "./backends.js";
import { BACKENDS, IN_MEMORY } from "./backends.js";

/** The fixture that the tests share. */
export interface KindsFixture {
  /** Owner `checkout-7`. */
  readonly locks: LockClient;
  /** Another process of the same caller; owner `worker`. */
  readonly other: LockClient;
  /** A further client, which the caller closes. */
  client(options?: ClientOptions): LockClient;
  /** Settles as `promise` does. The backend's time passes until then. */
  passing<T>(promise: Promise<T>): Promise<T>;
  /** Resolves when `count` waiters are in the key's queue. Fails after 1,000 inspections. */
  untilQueued(name: string, count: number): Promise<void>;
  /** Resolves when `count` leases wait for a condition of the key. Fails after 1,000 inspections. */
  untilInWaitSet(name: string, count: number): Promise<void>;
  /** A key that no other test uses. */
  fresh(): string;
  /** A scope that no other test uses. */
  freshScope(): string;
}

/** Defines `tests` for the clients of every backend. Where they wait in real time, several wait together. */
export function describeEverywhere(what: string, ...tests: readonly ((fixture: KindsFixture) => void)[]): void {
  for (const backendOfTier of BACKENDS) {
    const [name, open] = backendOfTier;
    (IN_MEMORY.includes(backendOfTier) ? describe : describe.concurrent)(`${what}, ${name}`, () => {
      let used = 0;
      const fixture = {
        fresh: () => key("kinds", ++used),
        freshScope: () => `request-${String(++used).padStart(16, "0")}`,
      } as { -readonly [member in keyof KindsFixture]: KindsFixture[member] };
      let backend: Backend;

      beforeAll(async () => {
        backend = await open();
        fixture.client = (options) => backend.client(options);
        fixture.passing = (promise) => backend.passing(promise);
        fixture.untilQueued = (name, count) => untilInspected(fixture, name, ({ waiters }) => waiters.length === count);
        fixture.untilInWaitSet = (name, count) => untilInspected(fixture, name, ({ waitSet = [] }) => waitSet.length === count);
        fixture.locks = backend.client({ owner: "checkout-7" });
        fixture.other = backend.client({ owner: "worker" });
      });
      afterAll(async () => {
        await fixture.locks.close();
        await fixture.other.close();
        await backend.close();
      });
      for (const define of tests) define(fixture);
    });
  }
}

async function untilInspected(fixture: KindsFixture, name: string, isReached: (key: Inspection) => boolean): Promise<void> {
  for (let looks = 0; looks < 1000; looks++) {
    if (isReached(await fixture.locks.inspect(name))) return;
    await fixture.passing(new Promise((resolve) => setImmediate(resolve)));
  }
  throw new Error(`${name} was never as awaited: ${JSON.stringify(await fixture.locks.inspect(name))}`);
}
