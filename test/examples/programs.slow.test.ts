/** The programs of two folders of examples, run as a reader runs them: their output, and proof that they leave nothing behind. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { ROOT } from "../tidy/tree.js";

const run = promisify(execFile);

/** The output of each program by its path, except for the parts that differ from run to run. */
const PRINTED: Readonly<Record<string, RegExp>> = {
  "family/nested-order":
    /^(.*: camera\n){4}levels: 2, one token: true\nanother request, same owner: waits\n.*: still waits\nthe outer one is done: its turn\n$/,
  "family/partner-api": /^answers: 10, most inside at once: [123]\n$/,
  "family/reports": /^three readers of a stale report saw: 13 13 13, 13 13 13, 13 13 13\npages built: 6\nsigned by: ann, bob\n$/,
  "family/seats":
    /^((ann .*: booked, has 3 of 3|bob .*: booked, has 2 of 2|eve .*: booked, has 4 of 4|\w+ .*: none, has 0 of \d)\n){3}joe .*: booked, has 2 of 2\n$/,
  "family/step-functions":
    /^between the steps: nobody gets in\norder-1231 .*: true\nhanded on: {"order":"order-1231"}\nafterwards: free\n.*: lease-lost\n$/,
  "family/transfer-money": /^moved: true, true, false\nann 120, bob 80, together 200\n$/,
  "payments/double-submit": /^(201 {"number":1} (replayed)?\n){3}orders: 1\nthe same key for another product: 422 .*mismatch"}\n$/,
  "payments/payment-callback": /^the three were told: PAID, PAID, PAID\nworkflows started: settle_pay-7\n$/,
  "payments/refund": /^attempt 2: .*\nasked under (refund_return-12) and \1, moved -1500\n.*: fingerprint-mismatch\n.*: lease-lost\n$/,
  "payments/refund-queue":
    /"3"}\]}\nmessage 3 failed: .*\ndelivered again: {"batchItemFailures":\[{"itemIdentifier":"3"}\]}\nmoved: -1500\n$/,
  "payments/workflow-task": /^first: movement-1\nretried: movement-1\nmoved: 4900\n$/,
  "payments/status-guard": /moved: 4900\nafterwards everybody is told: PAYING\nuntil somebody decides: PAID; moved: 4900, 100\n$/,
  "payments/transaction": /^paid: true\nsent again: false\nleft on the card: 20\n$/,
  "payments/by-nature": /^.*\? false\n.*: true false\nsetStock 5, twice: 5\naddStock 5, twice: 10\nremove: true false\n$/,
};

let table: FreshTable;
let gateway: Gateway;

beforeAll(async () => {
  table = await freshTable();
  gateway = await startGateway({ handler: compose(table.env, { log: () => undefined }), port: 0 });
});
afterAll(async () => {
  await gateway.close();
  table.client.destroy();
});

/** Runs a program, and checks what it prints. */
async function expectPrinted(name: string, env: Readonly<Record<string, string>>): Promise<void> {
  const args = ["--import", "tsx", `examples/${name}.ts`];
  const { stdout, stderr } = await run(process.execPath, args, { cwd: ROOT, env: { ...process.env, ...env } });
  expect(stderr).toBe("");
  expect(stdout, name).toMatch(PRINTED[name]!);
}

it.each(Object.keys(PRINTED))("%s prints what it shows", (name) => expectPrinted(name, { DYNAMODB_ENDPOINT: inject("engineEndpoint") }));

it("a program starts an engine of its own where none is named", () => expectPrinted("payments/transaction", { DYNAMODB_ENDPOINT: "" }));

describe.each([
  { folder: "family", overHttp: ["nested-order", "reports", "transfer-money", "step-functions"], onTwoTables: "step-functions" },
  { folder: "payments", overHttp: ["double-submit"], onTwoTables: "workflow-task" },
])("the programs of $folder", ({ folder, overHttp, onTwoTables }) => {
  const text = (file: string): string => readFileSync(join(ROOT, "examples", folder, file), "utf8");

  it("run over the service that HOLDFAST_URL names", async () => {
    const env = { DYNAMODB_ENDPOINT: inject("engineEndpoint"), HOLDFAST_URL: gateway.url };
    for (const name of overHttp) await expectPrinted(`${folder}/${name}`, env);
    if (folder === "payments") expect((await fetch(`${gateway.url}/v1/runs/submit_ann_form-8f3a`)).status).toBe(200);
  });

  it("leave none of their tables on somebody's engine", async () => {
    const proxy = await startFaultProxy();
    await expectPrinted(`${folder}/${onTwoTables}`, { DYNAMODB_ENDPOINT: proxy.endpoint });
    expect(proxy.ledger.requests).toMatchObject({ CreateTable: 2, DeleteTable: 2 });
    await proxy.close();
  });

  it("are all of those that there are, and each is in the README of its folder", () => {
    const files = readdirSync(join(ROOT, "examples", folder)).filter((file) => file.endsWith(".ts"));
    const programs = files.filter((file) => text(file).includes("await play("));
    const shown = Object.keys(PRINTED).filter((name) => name.startsWith(`${folder}/`));
    expect(programs.map((file) => `${folder}/${file}`).toSorted()).toEqual(shown.map((name) => `${name}.ts`).toSorted());
    const rows = [...text("README.md").matchAll(/^\| `([\w-]+\.ts)` /gm)].map(([, file]) => file);
    expect(rows.toSorted()).toEqual(files.toSorted());
  });
});
