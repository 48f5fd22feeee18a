/** A process with two copies of the package, as a bundler makes them, behaves as with one: the errors of the other are the same errors. */
import { build } from "esbuild";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as one from "../../../lib/testing.js";
import { isA } from "../../../lib/core/brand.js";
import { ROOT } from "../../tidy/tree.js";

let directory: string;
let other: typeof one;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-copies-"));
  const outfile = join(directory, "copy.mjs");
  const entryPoints = [join(ROOT, "lib/testing.ts")];
  await build({ entryPoints, outfile, bundle: true, format: "esm", platform: "node", target: "node20", logLevel: "error" });
  other = (await import(pathToFileURL(outfile).href)) as typeof one;
});
afterAll(() => rm(directory, { recursive: true }));

it("control: it is another copy", () => {
  expect(other.LockTimeoutError).not.toBe(one.LockTimeoutError);
  expect(Object.getPrototypeOf(new other.FinalError("no"))).not.toBe(one.FinalError.prototype);
});

describe("work under a client of one copy", () => {
  it("that ends by a final error of the other is done once", async () => {
    const locks = one.createLockClient();
    let charged = 0;
    const charge = (): Promise<unknown> =>
      locks.runOnce("payment", () => {
        charged++;
        throw new other.FinalError("card declined", { data: { code: 51 } });
      });
    await expect(charge()).rejects.toThrow("card declined");
    await expect(charge()).rejects.toMatchObject({ code: "run-failed", data: { code: 51 } });
    expect(charged).toBe(1);
  });

  it("is skipped by the wrapper of the other while its key is held", async () => {
    const locks = one.createLockClient();
    await locks.acquire("held");
    const options = { locks, key: () => "held", whenHeld: "skip" } as const;
    expect(await other.locked(options, async () => "ran")()).toBeUndefined();
  });
});

describe("an error of the other copy", () => {
  class Declined extends one.FinalError {}

  it("is of its own class and of those above it, by isA and instanceof, and of no other", () => {
    const error = new other.LockLostError("gone", "taken");
    for (const is of [isA, (value: unknown, type: typeof one.LockError) => value instanceof type] as const) {
      expect([one.LockLostError, one.LockError].map((type) => is(error, type as never))).toEqual([true, true]);
      expect([one.LockTimeoutError, one.FinalError, one.RunFailedError].map((type) => is(error, type as never))).toEqual([
        false,
        false,
        false,
      ]);
    }
  });

  it("is not of a class that an application derives, and the application's own is", () => {
    expect(new other.FinalError("no") instanceof Declined).toBe(false);
    expect(new Declined("no") instanceof Declined).toBe(true);
    expect(new Declined("no") instanceof other.FinalError).toBe(true);
  });

  it("is told from what is no object", () => {
    for (const value of [undefined, null, "LockError", 1, () => undefined]) expect(isA(value, one.LockError)).toBe(false);
  });
});

it("refuses a class without a brand, which no other copy would know", () => {
  // eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a class without a brand is what is tested
  expect(() => isA({}, class Unbranded {})).toThrow("Unbranded has no brand");
});
