/**
 * Deliberate mistakes in tests, each with a witness: the recorded input that shows it. `X.test.ts` replays the witnesses of
 * `X.witnesses.json`. `X.slow.test.ts` searches for each mistake from the start, as if none were recorded, and records its findings with
 * `-u`. A change of the code may change the course of every history. Then a witness is stale: its test fails until another is recorded.
 */
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { expect, inject, it } from "vitest";

/** A mistake that a test must notice. */
export interface MustFail<W extends number | string> {
  /** The name under which its witness is recorded. */
  readonly name: string;
  /** The name of its test. */
  readonly title: string;
  /** Plays one input. Returns true if the mistake is noticed. */
  isShownBy(witness: W): Promise<boolean>;
  /** Returns the first input that shows the mistake; undefined if the search has reached its bound. */
  search(): Promise<W | undefined>;
}

type Witnesses<W> = Readonly<Record<string, W>>;

const ENDING = /(\.slow)?\.test\.ts$/;

function thisFile(): string {
  const { testPath } = expect.getState();
  if (testPath === undefined) throw new Error("Witnesses are read within a test");
  return testPath;
}

function recorded<W>(): Witnesses<W> {
  const file = thisFile().replace(ENDING, ".witnesses.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Witnesses<W>) : {};
}

/**
 * Declares a test of each mistake: its witness still shows it. With `groupOf`, only the first of each group is replayed: the slow tier
 * searches for all of them.
 */
export function replayWitnesses<W extends number | string>(mistakes: readonly MustFail<W>[], groupOf?: (witness: W) => string): void {
  const all = recorded<W>();
  const groups = mistakes.map(({ name }) => (groupOf && all[name] !== undefined ? groupOf(all[name]) : name));
  for (const { name, title, isShownBy } of mistakes.filter((_mistake, index) => groups.indexOf(groups[index]!) === index)) {
    it(title, async () => {
      const witness = all[name];
      const how = `To search: npx vitest run ${relative(process.cwd(), thisFile().replace(ENDING, ".slow.test.ts"))} -u`;
      if (witness === undefined) throw new Error(`No witness is recorded. ${how}`);
      expect(await isShownBy(witness), `The witness ${witness} is stale. ${how}`).toBe(true);
    });
  }
}

/** Declares a test of each mistake: a search finds it. The last test requires that all witnesses are recorded. `-u` replaces stale ones. */
export function searchWitnesses<W extends number | string>(mistakes: readonly MustFail<W>[]): void {
  const found = new Map<string, W>();

  for (const { name, title, isShownBy, search } of mistakes) {
    it(title, async () => {
      const known = recorded<W>()[name];
      const isFresh = known !== undefined && (await isShownBy(known));
      // Recording proves nothing, so only a stale witness needs a search then.
      const witness = isFresh && inject("isRecording") ? known : await search();
      if (witness === undefined) throw new Error("The search found no input that shows it");
      found.set(name, isFresh ? known : witness);
    });
  }

  it("has a recorded witness of each, which -u replaces when it is stale", async () => {
    const all = mistakes.map(({ name }) => [name, found.get(name) ?? recorded<W>()[name]]);
    const file = thisFile().replace(ENDING, ".witnesses.json");
    await expect(`${JSON.stringify(Object.fromEntries(all), null, 2)}\n`).toMatchFileSnapshot(file);
  });
}
