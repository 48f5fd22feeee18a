/**
 * The behaviour of every client, whichever backend it uses. A suite knows neither the transport nor the clock. A
 * backend creates clients of one service, and advances time while something waits.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { type Inspection, type LockClient, key } from "../../../lib/index.js";
import { type Backend, BACKENDS, IN_MEMORY } from "./backends.js";

/** The fixture that the tests of a suite share. */
export interface Fixture {
  readonly backend: Backend;
  /** Owner `checkout-7`. */
  readonly locks: LockClient;
  /** Another process of the same caller; owner `rival`. */
  readonly rival: LockClient;
  /** A key that no other test uses. */
  fresh(): string;
  /** A scope that no other test uses. */
  freshScope(): string;
  /** Resolves when the key is as awaited. Fails after 1,000 inspections. */
  untilInspected(name: string, isReached: (key: Inspection) => boolean): Promise<void>;
}
type Part = (fixture: Fixture) => void;

/** Defines a suite for the clients of every backend. */
export function describeClients(...parts: readonly Part[]): void {
  describeClientsOf(BACKENDS, ...parts);
}

/** The same. Where the tests wait in real time, several wait together. */
export function describeTogether(...parts: readonly Part[]): void {
  for (const backend of BACKENDS) define(backend, parts, IN_MEMORY.includes(backend) ? describe : describe.concurrent);
}

/** Defines a suite for the clients of these backends. */
export function describeClientsOf(backends: typeof BACKENDS, ...parts: readonly Part[]): void {
  for (const backend of backends) define(backend, parts);
}

function define([name, open]: (typeof BACKENDS)[number], parts: readonly Part[], suite: typeof describe.concurrent = describe): void {
  suite(`a client ${name}`, () => {
    let used = 0;
    const fixture = {
      fresh: () => key("conformance", ++used),
      freshScope: () => `request-${String(++used).padStart(16, "0")}`,
      async untilInspected(name, isReached) {
        for (let looks = 0; looks < 1000; looks++) {
          if (isReached(await fixture.locks.inspect(name))) return;
          await fixture.backend.passing(new Promise((resolve) => setImmediate(resolve)));
        }
        throw new Error(`${name} was never as awaited: ${JSON.stringify(await fixture.locks.inspect(name))}`);
      },
    } as { -readonly [member in keyof Fixture]: Fixture[member] };

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
