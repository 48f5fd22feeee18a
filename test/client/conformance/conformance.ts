/**
 * The behaviour of every client, whichever backend it uses. A suite knows neither the transport nor the clock. A
 * backend creates clients of one service, and advances time while something waits.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { LockClient } from "../../../lib/index.js";
import { key } from "../../../lib/index.js";
import type { Backend } from "./backends.js";
import { BACKENDS } from "./backends.js";

/** The fixture that the tests of a suite share. */
export interface Fixture {
  readonly backend: Backend;
  /** Owner `checkout-7`. */
  readonly locks: LockClient;
  /** Owner `rival`. */
  readonly rival: LockClient;
  /** A key that no other test uses. */
  fresh(): string;
}

/** Defines a suite for the clients of every backend. */
export function describeClients(...parts: readonly ((fixture: Fixture) => void)[]): void {
  describeClientsOf(BACKENDS, ...parts);
}

/** Defines a suite for the clients of these backends. */
export function describeClientsOf(backends: typeof BACKENDS, ...parts: readonly ((fixture: Fixture) => void)[]): void {
  describe.each(backends)("a client %s", (_name, open) => {
    let used = 0;
    const fixture = { fresh: () => key("conformance", ++used) } as { -readonly [member in keyof Fixture]: Fixture[member] };

    beforeAll(async () => {
      fixture.backend = await open();
      fixture.locks = fixture.backend.client({ owner: "checkout-7" });
      fixture.rival = fixture.backend.client({ owner: "rival" });
    });
    afterAll(async () => {
      await fixture.locks.close();
      await fixture.rival.close();
      await fixture.backend.close();
    });

    for (const part of parts) part(fixture);
  });
}
