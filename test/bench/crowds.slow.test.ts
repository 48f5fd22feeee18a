/**
 * Every row of `npm run bench -- crowds`. crowds-missed.md lists the targets that are not reached, with the figures that are:
 * `npx vitest run --project slow test/bench/crowds.slow -u` writes it after a change, and its difference says what became better or worse. It
 * plays only then, since all rows take a quarter of an hour; crowds.test.ts plays those that are quick, each time.
 */
import { afterAll, expect, inject, it } from "vitest";
import { type Reached, played, targetsOf, targetsTable } from "../../bench/crowds/crowds.js";
import { ROWS } from "../../bench/crowds/rows.js";
import { endBundling, loadBundle } from "../simulation/bundle.js";
import { WRITES_FIRST } from "../simulation/optimisers.js";

afterAll(endBundling);

it.runIf(inject("isRecording"))("misses the targets of crowds-missed.md and no others", { timeout: 3_600_000 }, async () => {
  const reached: Reached[] = [];
  for (const row of ROWS) reached.push(...targetsOf(await played(row)));
  const missed = reached.filter(({ isMet }) => !isMet);
  const page = `# Targets of crowds that are not reached

Of ${reached.length} targets (bench/crowds/rows.ts), ${missed.length} are not reached. Medians of three runs in virtual time. Made by \`npx vitest run test/bench/crowds.slow -u\`.

${targetsTable(missed)}
`;
  await expect(page).toMatchFileSnapshot("crowds-missed.md");
});

it("a crowd of tryAcquire takes no lease from its holders; control: it does where each call writes", { timeout: 600_000 }, async () => {
  const lost = async (mistake?: typeof WRITES_FIRST): Promise<number | undefined> => {
    const { clicks } = await loadBundle(mistake);
    return (await clicks({ times: 3, way: "direct" })(1)).lost;
  };
  expect(await lost()).toBe(0);
  expect(await lost(WRITES_FIRST)).toBeGreaterThan(0);
});
