/**
 * Deliberate mistakes in tests, each with a witness: the first input of a search that shows it. A search has no chance in it, so a witness
 * that still shows its mistake says how soon a search would find it at the latest. `X.test.ts` replays the witnesses of `X.witnesses.json`. `X.slow.test.ts` replays all of its own, and with `-u` searches for those that are stale: a
 * change of the code may change the course of every history.
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

/** Declares a test of each mistake: its witness still shows it. */
export function replayWitnesses<W extends number | string>(mistakes: readonly MustFail<W>[]): void {
  const all = recorded<W>();
  for (const mistake of mistakes) {
    it(mistake.title, () => expectShown(mistake, all[mistake.name]));
  }
}

async function expectShown<W extends number | string>({ isShownBy }: MustFail<W>, witness: W | undefined): Promise<void> {
  const how = `To search: npx vitest run --project slow ${relative(process.cwd(), thisFile().replace(ENDING, ""))} -u`;
  if (witness === undefined) throw new Error(`No witness is recorded. ${how}`);
  expect(await isShownBy(witness), `The witness ${witness} is stale. ${how}`).toBe(true);
}

/**
 * Declares a test of each mistake: its witness still shows it. With `-u` a search replaces those that don't, and the last test records them.
 */
export function recordWitnesses<W extends number | string>(mistakes: readonly MustFail<W>[]): void {
  const all = { ...recorded<W>() };

  for (const mistake of mistakes) {
    const { name, title, isShownBy, search } = mistake;
    it(title, async () => {
      const known = all[name];
      if (!inject("isRecording")) return expectShown(mistake, known);
      if (known !== undefined && (await isShownBy(known))) return;
      const found = await search();
      if (found === undefined) throw new Error("The search found no input that shows it");
      all[name] = found;
    });
  }

  it("has a recorded witness of each mistake and of nothing else", async () => {
    const file = thisFile().replace(ENDING, ".witnesses.json");
    const witnesses = Object.fromEntries(mistakes.map(({ name }) => [name, all[name]]));
    await expect(`${JSON.stringify(witnesses, null, 2)}\n`).toMatchFileSnapshot(file);
  });
}
