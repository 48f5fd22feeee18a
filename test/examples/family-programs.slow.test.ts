/** The programs of the lock family, run as a reader runs them: their output, and proof that they leave nothing behind. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, inject, it } from "vitest";
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { freshTable } from "../support/engine.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { ROOT } from "../tidy/tree.js";

const run = promisify(execFile);
const DIRECTORY = "examples/family";

/** The output of each program, except for the parts that differ from run to run. */
const PRINTED: Readonly<Record<string, RegExp>> = {
  "nested-order":
    /^(.*: camera\n){4}levels: 2, one token: true\nanother request, same owner: waits\n.*: still waits\nthe outer one is done: its turn\n$/,
  "partner-api": /^answers: 10, most inside at once: [123]\n$/,
  reports: /^three readers of a stale report saw: 13 13 13, 13 13 13, 13 13 13\npages built: 6\nsigned by: ann, bob\n$/,
  seats:
    /^((ann .*: booked, has 3 of 3|bob .*: booked, has 2 of 2|eve .*: booked, has 4 of 4|\w+ .*: none, has 0 of \d)\n){3}joe .*: booked, has 2 of 2\n$/,
  "step-functions":
    /^between the steps: nobody gets in\norder-1231 .*: true\nhanded on: {"order":"order-1231"}\nafterwards: free\n.*: lease-lost\n$/,
  "transfer-money": /^moved: true, true, false\nann 120, bob 80, together 200\n$/,
};

async function runProgram(name: string, env: Readonly<Record<string, string>>): Promise<{ stdout: string; stderr: string }> {
  const file = join(DIRECTORY, `${name}.ts`);
  return run(process.execPath, ["--import", "tsx", file], { cwd: ROOT, env: { ...process.env, ...env } });
}

describe("the programs of the lock family", () => {
  it.each(Object.keys(PRINTED))("%s prints what it shows", async (name) => {
    const { stdout, stderr } = await runProgram(name, { DYNAMODB_ENDPOINT: inject("engineEndpoint") });
    expect(stderr).toBe("");
    expect(stdout).toMatch(PRINTED[name]!);
  });

  it("run over the service that HOLDFAST_URL names", async () => {
    const { env: onTable } = await freshTable();
    const gateway = await startGateway({ handler: compose(onTable, { log: () => undefined }), port: 0 });
    const env = { DYNAMODB_ENDPOINT: inject("engineEndpoint"), HOLDFAST_URL: gateway.url };
    for (const name of ["nested-order", "reports", "transfer-money", "step-functions"]) {
      expect((await runProgram(name, env)).stdout, name).toMatch(PRINTED[name]!);
    }
    await gateway.close();
  });

  it("leave none of their tables on somebody's engine", async () => {
    const proxy = await startFaultProxy();
    await runProgram("step-functions", { DYNAMODB_ENDPOINT: proxy.endpoint });
    expect(proxy.ledger.requests).toMatchObject({ CreateTable: 2, DeleteTable: 2 });
    await proxy.close();
  });

  it("are all of those that there are, and each is in the README of its folder", () => {
    const files = readdirSync(join(ROOT, DIRECTORY)).filter((file) => file.endsWith(".ts"));
    const programs = files.filter((file) => text(file).includes("await play("));
    expect(programs.toSorted()).toEqual(Object.keys(PRINTED).map((name) => `${name}.ts`));
    const rows = [...text("README.md").matchAll(/^\| `([\w-]+\.ts)` /gm)].map(([, file]) => file);
    expect(rows.toSorted()).toEqual(files.toSorted());
  });
});

function text(file: string): string {
  return readFileSync(join(ROOT, DIRECTORY, file), "utf8");
}
