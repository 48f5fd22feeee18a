/**
 * The bans of eslint.config.js apply in every file, even where a comment disables them, and each ban still catches its
 * snippet. Only files that disable a rule are read here, because the linter itself reads the others.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { banned } from "./banned.js";
import { SOURCES, sourcesIn } from "./tree.js";

/** A snippet, the concern that its message names, and the one place where it is allowed. */
const BANS: readonly (readonly [text: string, message: RegExp, place: string])[] = [
  ["Date.now();", /Clock/, "lib/core/time.ts"],
  ["new Date();", /Clock/, "lib/core/time.ts"],
  ["performance.now();", /Clock/, "lib/core/time.ts"],
  ["setTimeout(task, 5);", /Clock/, "lib/core/time.ts"],
  ["globalThis.setInterval(task, 5);", /Clock/, "lib/core/time.ts"],
  [`import { setTimeout } from "node:timers/promises"; export { setTimeout };`, /Clock/, "lib/core/time.ts"],
  ["AbortSignal.timeout(5);", /Clock/, "lib/core/time.ts"],
  ["Math.random();", /Randomness/, "lib/core/random.ts"],
  ["crypto.randomUUID();", /Randomness/, "lib/core/random.ts"],
  [`import { randomBytes } from "node:crypto"; export { randomBytes };`, /Randomness/, "lib/core/random.ts"],
  ["error instanceof LockLostError;", /copy of the package/, "bin/holdfast.ts"],
  ["process.env.HOLDFAST_URL;", /environment/, "lib/client/wire/environment.ts"],
  ["process.env.HOLDFAST_TABLE;", /environment/, "lambda/main.ts"],
  ["const { env } = process; export { env };", /environment/, "infra/app.ts"],
  [`import { env } from "node:process"; export { env };`, /environment/, "infra/local/start.ts"],
  ["console.log(1);", /log/, "lambda/compose.ts"],
  ["console.log(1);", /log/, "bin/holdfast.ts"],
];

describe("one place each", () => {
  beforeAll(() => banned({ path: "lib/index.ts", text: "" }));

  it("in every file that disables a rule", async () => {
    const disabling = sourcesIn(...SOURCES).filter(({ text }) => /eslint-disabl[e]/.test(text));
    expect(disabling.length).toBeGreaterThan(0);
    const found = await Promise.all(disabling.map(banned));
    expect(found.flat()).toEqual([]);
  });

  it.each(BANS)("control: %s is refused in lib with %s, and accepted in %s", async (text, message, place) => {
    for (const path of ["lib/client/hold/lease.ts", "lib/core/lock/acquire.ts", "lambda/handler.ts"]) {
      expect(await banned({ path, text }), path).toContainEqual(expect.stringMatching(message));
    }
    expect(await banned({ path: place, text })).toEqual([]);
  });
});
