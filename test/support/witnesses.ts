/**
 * Deliberate mistakes in tests, each with a witness: the first input of a search that shows it. A search has no chance in it, so a witness
 * that still shows its mistake says how soon a search would find it at the latest. `X.test.ts` replays the witnesses of `X.witnesses.json` and of
 * `X-*.witnesses.json`, or a share of them. `X.slow.test.ts` replays all of its own, and with `-u` searches for those that are stale: a
 * change of the code may change the course of every history.
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

/** Declares a test of each mistake, or of this share of them: its witness still shows it. */
export function replayWitnesses<W extends number | string>(mistakes: readonly MustFail<W>[], share?: Share<W>): void {
  const all = recorded<W>();
  for (const mistake of share ? cheapest(mistakes, all, share) : mistakes) {
    it(mistake.title, () => expectShown(mistake, all[mistake.name]));
  }
}

async function expectShown<W extends number | string>({ isShownBy }: MustFail<W>, witness: W | undefined): Promise<void> {
  const how = `To search: npx vitest run --project slow ${relative(process.cwd(), thisFile().replace(ENDING, ""))} -u`;
  if (witness === undefined) throw new Error(`No witness is recorded. ${how}`);
  expect(await isShownBy(witness), `The witness ${witness} is stale. ${how}`).toBe(true);
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

/**
 * Declares a test of each mistake: its witness still shows it. With `-u` a search replaces those that don't, and the last test records them.
 * @param stale the mistakes whose witnesses wait for that search: their tests are skipped, and count as such
 */
export function recordWitnesses<W extends number | string>(mistakes: readonly MustFail<W>[], stale: readonly string[] = []): void {
  const all = { ...recorded<W>() };

  for (const mistake of mistakes) {
    const { name, title, isShownBy, search } = mistake;
    it(title, async ({ skip }) => {
      const known = all[name];
      if (stale.includes(name) && !inject("isRecording")) skip("its witness is of earlier histories: search with -u");
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
