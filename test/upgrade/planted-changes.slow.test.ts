/**
 * The control of golden-items.test.ts: each of these changes of the layout, planted in the store's code, makes it write or read a golden item
 * differently. Two layouts once had one number, and no test was red.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { FORMAT_VERSION } from "../../lib/store/dynamo/item.js";
import { type Edit, editedSources } from "../support/edited-sources.js";
import { engineCalls, freshTable } from "../support/engine.js";
import type * as scenes from "./golden-scenes.js";

const DYNAMO = "lib/store/dynamo";
const CHANGES: readonly (readonly [what: string, ...Edit])[] = [
  ["an attribute has another name", 'permits: integer("n"),', 'permits: integer("np"),', `${DYNAMO}/layout.ts`],
  [
    "a mark has another value",
    'name: "m", to: (mode) => (mode === "shared" ? "s"',
    'name: "m", to: (mode) => (mode === "shared" ? "r"',
    `${DYNAMO}/layout.ts`,
  ],
  ["an id is stored in full", "return stored;", "return leaseId;", `${DYNAMO}/stored-id.ts`],
  ["a place that was left has another mark", 'LEFT = "-"', 'LEFT = "0"', `${DYNAMO}/lists.ts`],
  ["keys are spread otherwise", "% SHARDS", "% (SHARDS - 1)", `${DYNAMO}/item-key.ts`],
  ["the rates of a limit are another text", "gp = :rates, ", "gq = :rates, gp = :ttl, ", `${DYNAMO}/limit-write.ts`],
  ["a token is counted otherwise", "record.fencingToken,", "record.fencingToken * 2,", `${DYNAMO}/item.ts`],
  ["a sleeper has its targets elsewhere", "ADD w :w", "ADD ww :w", `${DYNAMO}/sleeper-store.ts`],
  ["a payload has no number", "t = :t, fv = :format", "t = :t, f0 = :format", `${DYNAMO}/dynamo-store.ts`],
];

/** Returns the scenes whose items the code with this edit writes differently. A scene that it can't play is one too. */
async function changedBy([, ...edit]: (typeof CHANGES)[number]): Promise<readonly string[]> {
  const folder = await mkdtemp(join(import.meta.dirname, "../../node_modules/.cache/golden-"));
  const outfile = join(folder, "scenes.mjs");
  await build({
    ...{ entryPoints: [join(import.meta.dirname, "golden-scenes.ts")], outfile, bundle: true, format: "esm", platform: "node" },
    plugins: [editedSources([edit[2]], () => ({ name: "a planted change", edits: [edit] }))],
  });
  const { writtenItems } = (await import(pathToFileURL(outfile).href)) as typeof scenes;
  await rm(folder, { recursive: true });
  const { endpoint, tableName } = await freshTable();
  const written = await writtenItems({ calls: engineCalls(endpoint), tableName }, true);
  const golden = JSON.parse(readFileSync(join(import.meta.dirname, `golden/format-${FORMAT_VERSION}.json`), "utf8")) as Record<
    string,
    readonly { readonly item: unknown }[]
  >;
  return Object.keys(golden).filter((name) => {
    const [now, then] = [written[name] ?? [], golden[name]!.map(({ item }) => item)];
    return JSON.stringify(sorted(now)) !== JSON.stringify(sorted(then));
  });
}

/** The same value with the members of every object in one order. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  );
}

it("no golden item changes while the code doesn't", { timeout: 120_000 }, async () => {
  expect(await changedBy(["nothing", "return stored;", "return stored;", `${DYNAMO}/stored-id.ts`])).toEqual([]);
});

it.each(CHANGES)("a golden item shows that %s", { timeout: 120_000 }, async (...change) => {
  expect(await changedBy(change)).not.toEqual([]);
});
