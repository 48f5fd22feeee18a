/** The function that deletes what is over, of a table without TTL: on an engine, whose table it knows by its environment alone. */
import { expect, it } from "vitest";
import { composeTableSweep } from "../../lambda/agent.js";
import { DAY_MS, usedAgo } from "../store/used-ago.js";
import { freshTable } from "../support/engine.js";

it("deletes what was used last more than a day ago, leaves the rest, and prints the counts", async () => {
  const table = await freshTable();
  const old = await usedAgo(table, { key: "OLD" }, 3 * DAY_MS);
  const recent = await usedAgo(table, { key: "RECENT" }, 0);
  const lines: object[] = [];
  const run = composeTableSweep(table.env, { print: (line) => void lines.push(line) });
  const swept = { pages: 16, found: 1, deleted: 1, left: 0, isWhole: true };
  expect(await run()).toEqual(swept);
  expect(await run()).toEqual({ ...swept, found: 0, deleted: 0 });
  expect(lines).toEqual([
    { event: "table-swept", ...swept },
    { event: "table-swept", ...swept, found: 0, deleted: 0 },
  ]);
  expect(await old()).toBeUndefined();
  expect(await recent()).toBeDefined();
});

it("fails as a function, after the line with its counts, if the table can't be reached", async () => {
  const { env } = await freshTable();
  const lines: object[] = [];
  const run = composeTableSweep({ ...env, HOLDFAST_TABLE: "none" }, { print: (line) => void lines.push(line) });
  await expect(run()).rejects.toThrow(/there is no table none/);
  expect(lines).toEqual([{ event: "table-swept", pages: 0, found: 0, deleted: 0, left: 0, isWhole: false }]);
});

it("does not start without a table", () => {
  const env = { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b", AWS_LAMBDA_FUNCTION_NAME: "f" };
  expect(() => composeTableSweep(env)).toThrow("HOLDFAST_TABLE is not set");
});
