/**
 * What every client does, whatever it speaks to. A suite knows neither how the locks are reached nor
 * whose time passes: a site hands out clients of one service, and lets time pass where something waits.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { LockClient } from "../../lib/index.js";
import { key } from "../../lib/index.js";
import type { Backend } from "./backends.js";
import { BACKENDS } from "./backends.js";

/** What the tests of a suite share. */
export interface Fixture {
  readonly backend: Backend;
  /** Owner `checkout-7`. */
  readonly locks: LockClient;
  /** Owner `rival`. */
  readonly rival: LockClient;
  /** A key of the test's own. */
  fresh(): string;
}

/** Defines a suite for the clients of every site. */
export function describeClients(...parts: readonly ((fixture: Fixture) => void)[]): void {
  describe.each(BACKENDS)("a client %s", (_name, open) => {
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
