/**
 * A stack that lives, deployed without the CDK as docs/without-the-cdk.md says: another version of it in place, under load, forward and
 * back; deleted; and deployed again onto the table that is kept, and onto one that was restored (docs/operating.md).
 */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { beforeAll, describe, expect, inject, it, vi } from "vitest";
import { createLockClient } from "../../lib/index.js";
import { sigv4 } from "../../lib/sigv4.js";
import { assume, call, lambda, putStack, query, resourceOf, upload } from "./aws.js";
import { ACCOUNT, envOf, REGION, RUN_DIRECTORY } from "./emulator.js";
import { deploy, ROOT_DIRECTORY, TEMPLATE_DIRECTORY } from "./setup.js";

const run = promisify(execFile);
const STACK = "lives";
const CALLER = "lives-caller";
const FORMER_DIRECTORY = join(RUN_DIRECTORY, "former");
const VERSIONS = { former: join(FORMER_DIRECTORY, "template"), present: TEMPLATE_DIRECTORY };
type Version = keyof typeof VERSIONS;

/** Makes the template and the zip of the commit before the last one that changed the product. */
async function makeFormer(): Promise<void> {
  const git = async (...words: readonly string[]) => (await run("git", words, { cwd: ROOT_DIRECTORY })).stdout.trim();
  const archive = join(RUN_DIRECTORY, "former.tar");
  await git("archive", "--output", archive, `${await git("rev-list", "-1", "HEAD", "--", "lib", "lambda", "infra")}~1`);
  mkdirSync(FORMER_DIRECTORY);
  await run("tar", ["-xf", archive, "-C", FORMER_DIRECTORY]);
  symlinkSync(join(ROOT_DIRECTORY, "node_modules"), join(FORMER_DIRECTORY, "node_modules"));
  await run(process.execPath, ["--import", "tsx", "infra/template.ts", VERSIONS.former], { cwd: FORMER_DIRECTORY });
}

const outputs: Record<string, string> = {};

/** Creates or updates the stack, and waits for it. */
async function put(action: "CreateStack" | "UpdateStack", version: Version, Wake: boolean): Promise<void> {
  const template = readFileSync(join(VERSIONS[version], "holdfast.template.json"), "utf8");
  const parameters = { CodeBucket: "artifacts", CodeKey: `${version}.zip`, Wake: String(Wake) };
  Object.assign(outputs, await putStack(action, { name: STACK, template, parameters }));
}

/** Lets the caller's role use an API as the page's policy says. Returns what makes a client of it. */
async function clientOf(url: string, arn: string) {
  const page = readFileSync(join(ROOT_DIRECTORY, "docs/without-the-cdk.md"), "utf8");
  const [, policy = ""] = /```json\n(\{\n {2}"Version": "2012-10-17".*?)\n```/s.exec(page) ?? [];
  const PolicyDocument = policy.replaceAll("arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5/$default", () => arn.replace("/*/*", ""));
  await query("iam", "PutRolePolicy", { RoleName: CALLER, PolicyName: new URL(url).hostname, PolicyDocument });
  const credentials = await assume(CALLER);
  return (losses: string[] = []) =>
    createLockClient({
      ...{ url, sign: sigv4({ region: REGION, credentials }), leaseMs: 10_000 },
      onEvent: (event) => void (event.type === "lost" && losses.push(JSON.stringify(event))),
    });
}

/** The digest of the code of a function that the stack's outputs name. */
async function codeOf(output: string): Promise<string> {
  const name = outputs[output]!.replace(/^.*:/, "");
  return (await lambda<{ readonly CodeSha256: string }>("GET", `/2015-03-31/functions/${name}/configuration`)).CodeSha256;
}

interface Counts {
  inside: number;
  most: number;
  done: number;
  token: number;
}

/** Four workers, each under a lock again and again, which count how many are inside. */
async function load(
  counts: Counts,
  signal: AbortSignal,
  underLock: (work: (lease: { readonly fencingToken: number }) => Promise<void>) => Promise<void>,
): Promise<void> {
  const work = async ({ fencingToken }: { readonly fencingToken: number }) => {
    counts.most = Math.max(counts.most, ++counts.inside);
    expect(fencingToken).toBeGreaterThan(counts.token);
    counts.token = fencingToken;
    await delay(15);
    counts.inside--;
  };
  const worker = async () => {
    for (; !signal.aborted; counts.done++) await underLock(work);
  };
  await Promise.all([1, 2, 3, 4].map(worker));
}

/** The versions that follow the former one, without an agent of sleepers and with one; and back. */
const STEPS = [
  ["present", false],
  ["present", true],
  ["present", false],
  ["former", false],
  ["present", false],
] as const;

