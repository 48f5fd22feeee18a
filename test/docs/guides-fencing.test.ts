/**
 * "Fencing tokens": its program runs at the engine, its SQL in the SQLite of Python (Node 20 has none), and its claims about S3 are tested
 * against the documented conditions.
 */
import { CreateTableCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { engineClient } from "../../infra/local/engine-client.js";
import { guide, pasted, printed, workshop } from "./snippets.js";

const PATIENCE_MS = 180_000;
const GUIDE = guide("fencing-tokens");
const ORDERS = `orders-${randomUUID()}`;
const endpoint = inject("engineEndpoint");

let directory: string;

beforeAll(async () => {
  directory = await workshop();
  const client = engineClient(endpoint);
  await client.send(
    new CreateTableCommand({
      TableName: ORDERS,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    }),
  );
  await waitUntilTableExists({ client, maxWaitTime: 60 }, { TableName: ORDERS });
  client.destroy();
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Runs the page's program at the engine, changed by `edit` and with `more` at its end. Returns its output. */
async function play(name: string, more = "", edit = (program: string): string => program): Promise<readonly string[]> {
  const file = join(directory, `${name}.mts`);
  const program = GUIDE.program
    .replace('TableName = "orders"', `TableName = ${JSON.stringify(ORDERS)}`)
    .replaceAll('"1231"', JSON.stringify(randomUUID()));
  await writeFile(file, pasted(edit(program), { inMemory: true }) + more);
  return printed(file, {
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  });
}

describe.runIf(endpoint !== "")("the page's program, at the engine", { timeout: PATIENCE_MS }, () => {
  it("prints what stands beside it: late writes are refused, also before the later holder's own", async () => {
    expect(GUIDE.says.length).toBeGreaterThan(3);
    expect(await play("page")).toEqual(GUIDE.says);
  });

  it("control: without the token left first, the late write goes through between read and write", async () => {
    const edit = (program: string): string => program.replace(/ *\.\.\.fencedWrite\(fencingToken\),\n/, "");
    const said = await play("unraised", "", edit);
    expect(said).toEqual(GUIDE.says.with(2, "written"));
  });
});

const HAS_SQLITE = spawnSync("python3", ["-c", "import sqlite3"]).status === 0;

describe.runIf(HAS_SQLITE)("the page's SQL", () => {
  const [UPDATE = "", UPSERT = ""] = GUIDE.blocks("sql");
  const [FENCE = ""] = /fence BIGINT[^`]*/.exec(GUIDE.text) ?? [];
  const RUN = `
import json, sqlite3, sys
fence, writes = json.loads(sys.argv[1])
db = sqlite3.connect(":memory:")
db.execute(f"CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, {fence})")
changed = [db.execute(sql, {"1": status, "2": token, "3": "1231"}).rowcount for sql, status, token in writes]
print(json.dumps([changed, db.execute("SELECT status, fence FROM orders").fetchall()]))`;
  type Write = readonly [sql: string, status: string, token: number];
  /** Returns how many rows each write changed, and the rows in the end. */
  const rowsOf = (writes: readonly Write[], fence = FENCE): unknown => {
    const { stdout, stderr } = spawnSync("python3", ["-c", RUN, JSON.stringify([fence, writes])], { encoding: "utf8" });
    if (stderr !== "") throw new Error(stderr);
    return JSON.parse(stdout);
  };
  const by = (sql: string, ...tokens: readonly number[]): readonly Write[] => tokens.map((token) => [sql, `by ${token}`, token]);
  const OLD_ROW: Write = ["INSERT INTO orders (id, status) VALUES ($3, $1)", "NEW", 0];

  it("updates a row for every later holder, and for none that is late", () => {
    expect(rowsOf([OLD_ROW, ...by(UPDATE, 33, 34, 34, 33)])).toEqual([[1, 1, 1, 1, 0], [["by 34", 34]]]);
  });

  it("makes the first row, after which nobody is let in who is late", () => {
    expect(rowsOf(by(UPSERT, 34, 33, 34, 35))).toEqual([[1, 0, 1, 1], [["by 35", 35]]]);
  });

  it("control: without the WHERE a late holder overwrites a later one's row", () => {
    expect(rowsOf(by(UPSERT.replace(/WHERE.*/, ""), 34, 33))).toEqual([[1, 1], [["by 33", 33]]]);
  });

  it("needs the 0 of a row without a token: with NULL nobody may write any more", () => {
    const writes = [OLD_ROW, ...by(UPDATE, 33), ...by(UPSERT, 34)];
    expect(rowsOf(writes)).toEqual([[1, 1, 1], [["by 34", 34]]]);
    expect(rowsOf(writes, "fence BIGINT")).toEqual([[1, 0, 0], [["NEW", null]]]);
    const coalesced = by(UPSERT.replace("t.fence", "COALESCE(t.fence, 0)"), 34);
    expect(rowsOf([OLD_ROW, ...coalesced], "fence BIGINT")).toEqual([[1, 1], [["by 34", 34]]]);
  });
});

/**
 * A writer of a report in S3, in two halves, and a bucket with the conditions of the S3 user guide: an ETag is a digest
 * of the contents, and `If-Match` and `If-None-Match: *` are checked atomically with the write.
 */
const BUCKET = `
import { createHash } from "node:crypto";

const etagOf = (body: string): string => createHash("md5").update(body).digest("hex");
let stored: { ETag: string; Body: string } | undefined;
const read = (): Seen | undefined => stored && { ETag: stored.ETag, fence: JSON.parse(stored.Body).fence };
function put({ Body, IfMatch, IfNoneMatch }: { Body: string; IfMatch?: string; IfNoneMatch?: string }): string {
  if ((IfNoneMatch === "*" && stored) || (IfMatch !== undefined && IfMatch !== stored?.ETag)) return "412";
  stored = { ETag: etagOf(Body), Body };
  return "200";
}
const attempt = (seen: Seen | undefined, report: object, fence: number): string => {
  try {
    return put(fencedPut(seen, report, fence));
  } catch {
    return "stopped";
  }
};
const empty = read();
console.log("first", attempt(empty, { pages: 1 }, 33));
const seen = read();
console.log("later holder", attempt(read(), { pages: 2 }, 34));
console.log("late, read before", attempt(seen, { pages: 3 }, 33));
console.log("late, read after", attempt(read(), { pages: 3 }, 33));
console.log("late, there was none", attempt(empty, { pages: 3 }, 33));
console.log("later holder, the same contents", attempt(read(), { pages: 1 }, 34));
console.log("late, of the same contents", attempt(seen, { pages: 3 }, 33));
`;

describe.runIf(endpoint !== "")("the page's S3, by the conditions that S3 has", { timeout: PATIENCE_MS }, () => {
  const outcome = async (name: string, edit?: (program: string) => string) =>
    (await play(name, BUCKET, edit)).slice(GUIDE.says.length).map((line) => /^(.*) (\S+)$/.exec(line)?.slice(1));

  it("accepts later holders, and refuses or stops whoever is late", async () => {
    expect(await outcome("bucket")).toEqual([
      ["first", "200"],
      ["later holder", "200"],
      ["late, read before", "412"],
      ["late, read after", "stopped"],
      ["late, there was none", "412"],
      ["later holder, the same contents", "200"],
      ["late, of the same contents", "412"],
    ]);
  });

  it("control: without the comparison who reads late overwrites, without the token in the body who had the same bytes does", async () => {
    const uncompared = await outcome("uncompared", (program) => program.replace("seen.fence > fence", "false"));
    expect(Object.fromEntries(uncompared as [string, string][])).toMatchObject({ "late, read after": "200" });
    const elsewhere = await outcome("elsewhere", (program) => program.replace("{ ...report, fence }", "{ ...report }"));
    expect(Object.fromEntries(elsewhere as [string, string][])).toMatchObject({ "late, of the same contents": "200" });
  });
});
