/**
 * Deliberate mistakes in tests, each with a witness: the recorded input that shows it. `X.test.ts` replays the witnesses of
 * `X.witnesses.json` and of `X-*.witnesses.json`. `X.slow.test.ts` searches for each mistake from the start, as if none were recorded, and
 * records its findings with `-u`. A change of the code may change the course of every history. Then a witness is stale: its test fails until another is recorded.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
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
  const [folder, name] = [dirname(thisFile()), basename(thisFile()).replace(ENDING, "")];
  const files = readdirSync(folder).filter((file) => file.startsWith(name) && file.endsWith(".witnesses.json"));
  return Object.assign({}, ...files.map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")) as Witnesses<W>)) as Witnesses<W>;
}

/** The share of the mistakes whose witnesses are replayed: of each group the one that costs least. */
export interface Share<W> {
  groupOf(witness: W): string;
  costOf(witness: W): number;
}

/** Declares a test of each mistake, or of this share of them: its witness still shows it. The slow tier searches for all. */
export function replayWitnesses<W extends number | string>(mistakes: readonly MustFail<W>[], share?: Share<W>): void {
  const all = recorded<W>();
  for (const { name, title, isShownBy } of share ? cheapest(mistakes, all, share) : mistakes) {
    it(title, async () => {
      const witness = all[name];
      const how = `To search: npx vitest run --project slow ${relative(process.cwd(), thisFile().replace(ENDING, ""))} -u`;
      if (witness === undefined) throw new Error(`No witness is recorded. ${how}`);
      expect(await isShownBy(witness), `The witness ${witness} is stale. ${how}`).toBe(true);
    });
  }
}

/** The mistake of each group whose witness costs least, and those without a witness. */
function cheapest<W extends number | string>(
  mistakes: readonly MustFail<W>[],
  all: Witnesses<W>,
  { groupOf, costOf }: Share<W>,
): Iterable<MustFail<W>> {
  const chosen = new Map<string, MustFail<W>>();
  for (const mistake of mistakes) {
    const witness = all[mistake.name];
    const group = witness === undefined ? mistake.name : groupOf(witness);
    const best = all[chosen.get(group)?.name ?? ""];
    if (best === undefined || (witness !== undefined && costOf(witness) < costOf(best))) chosen.set(group, mistake);
  }
  return chosen.values();
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
