/** The payment examples, run as a reader runs them: their output, and proof that they leave nothing behind. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Gateway } from "../../infra/local/gateway.js";
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import type { FreshTable } from "../support/engine.js";
import { freshTable } from "../support/engine.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { ROOT } from "../tidy/tree.js";

const run = promisify(execFile);
const DIRECTORY = "examples/payments";

/** The output of each program, except for the parts that differ from run to run. */
const PRINTED: Readonly<Record<string, RegExp>> = {
  "double-submit": /^(201 {"number":1} (replayed)?\n){3}orders: 1\nthe same key for another product: 422 .*mismatch"}\n$/,
  "payment-callback": /^the three were told: PAID, PAID, PAID\nworkflows started: settle_pay-7\n$/,
  refund: /^attempt 2: .*\nasked under (refund_return-12) and \1, moved -1500\n.*: fingerprint-mismatch\n.*: lease-lost\n$/,
  "refund-queue": /"3"}\]}\ndelivered again: {"batchItemFailures":\[{"itemIdentifier":"3"}\]}\nmoved: -1500\n$/,
  "workflow-task": /^first: movement-1\nretried: movement-1\nmoved: 4900\n$/,
  "status-guard": /moved: 4900\nafterwards everybody is told: PAYING\nuntil somebody decides: PAID; moved: 4900, 100\n$/,
  transaction: /^paid: true\nsent again: false\nleft on the card: 20\n$/,
  "by-nature": /^.*\? false\n.*: true false\nsetStock 5, twice: 5\naddStock 5, twice: 10\nremove: true false\n$/,
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

async function runProgram(name: string, env: Readonly<Record<string, string>>): Promise<{ stdout: string; stderr: string }> {
  const file = join(DIRECTORY, `${name}.ts`);
  return run(process.execPath, ["--import", "tsx", file], { cwd: ROOT, env: { ...process.env, ...env } });
}

describe("the payment programs", () => {
  it.each(Object.keys(PRINTED))("%s prints what it shows", async (name) => {
    const { stdout, stderr } = await runProgram(name, { DYNAMODB_ENDPOINT: inject("engineEndpoint") });
    expect(stderr).toBe("");
    expect(stdout).toMatch(PRINTED[name]!);
  });

  it("run over the service that HOLDFAST_URL names", async () => {
    const env = { DYNAMODB_ENDPOINT: inject("engineEndpoint"), HOLDFAST_URL: gateway.url };
    const { stdout, stderr } = await runProgram("double-submit", env);
    expect(stderr).toBe("");
    expect(stdout).toMatch(PRINTED["double-submit"]!);
    expect((await fetch(`${gateway.url}/v1/runs/submit_ann_form-8f3a`)).status).toBe(200);
  });

  it("leave none of their tables on somebody's engine", async () => {
    const proxy = await startFaultProxy();
    await runProgram("workflow-task", { DYNAMODB_ENDPOINT: proxy.endpoint });
    expect(proxy.ledger.requests).toMatchObject({ CreateTable: 2, DeleteTable: 2 });
    await proxy.close();
  });

  it("start an engine of their own where none is named", async () => {
    const { stdout } = await runProgram("transaction", { DYNAMODB_ENDPOINT: "" });
    expect(stdout).toMatch(PRINTED["transaction"]!);
  });

  it("are all of those that there are, and each is in the README of its folder", () => {
    const programs = readdirSync(join(ROOT, DIRECTORY)).filter((file) => file.endsWith(".ts") && read(file).includes("await play("));
    expect(programs).toEqual(
      Object.keys(PRINTED)
        .map((name) => `${name}.ts`)
        .toSorted(),
    );
    const files = readdirSync(join(ROOT, DIRECTORY)).filter((file) => file.endsWith(".ts"));
    const rows = [...read("README.md").matchAll(/^\| `([\w-]+\.ts)` /gm)].map(([, file]) => file).toSorted();
    expect(rows).toEqual(files.toSorted());
  });
});

function read(file: string): string {
  return readFileSync(join(ROOT, DIRECTORY, file), "utf8");
}
