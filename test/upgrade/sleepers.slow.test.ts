/** A version that knows only the first format, on a table where somebody sleeps: it leaves the key alone, and serves it again afterwards. */
import { rm } from "node:fs/promises";
import { expect, it } from "vitest";
import { closingAfterEach } from "../adapters/app-server.js";
import { startChild } from "../support/child.js";
import type { Edits } from "../support/edited-sources.js";
import { freshTable } from "../support/engine.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { bundleVersion } from "./versions.js";

const ITEM = "lib/store/dynamo/item.ts";
const FORMER: Edits = { name: "before sleepers", edits: [["FORMAT_VERSION = 2;", "FORMAT_VERSION = 1;", ITEM]] };
const UNMARKED: Edits = { name: "no second format", edits: [["? FORMAT_VERSION : FIRST_FORMAT", "? FIRST_FORMAT : FIRST_FORMAT", ITEM]] };
/** Two bundles and two processes. */
const LIMIT_MS = 240_000;

const open = closingAfterEach();

/** Serves a version on the table. Returns the status of a request about a lease of one key. */
async function serve(version: Edits | undefined, env: Readonly<Record<string, string>>) {
  const directory = await bundleVersion(version);
  const child = startChild("service.ts", import.meta.url, { directory }, { ...env, HOLDFAST_WAKE: "1" });
  open({ close: () => child.kill().then(() => rm(directory, { recursive: true })) });
  const { url } = await child.reported("ready");
  return async (method: string, leaseId: string, end = "", headers: Readonly<Record<string, string>> = {}): Promise<number> =>
    (await fetch(`${url}/v1/locks/ORDER_1/leases/${leaseId}${end}`, { method, headers })).status;
}

const SLEEPS = { prefer: "wait=600", "holdfast-task-token": "token" };

it("refuses a key where somebody sleeps, and serves it again afterwards", { timeout: LIMIT_MS }, async () => {
  const { env, client } = await freshTable();
  client.destroy();
  const [former, present] = [await serve(FORMER, env), await serve(undefined, env)];
  const [holder, sleeper] = [leaseIdAt(Date.now()), leaseIdAt(Date.now())];
  expect(await former("PUT", holder)).toBe(201);
  expect(await present("PUT", sleeper, "", SLEEPS)).toBe(202);
  for (const [method, end] of [["POST", "/renew"], ["PUT"], ["GET"], ["DELETE"]] as const)
    expect(await former(method, holder, end), method).toBe(503);
  expect(await present("POST", holder, "/renew")).toBe(200);
  expect(await present("DELETE", sleeper)).toBe(204);
  expect(await former("DELETE", holder)).toBe(204);
});

it("control: would hand the key to a sleeper for seconds, without the second format", { timeout: LIMIT_MS }, async () => {
  const { env, client } = await freshTable();
  client.destroy();
  const [former, unmarked] = [await serve(FORMER, env), await serve(UNMARKED, env)];
  const [holder, sleeper] = [leaseIdAt(Date.now()), leaseIdAt(Date.now())];
  expect(await former("PUT", holder)).toBe(201);
  expect(await unmarked("PUT", sleeper, "", SLEEPS)).toBe(202);
  expect(await former("DELETE", holder)).toBe(204);
});
