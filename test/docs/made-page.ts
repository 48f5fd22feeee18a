/** The harness of pages that the code makes, in whole or in parts: they stand in docs/ as it makes them. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";
import { type REFERENCE, readPage, withParts } from "./generated.js";

/** Checks that the page has its parts as the code makes them. With `-u` it writes them. `edit` changes the whole page before. */
export async function expectMade(
  path: string,
  parts: Readonly<Record<string, string>>,
  edit = (page: string): string => page,
): Promise<void> {
  const how = `what ${path} is made from changed: read the difference, then run npx vitest run test/${path.replace(".md", "")} -u`;
  await expect(edit(await withParts(readPage(path), parts)), how).toMatchFileSnapshot(join(ROOT, path));
}

/** Tests a page of the reference: it names all of `names`, each as `line` has it, and is committed as it is made. */
export function itIsWhole(
  path: (typeof REFERENCE)[number],
  make: () => Promise<string>,
  { names, line }: { names: () => readonly string[]; line: (name: string) => string },
): void {
  it("names all of it; control: a name that is left out is reported", async () => {
    const page = await make();
    const missing = (text: string): readonly string[] => names().filter((name) => !text.includes(`\n${line(name)}\n`));
    const [first = "", ...others] = names();
    expect(others.length).toBeGreaterThan(20);
    expect(missing(page)).toEqual([]);
    expect(missing(page.replaceAll(`\n${line(first)}\n`, "\n"))).toEqual([first]);
  });

  it("is committed as the code makes it; npm run docs:reference writes it", async () => {
    expect(readPage(path) === (await make())).toBe(true);
  });
}
