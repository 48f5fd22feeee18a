/**
 * Two versions of the function, and of the client straight on the table, on one table, forward and back: this tree, and this tree with the edits that a next version of the same format
 * might bring: a new option of an acquire, which is stored with the hold, and an attribute beside it. That both sides of it read the layout of
 * the tree is held by the golden items (golden-items.test.ts), which the code of each format wrote.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { bundleFunction } from "../../infra/bundle.js";
import type * as dynamodb from "../../lib/dynamodb.js";
import { closingAfterEach } from "../adapters/app-server.js";
import { startChild } from "../support/child.js";
import { type Edit, type Edits, editedSources } from "../support/edited-sources.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { leaseIdAt } from "../support/lease-ids.js";

const ITEM = "lib/store/dynamo/item.ts";
const FORMAT = "lib/store/dynamo/format.ts";
const LAYOUT = "lib/store/dynamo/layout.ts";
/** The option `note` of an acquire, which takes the way of `meta`; and an attribute beside the record's parts. */
const NEXT: readonly Edit[] = [
  ["meta: true };", "meta: true, note: true };", "lib/core/details.ts"],
  ["meta: v.optional(meta) }", "meta: v.optional(meta), note: v.optional(text(100)) }", "lib/contract/fields.ts"],
  ['  notified: part("nt", NOTIFIED),', '  notified: part("nt", NOTIFIED),\n  note: optional(text("nn")),', LAYOUT],
  ["return {\n    h: Object.fromEntries([", "return {\nnx: 1,\nh: Object.fromEntries([", ITEM],
];
const NEWER_FORMAT: Edit = ["FORMAT_VERSION = 3;", "FORMAT_VERSION = 4;", FORMAT];
/** The old version with a mistake: it drops the attributes that it doesn't know. */
const FORGETFUL: Edit = ["(unknown.length > 0 &&", "(unknown.length < 0 &&", LAYOUT];
/** Two bundles and two processes. */
const LIMIT_MS = 240_000;
const QUEUED = { priority: 5 };

const open = closingAfterEach();

/** Serves a version on the table. Returns the answer to a request about a lease of one key. */
async function serve(env: Readonly<Record<string, string>>, ...edits: readonly Edit[]) {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-version-"));
  await bundleFunction(directory, undefined, pluginsOf(edits));
  const child = startChild("service.ts", import.meta.url, { directory }, env);
  open({ close: () => child.kill().then(() => rm(directory, { recursive: true })) });
  const { url } = await child.reported("ready");
  return async (
    method: string,
    leaseId: string,
    { end = "", ...options }: { readonly end?: string; readonly [option: string]: unknown } = {},
  ) => {
    const body = method === "PUT" && { body: JSON.stringify(options) };
    const headers = { "content-type": "application/json", prefer: "wait=0" };
    const response = await fetch(`${url}/v1/locks/ORDER_1/leases/${leaseId}${end}`, { method, headers, ...body });
    const text = await response.text();
    return { status: response.status, ...(text !== "" && (JSON.parse(text) as object)) };
  };
}

function pluginsOf(edits: readonly Edit[]) {
  const version: Edits = { name: "another version", edits };
  return edits.length > 0
    ? [
        editedSources(
          edits.map(([, , file]) => file),
          () => version,
        ),
      ]
    : [];
}

/** Returns a client of a version, straight on the table. */
async function direct({ place }: FreshTable, ...edits: readonly Edit[]) {
  const root = join(import.meta.dirname, "../..");
  const directory = await mkdtemp(join(root, "node_modules/.cache/version-"));
  const outfile = join(directory, "dynamodb.mjs");
  await build({
    ...{ entryPoints: [join(root, "lib/dynamodb.ts")], outfile, bundle: true, format: "esm", platform: "node", packages: "external" },
    plugins: pluginsOf(edits),
  });
  const { createLockClient } = (await import(pathToFileURL(outfile).href)) as typeof dynamodb;
  await rm(directory, { recursive: true });
  const locks = createLockClient(place);
  open({ close: () => locks.close() });
  return locks;
}

/** A table, with this version and another on it. */
async function twoVersions(old: readonly Edit[], next: readonly Edit[]) {
  const { env, client } = await freshTable();
  client.destroy();
  const ids = [0, 1, 2].map(() => leaseIdAt(Date.now())) as [string, string, string];
  return { old: await serve(env, ...old), next: await serve(env, ...next), ids };
}

