/**
 * What every client does, whatever it speaks to. The suite knows neither how the locks are reached nor
 * whose time passes: a site hands out clients of one service, and lets time pass where something waits.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { ClientOptions, LockClient } from "../../lib/index.js";
import { key } from "../../lib/index.js";
import { describeAcquiring } from "./conforming-acquires.js";
import { describeHolding } from "./conforming-holds.js";
import { describeOthers } from "./conforming-others.js";

/** One service and its clients. */
export interface Site {
  client(options?: ClientOptions): LockClient;
  /** Settles as `promise` does; the site's time passes until then. */
  passing<T>(promise: Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** What the tests of a suite share. */
export interface Scene {
  readonly site: Site;
  /** Owner `checkout-7`. */
  readonly locks: LockClient;
  /** Owner `rival`. */
  readonly rival: LockClient;
  /** A key of the test's own. */
  fresh(): string;
}

/** Defines the suite for the clients of a site. */
export function describeClients(name: string, open: () => Promise<Site>): void {
  describe(`a client ${name}`, () => {
    let used = 0;
    const scene = { fresh: () => key("conformance", ++used) } as { -readonly [member in keyof Scene]: Scene[member] };

    beforeAll(async () => {
      scene.site = await open();
      scene.locks = scene.site.client({ owner: "checkout-7" });
      scene.rival = scene.site.client({ owner: "rival" });
    });
    afterAll(async () => {
      await scene.locks.close();
      await scene.rival.close();
      await scene.site.close();
    });

    describeAcquiring(scene);
    describeHolding(scene);
    describeOthers(scene);
  });
}
