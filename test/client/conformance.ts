/**
 * What every client does, whatever it speaks to. A suite knows neither how the locks are reached nor
 * whose time passes: a site hands out clients of one service, and lets time pass where something waits.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { LockClient } from "../../lib/index.js";
import { key } from "../../lib/index.js";
import type { Site } from "./sites.js";
import { SITES } from "./sites.js";

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

/** Defines a suite for the clients of every site. */
export function describeClients(...parts: readonly ((scene: Scene) => void)[]): void {
  describe.each(SITES)("a client %s", (_name, open) => {
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

    for (const part of parts) part(scene);
  });
}
