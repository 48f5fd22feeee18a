/** `sweep`: what it deletes on an engine's table, what it says for people and for programs, and its bounds. */
import { describe, expect, it } from "vitest";
import { DAY_MS, usedAgo } from "../store/used-ago.js";
import { freshTable } from "../support/engine.js";
import { jsonOf, run } from "./in-process.js";

/** A table on which so many keys of each namespace were used three days ago, and one a moment ago. */
async function usedTable(count: number, namespaces: readonly string[] = ["default"]) {
  const table = await freshTable();
  const readers = new Map<string, () => Promise<unknown>>();
  for (const namespace of namespaces) {
    const use = async (key: string, agoMs: number): Promise<unknown> => readers.set(key, await usedAgo(table, { namespace, key }, agoMs));
    await use("NOW", 0);
    await Promise.all(Array.from({ length: count }, (_, key) => use(`OLD_${key}`, 3 * DAY_MS)));
  }
  return { tableName: table.tableName, env: table.env, read: (key: string) => readers.get(key)?.() };
}

describe("sweep", () => {
  it("says what is over with --dry-run, and deletes it without", async () => {
    const { tableName, env, read } = await usedTable(3);
    const dry = await run(["sweep", "--dry-run"], env);
    expect(dry).toEqual({ status: 0, stdout: `${tableName}: 3 items are over; none was deleted\n`, stderr: "" });
    const done = await run(["sweep"], env);
    expect(done).toEqual({ status: 0, stdout: `${tableName}: 3 of 3 items that were over are deleted\n`, stderr: "" });
    expect(await jsonOf(["sweep"], env)).toEqual({ table: tableName, pages: 16, found: 0, deleted: 0, left: 0, isWhole: true });
    expect([await read("NOW"), await read("OLD_0")]).toEqual([expect.objectContaining({}), undefined]);
  });

  it("deletes only what is of the namespace that is given", async () => {
    const { tableName, env } = await usedTable(2, ["acme", "beta"]);
    const { HOLDFAST_TABLE: _, ...elsewhere } = env;
    const asked = ["--table", tableName, "--namespace", "acme", "sweep"];
    expect(await jsonOf(asked, elsewhere)).toMatchObject({ pages: 64, found: 2, deleted: 2, isWhole: true });
    expect(await jsonOf(["sweep"], env)).toMatchObject({ found: 2, deleted: 2 });
  });

  it("ends after --max items, and tells how far it is on the way", async () => {
    const { tableName, env } = await usedTable(40);
    const { deleted, isWhole } = (await jsonOf(["sweep", "--max", "5"], env)) as { deleted: number; isWhole: boolean };
    expect(isWhole).toBe(false);
    expect(deleted).toBeGreaterThanOrEqual(5);
    expect(deleted).toBeLessThan(40);
    // 64 partitions are more pages than a line of progress has.
    const rest = await run(["--namespace", "default", "sweep"], env);
    expect(rest).toMatchObject({
      status: 0,
      stdout: `${tableName}: ${40 - deleted} of ${40 - deleted} items that were over are deleted\n`,
    });
    expect(rest.stderr).toMatch(/^holdfast: \d+ of \d+ items that were over are deleted so far\n$/);
  });

  it("fails with the table's reason, or where a URL is given", async () => {
    const { env } = await freshTable();
    const gone = await run(["sweep", "--table", "none"], env);
    expect(gone).toMatchObject({ status: 78, stderr: expect.stringMatching(/^holdfast: sweep: .*there is no table none/) as string });
    expect(await run(["--url", "http://127.0.0.1:1", "sweep"], {})).toEqual({
      status: 64,
      stdout: "",
      stderr: "holdfast: sweep: works straight on a table, and a URL is given\nSay which table by --table.\n",
    });
  });
});
