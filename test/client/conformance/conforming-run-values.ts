/** Values that runs store and return: results, checkpoints and errors of every kind and size. */
import { describe, expect, it } from "vitest";
import { InvalidRequestError, LockError } from "../../../lib/index.js";
import { thrownBy } from "../../support/run-gate.js";
import type { Fixture } from "./conformance.js";

const KB = 1024;
/** Text of that many bytes as JSON, with its quotes. */
const textOf = (bytes: number): string => "x".repeat(bytes - 2);

const TEXT = 'quote " back \\ line \n null \0 umlaut ü moon \u{1f319} half \ud83c';
/** None, and one with what JSON has and hasn't. test/client/run/json-codec has every kind. */
const VALUES: readonly (readonly [what: string, value: unknown])[] = [
  ["undefined", undefined],
  ["an object of all sorts", { a: 1n, b: { at: new Date(0), list: [-0, null, { deep: Number.NaN }] }, "": TEXT, none: "" }],
];

export function describeRunValues(fixture: Fixture): void {
  describe("a result is kept", () => {
    const replay = (name: string) => fixture.rival.runOnce(name, () => expect.unreachable("the work was done"));

    it.each(VALUES)("and replayed as it was: %s", async (_what, value) => {
      const name = fixture.fresh();
      const first = await fixture.locks.runOnce(name, () => value);
      expect(first).toEqual({ value, replayed: false, attempt: 1 });
      expect(first.value).toBe(value);
      expect(await replay(name)).toEqual({ value, replayed: true, attempt: 1 });
      const found = await fixture.rival.runs.get(name);
      expect(found?.state).toBe("succeeded");
      expect(found?.result).toEqual(value);
    });

    it.each([
      ["just inside of the record", KB, false],
      ["just on an item of its own", KB + 1, true],
      ["of 256 KB", 256 * KB, true],
    ])("whatever its size: %s", async (_what, bytes, apart) => {
      const name = fixture.fresh();
      const text = textOf(bytes);
      await fixture.locks.runOnce(name, () => text);
      expect((await replay(name)) as object).toEqual({ value: text, replayed: true, attempt: 1 });
      expect(await fixture.backend.isKeptApart(name, text)).toBe(apart);
    });

    it("by its bytes, not its characters", async () => {
      const name = fixture.fresh();
      const text = "ü".repeat(128 * KB);
      expect(await thrownBy(fixture.locks.runOnce(name, () => text))).toMatchObject({ code: "result-omitted" });
    });
  });

  describe("a result that can't be kept", () => {
    const UNKEEPABLE: readonly (readonly [what: string, value: unknown, why: RegExp])[] = [
      ["just over 256 KB", textOf(256 * KB + 1), /262145 bytes as JSON, of at most 262144/],
      ["a function", { done: { by: () => 1 } }, /result\.done\.by: a function can't be kept/],
    ];

    it.each(UNKEEPABLE)('is an error with largeResult "throw", now and at every replay: %s', async (_what, value, why) => {
      const name = fixture.fresh();
      const first = await thrownBy(fixture.locks.runOnce(name, () => value));
      expect(first).toBeInstanceOf(LockError);
      expect(first).toMatchObject({ code: "result-omitted", retry: "never" });
      expect((first as Error).message).toMatch(why);
      for (const options of [{}, { largeResult: "throw" }] as const) {
        const again = fixture.rival.runOnce(name, { waitMs: 0, ...options }, () => expect.unreachable("the work was done"));
        expect(await thrownBy(again)).toMatchObject({ name: "LockError", code: "result-omitted" });
      }
    });

    it.each(UNKEEPABLE)('is handed on with largeResult "omit", and undefined at every replay: %s', async (_what, value) => {
      const name = fixture.fresh();
      const options = { largeResult: "omit", waitMs: 0 } as const;
      const first = await fixture.locks.runOnce(name, options, () => value);
      expect(first).toMatchObject({ replayed: false, attempt: 1, resultOmitted: true });
      expect(first.value).toBe(value);
      const again = await fixture.rival.runOnce(name, options, () => expect.unreachable("the work was done"));
      expect(again).toEqual({ value: undefined, replayed: true, attempt: 1, resultOmitted: true });
      expect(await fixture.rival.runs.get(name)).toMatchObject({ state: "succeeded", resultOmitted: true });
    });
  });

  describe("a checkpoint", () => {
    /** Saves the values, fails, and returns the checkpoint that the next attempt gets. */
    async function saved(...values: readonly unknown[]): Promise<unknown> {
      const name = fixture.fresh();
      await thrownBy(
        fixture.locks.runOnce(name, async (run) => {
          for (const value of values) await run.saveCheckpoint(value);
          throw new Error("no stock");
        }),
      );
      return (await fixture.rival.runOnce(name, { largeResult: "omit" }, ({ checkpoint }) => checkpoint)).value;
    }

    it("is handed to the next attempt as it was; of undefined it is null: nothing saved and saved nothing are not the same", async () => {
      expect(await saved(VALUES[1]![1])).toEqual(VALUES[1]![1]);
      expect(await saved(undefined)).toBeNull();
      expect(await saved()).toBeUndefined();
    });

    it.each([KB, KB + 1, 8 * KB])("is kept with %d bytes, and the last one counts", async (bytes) => {
      expect(await saved("first", textOf(bytes))).toBe(textOf(bytes));
      expect(await saved(textOf(bytes), "last")).toBe("last");
    });

    it.each<[what: string, value: unknown, why: RegExp]>([
      ["over 8 KB", textOf(8 * KB + 1), /^checkpoint: is 8193 bytes as JSON, of at most 8192$/],
      ["a function", { step: () => 1 }, /^checkpoint\.step: a function can't be kept$/],
    ])("that can't be kept is refused by name, and the one before it stays: %s", async (_what, value, why) => {
      const name = fixture.fresh();
      const { value: told } = await fixture.locks.runOnce(name, async (run) => {
        await run.saveCheckpoint("before");
        return { error: await thrownBy(run.saveCheckpoint(value)), checkpoint: run.checkpoint, held: run.isHeld() };
      });
      expect(told).toMatchObject({ checkpoint: "before", held: true });
      expect(told.error).toBeInstanceOf(InvalidRequestError);
      expect(told.error).toMatchObject({ field: "checkpoint" });
      expect((told.error as Error).message).toMatch(why);
    });
  });
}