describe("a stack without the CDK", () => {
  let client: Awaited<ReturnType<typeof clientOf>>;
  beforeAll(async () => {
    await makeFormer();
    await upload(
      "artifacts",
      Object.fromEntries(Object.entries(VERSIONS).map(([name, at]) => [`${name}.zip`, readFileSync(join(at, "function.zip"))])),
    );
    await put("CreateStack", "former", false);
    const AssumeRolePolicyDocument = JSON.stringify({
      Version: "2012-10-17",
      Statement: [{ Effect: "Allow", Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` }, Action: "sts:AssumeRole" }],
    });
    await query("iam", "CreateRole", { RoleName: CALLER, AssumeRolePolicyDocument });
    client = await clientOf(outputs["Url"]!, outputs["ApiArn"]!);
  });

  it("lets a caller with the page's policy take the keys of its prefix, and no others", async () => {
    const locks = client();
    expect(await locks.withLock("ORDER_1231", async ({ fencingToken }) => fencingToken)).toBeGreaterThan(0);
    await expect(locks.acquire("PAYMENT_1")).rejects.toMatchObject({ code: "forbidden" });
    await expect(locks.list({ prefix: "ORDER_" })).rejects.toMatchObject({ code: "forbidden" });
    await locks.close();
  });

  it("is replaced in place under load, and back: nothing held is lost, and never are two inside", async () => {
    const losses: string[] = [];
    const locks = client(losses);
    const held = await locks.acquire("ORDER_held");
    const waiter = locks.acquire("ORDER_held", { waitMs: 250_000 });
    const counts = { inside: 0, most: 0, done: 0, token: 0 };
    const updated = new AbortController();
    const loaded = load(counts, updated.signal, (work) => locks.withLock("ORDER_common", { waitMs: 60_000 }, work));
    const seen: string[] = [];
    for (const [version, wake] of STEPS) {
      await put("UpdateStack", version, wake);
      const { done } = counts;
      await vi.waitUntil(() => counts.done > done + 5, { timeout: 60_000 });
      seen.push(`${await codeOf("AcquireFunctionArn")} ${(await resourceOf(STACK, "LocksAgent")) === "" ? "no agent" : "an agent"}`);
    }
    updated.abort();
    await loaded;
    expect(held.isHeld()).toBe(true);
    await held.release();
    const next = await waiter;
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken);
    await next.release();
    await locks.close();
    expect({ most: counts.most, losses }, `${counts.done} locks`).toEqual({ most: 1, losses: [] });
    const [present, waking, , former] = seen;
    expect(new Set([present!.split(" ")[0], former!.split(" ")[0]]).size, "codes").toBe(2);
    expect(seen).toEqual([present, present!.replace("no agent", "an agent"), present, former, present]);
    expect(waking).not.toBe(present);
  });

  it("control: without locks, the same load has several inside", async () => {
    const counts = { inside: 0, most: 0, done: 0, token: 0 };
    const updated = new AbortController();
    let token = 0;
    const loaded = load(counts, updated.signal, (work) => work({ fencingToken: ++token }));
    await vi.waitUntil(() => counts.done > 8);
    updated.abort();
    await loaded;
    expect(counts.most).toBeGreaterThan(1);
  });

  it("leaves its table, which a new stack serves: what was held still is, also in a table that was restored", async () => {
    const locks = client();
    const kept = await locks.acquire("ORDER_kept", { leaseMs: 300_000 });
    const TableName = outputs["TableName"]!;
    const { BackupDetails } = await call<{ readonly BackupDetails: { readonly BackupArn: string } }>("dynamodb", "CreateBackup", {
      TableName,
      BackupName: "before",
    });
    const later = await locks.acquire("ORDER_later");
    await later.release();
    await query("cloudformation", "DeleteStack", { StackName: STACK });
    const functionName = outputs["AcquireFunctionArn"]!.replace(/^.*:/, "");
    const isThere = () =>
      lambda("GET", `/2015-03-31/functions/${functionName}/configuration`).then(
        () => true,
        () => false,
      );
    await vi.waitUntil(async () => !(await isThere()), { timeout: 60_000 });

    await call("dynamodb", "RestoreTableFromBackup", { TargetTableName: "locks-restored", BackupArn: BackupDetails.BackupArn });
    const tables = [TableName, "locks-restored"];
    const context = [`tables=${tables.join()}`];
    const stacks = await deploy(envOf(inject("endpoint")), "test/deployed/lifetime-app.ts", ["--all"], context);
    const [onKept, onRestored] = await Promise.all(
      tables.map(async (table) => (await clientOf(stacks[`on-${table}`]!["Url"]!, stacks[`on-${table}`]!["ApiArn"]!))()),
    );
    for (const again of [onKept!, onRestored!]) {
      expect(await again.tryAcquire("ORDER_kept")).toBeNull();
      expect(await again.inspect("ORDER_kept")).toMatchObject({ fencingToken: kept.fencingToken });
    }
    // The restored table doesn't know the lock of after the backup, and its tokens rise all the same.
    expect(await onRestored!.inspect("ORDER_later")).toMatchObject({ fencingToken: 0 });
    expect(await onRestored!.withLock("ORDER_later", async ({ fencingToken }) => fencingToken)).toBeGreaterThan(later.fencingToken);
    await Promise.all([onKept!.close(), onRestored!.close(), locks.close()]);
  });
});