it("serve each other's leases and places, forward and back, and the old one keeps newer attributes", { timeout: LIMIT_MS }, async () => {
  const { old, next, ids } = await twoVersions([], NEXT);
  const [first, second, third] = ids;
  expect(await old("PUT", first)).toMatchObject({ status: 201 });
  expect(await old("PUT", second, QUEUED)).toMatchObject({ status: 202, position: 1 });
  expect(await next("POST", first, { end: "/renew" })).toMatchObject({ status: 200 });
  expect(await next("PUT", third, { note: "new" })).toMatchObject({ status: 202, position: 2 });
  expect(await next("DELETE", first)).toMatchObject({ status: 204 });
  expect(await next("PUT", second, QUEUED)).toMatchObject({ status: 201 });
  // Back.
  expect(await old("DELETE", second)).toMatchObject({ status: 204 });
  expect(await next("PUT", third, { note: "new" })).toMatchObject({ status: 201, note: "new" });
  expect(await old("POST", third, { end: "/renew" })).toMatchObject({ status: 200 });
  // A waiter with a priority comes and leaves, for each of which the old version writes the whole record.
  const visitor = leaseIdAt(Date.now());
  expect(await old("PUT", visitor, QUEUED)).toMatchObject({ status: 202 });
  expect(await old("DELETE", visitor)).toMatchObject({ status: 204 });
  expect(await next("GET", third)).toMatchObject({ status: 200, note: "new" });
  expect(await old("PUT", leaseIdAt(Date.now()), { note: "x" })).toMatchObject({ status: 400, field: "note", definite: true });
});

it("control: the next one misses its attribute if the old one drops what it doesn't know", { timeout: LIMIT_MS }, async () => {
  const { old, next, ids } = await twoVersions([FORGETFUL], NEXT);
  const [first, second] = ids;
  expect(await next("PUT", first, { note: "new" })).toMatchObject({ status: 201 });
  expect(await old("PUT", second, QUEUED)).toMatchObject({ status: 202 });
  expect(await next("GET", first)).not.toHaveProperty("note");
});

it("the old one leaves a key alone that has a newer format", { timeout: LIMIT_MS }, async () => {
  const { old, next, ids } = await twoVersions([], [NEWER_FORMAT]);
  const [first, second] = ids;
  expect(await next("PUT", first)).toMatchObject({ status: 201 });
  for (const [method, options] of [["POST", { end: "/renew" }], ["PUT"], ["GET"], ["DELETE"]] as const)
    expect(await old(method, first, options), method).toMatchObject({ status: 503, code: "newer-format" });
  expect(await old("PUT", second)).toMatchObject({ status: 503, code: "newer-format" });
  expect(await next("DELETE", first)).toMatchObject({ status: 204 });
});

describe("clients straight on the table", { timeout: LIMIT_MS }, () => {
  const KEY = "ORDER_1";

  it("of two versions wait for each other and replay each other's runs, forward and back, beside the function", async () => {
    const table = await freshTable();
    const [old, next, service] = [await direct(table), await direct(table, ...NEXT), await serve(table.env, ...NEXT)];
    const first = await old.acquire(KEY);
    const visitor = leaseIdAt(Date.now());
    expect([await next.tryAcquire(KEY), (await service("PUT", visitor)).status]).toEqual([null, 202]);
    expect(await service("DELETE", visitor)).toMatchObject({ status: 204 });
    const forward = next.acquire(KEY, { waitMs: LIMIT_MS });
    await first.release();
    const second = await forward;
    expect([await old.tryAcquire(KEY), second.fencingToken > first.fencingToken]).toEqual([null, true]);
    const back = old.acquire(KEY, { waitMs: LIMIT_MS });
    await second.release();
    const third = await back;
    expect([third.isHeld(), third.fencingToken > second.fencingToken]).toEqual([true, true]);
    await third.release();
    expect((await service("PUT", leaseIdAt(Date.now()))).status).toBe(201);
    for (const [key, one, other] of [
      ["forward", old, next],
      ["back", next, old],
    ] as const) {
      await one.runOnce(key, () => "of the one");
      expect(await other.runOnce(key, () => "of the other")).toMatchObject({ value: "of the one", replayed: true });
    }
  });

  it("leave a table alone that has a newer format, and none proceeds without its lock", async () => {
    const table = await freshTable();
    const [old, next] = [await direct(table), await direct(table, NEWER_FORMAT)];
    const held = await next.acquire(KEY);
    const ran: string[] = [];
    for (const key of [KEY, "another"])
      for (const whenUnavailable of ["throw", "skip", "proceed"] as const)
        await expect(
          old.withLock(key, { whenUnavailable }, () => void ran.push(key)),
          whenUnavailable,
        ).rejects.toMatchObject({ name: "LockError", code: "newer-format" });
    expect([ran, held.isHeld()]).toEqual([[], true]);
    await held.release();
  });

  it("of a newer format leave a table alone that has this one, until it is drained for a new table, whose tokens are greater", async () => {
    const [table, fresh] = [await freshTable(), await freshTable()];
    const [old, next, onFresh] = [await direct(table), await direct(table, NEWER_FORMAT), await direct(fresh, NEWER_FORMAT)];
    const held = await old.acquire(KEY);
    await old.runOnce("done", () => "before");
    await expect(next.acquire(KEY)).rejects.toMatchObject({ name: "LockError", code: "older-format" });
    await held.release();
    await old.close();
    expect((await onFresh.acquire(KEY)).fencingToken).toBeGreaterThan(held.fencingToken);
    expect(await onFresh.runOnce("done", () => "again")).toMatchObject({ value: "again", replayed: false });
  });
});
