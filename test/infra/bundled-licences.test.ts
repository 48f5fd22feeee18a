/** The bundle goes with the licences of the packages in it, which ask for that, and every one of them may be passed on. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bundleFunction, LICENCES_FILE } from "../../infra/bundle.js";
import { licencesText } from "../../infra/bundled-licences.js";
import { isAllowed } from "../tidy/licences.js";

it("the functions' bundle has the licence of every package whose code is in it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-licences-"));
  try {
    const packages = await bundleFunction(directory);
    const written = readFileSync(join(directory, LICENCES_FILE), "utf8");
    const { sources } = JSON.parse(readFileSync(join(directory, "sdk.mjs.map"), "utf8")) as { sources: string[] };
    const names = new Set(sources.flatMap((source) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source)?.[1] ?? []));
    expect(names.size).toBeGreaterThan(10);
    expect(packages.map(({ name }) => name)).toEqual(expect.arrayContaining([...names, "valibot"]));
    for (const { name, version, licence, text } of packages) {
      expect(written).toContain(`${name} ${version} (${licence})\n`);
      expect(isAllowed(licence), `${name}: ${licence}`).toBe(true);
      // The MIT licence and its like ask for their text with the name of the author. Apache's is the same for all, and others have it.
      if (licence !== "Apache-2.0") expect(text, name).toContain("Copyright");
      expect(written).toContain(text);
    }
    expect(written).toContain("Apache License");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

it("packages with the same licence text share it", () => {
  const some = (name: string, text: string) => ({ name, version: "1.0.0", licence: "MIT", text });
  const text = licencesText([some("a", "One text."), some("b", "Another."), some("c", "One text.")]);
  expect(text.match(/One text\./g)).toHaveLength(1);
  expect(text).toContain("a 1.0.0 (MIT)\nc 1.0.0 (MIT)\n\nOne text.");
});
