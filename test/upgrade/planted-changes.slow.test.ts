/**
 * The controls of golden-items.test.ts and golden-exchanges.test.ts: each of these changes of the layout, planted in the store's code, makes it
 * write a golden item differently, and each change of the HTTP contract makes a golden exchange another. Two layouts once had one number, and no
 * test was red.
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
import { type Exchange, lackingIn } from "./golden-exchanges.js";
import type * as http from "./golden-exchanges.js";
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

const CONTRACT = "lib/contract";
/** Changes that mislead a client or a service of another version. */
const CONTRACT_CHANGES: typeof CHANGES = [
  ["a header of an answer has another name", '"lease-state": state', '"lease-status": state', `${CONTRACT}/operation.ts`],
  ["a new lease has another status", 'how === "granted" ? 201 : 200, body: lease', "200, body: lease", `${CONTRACT}/operation.ts`],
  ["a code has another status", "locked: { status: 423", "locked: { status: 409", "lib/core/errors.ts"],
  [
    "a code has other advice",
    'retry: "later", title: "The limit has no room',
    'retry: "never", title: "The limit has no room',
    "lib/core/errors.ts",
  ],
  [
    "an operation has another path",
    "/v1/locks/{key}/leases/{leaseId}/renew",
    "/v1/locks/{key}/leases/{leaseId}/renewal",
    `${CONTRACT}/routes.ts`,
  ],
  [
    "an option became a duty",
    "drainMs: v.optional(integer(0, LIMITS.drainMaxMs))",
    "drainMs: integer(0, LIMITS.drainMaxMs)",
    `${CONTRACT}/requests.ts`,
  ],
  ["a header of a request has another name", '"Holdfast-Task-Token"', '"Holdfast-Token"', `${CONTRACT}/requests.ts`],
  ["a member has another unit", "serverTimeMs: reading.latestMs", "serverTimeMs: reading.latestMs / 1000", "lib/core/lock/views.ts"],
  [
    "a time that the service chooses has another unit",
    "renewAfterMs: renewAfterMs(",
    "renewAfterMs: 1e-3 * renewAfterMs(",
    "lib/core/lock/views.ts",
  ],
  ["a member is gone", "body: { breakInMs } }", "body: {} }", `${CONTRACT}/operations.ts`],
  ["the SDK sends a wait in another unit", "wait=${seconds}", "wait=${1000 * seconds}", `${CONTRACT}/encode.ts`],
  ["the SDK reads another header", 'headers.get("idempotent-replayed")', 'headers.get("replayed")', "lib/client/wire/http.ts"],
];
/** Changes that only add something. */
const CONTRACT_ADDITIONS: typeof CHANGES = [
  ["a member of an answer", "body: { notified } }", "body: { notified, woken: notified } }", `${CONTRACT}/operations.ts`],
  ["a header of an answer", '"lease-state": state', '"lease-state": state, "lease-ended": "true"', `${CONTRACT}/operation.ts`],
];

/** Returns the module with this edit in its sources. */
async function built(entry: string, [, ...edit]: (typeof CHANGES)[number]): Promise<unknown> {
  const folder = await mkdtemp(join(import.meta.dirname, "../../node_modules/.cache/golden-"));
  const outfile = join(folder, "scenes.mjs");
  await build({
    ...{ entryPoints: [join(import.meta.dirname, entry)], outfile, bundle: true, format: "esm", platform: "node" },
    plugins: [editedSources([edit[2]], () => ({ name: "a planted change", edits: [edit] }))],
  });
  const module = (await import(pathToFileURL(outfile).href)) as unknown;
  await rm(folder, { recursive: true });
  return module;
}

const goldenIn = (file: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "golden", file), "utf8"));

/** Returns the scenes whose items the code with this edit writes differently. A scene that it can't play is one too. */
async function changedBy(change: (typeof CHANGES)[number]): Promise<readonly string[]> {
  const { writtenItems } = (await built("golden-scenes.ts", change)) as typeof scenes;
  const { endpoint, tableName } = await freshTable();
  const written = await writtenItems({ calls: engineCalls(endpoint), tableName }, true);
  const golden = goldenIn(`format-${FORMAT_VERSION}.json`) as Record<string, readonly { readonly item: unknown }[]>;
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

/** Returns what the exchanges of the code with this edit lack or have otherwise than the golden ones, and what they have beside that. */
async function contractBy(change: (typeof CHANGES)[number]) {
  const { play } = (await built("golden-exchanges.ts", change)) as typeof http;
  const golden = Object.entries(goldenIn("http-v1.json") as Record<string, readonly (readonly Exchange[])[]>);
  const compared = await Promise.all(
    golden.map(async ([scene, recordings]) => {
      const [made, last] = [await play(scene).catch(() => []), recordings.at(-1)];
      return [lackingIn(made, last), lackingIn(last, made)] as const;
    }),
  );
  return { lost: compared.flatMap(([lost]) => lost), added: compared.flatMap(([, added]) => added) };
}

it("no golden exchange changes while the code doesn't", { timeout: 120_000 }, async () => {
  const same = '"lease-state": state';
  expect(await contractBy(["nothing", same, same, `${CONTRACT}/operation.ts`])).toEqual({ lost: [], added: [] });
});

it.each(CONTRACT_CHANGES)("a golden exchange shows that %s", { timeout: 120_000 }, async (...change) => {
  expect((await contractBy(change)).lost).not.toEqual([]);
});

it.each(CONTRACT_ADDITIONS)(
  "golden exchanges show %s that was added, and that nothing else changed",
  { timeout: 120_000 },
  async (...change) => {
    const { lost, added } = await contractBy(change);
    expect(lost).toEqual([]);
    expect(added).not.toEqual([]);
  },
);
