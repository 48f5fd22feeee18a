/**
 * The template without the CDK, with the code from its zip, run on localhost: whichever way it is deployed, the API is whole, and so is the
 * agent that wakes sleepers.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PlainTemplate, REGION_TEMPLATE_FILE, TEMPLATE_FILE, writeTemplate, ZIP_FILE } from "../../infra/template.js";
import { createLockClient } from "../../lib/index.js";
import { conformance } from "../e2e/conformance.js";
import { withHeaders } from "../e2e/target.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { type WakeTargets, startWakeTargets } from "../support/wake-targets.js";
import { type Deployment, type Template, deployTemplate, engineVariables } from "./deployment.js";
import { resourcesOf, unzipped } from "./plain-template.js";

const CODE = { CodeBucket: "artifacts", CodeKey: "holdfast.zip" };
const folder = mkdtempSync(join(tmpdir(), "holdfast-template-"));
let deployment: Deployment;
let targets: WakeTargets;

const code = join(folder, "code");

function deploy(file: string, given: Readonly<Record<string, string>>, variables: Readonly<Record<string, string>>): Promise<Deployment> {
  const template = JSON.parse(readFileSync(join(folder, file), "utf8")) as PlainTemplate;
  return deployTemplate({ Resources: resourcesOf(template, { ...CODE, ...given }) } as unknown as Template, variables, (key) => {
    expect(key).toBe(CODE.CodeKey);
    return code;
  });
}

beforeAll(async () => {
  await writeTemplate(folder);
  mkdirSync(code);
  for (const [file, contents] of Object.entries(unzipped(readFileSync(join(folder, ZIP_FILE))))) {
    mkdirSync(dirname(join(code, file)), { recursive: true });
    writeFileSync(join(code, file), contents);
  }
  targets = await startWakeTargets();
  deployment = await deploy(TEMPLATE_FILE, { Wake: "true" }, { ...targets.env, ...(await engineVariables()) });
});

afterAll(async () => {
  await deployment.close();
  await targets.close();
  rmSync(folder, { recursive: true });
});

conformance("the functions of the zip", async () => ({
  url: deployment.url,
  fetch,
  asAnother: withHeaders({ "x-holdfast-principal": "another" }),
}));

describe("the template and its zip", () => {
  it("have an agent that tells a sleeper of its turn", async () => {
    const taskToken = targets.wait("token-1");
    const leaseId = leaseIdAt(Date.now());
    const headers = { "content-type": "application/json", prefer: "wait=60" };
    const body = JSON.stringify({ wake: { taskToken } });
    const asked = await fetch(`${deployment.url}/v1/locks/ASLEEP_1/leases/${leaseId}`, { method: "PUT", headers, body });
    expect(await asked.json()).toEqual({ state: "asleep", position: 1 });
    await deployment.invoke("LocksAgent", {});
    expect(targets.heard.get(taskToken)).toMatchObject({ got: { key: "ASLEEP_1", leaseId } });
  });

  it("have the same bytes when they are built again", async () => {
    const again = join(folder, "again");
    await writeTemplate(again);
    for (const file of [TEMPLATE_FILE, REGION_TEMPLATE_FILE, ZIP_FILE])
      expect(readFileSync(join(again, file)).equals(readFileSync(join(folder, file))), file).toBe(true);
  });
});

describe("the templates of two Regions", () => {
  it("serve one table: a client of both goes on by the second when the first is gone, and a sweep deletes what is over", async () => {
    const { "AWS::DynamoDB::Table": Table = "", ...variables } = await engineVariables();
    const [first, second] = [
      await deploy(REGION_TEMPLATE_FILE, { Table, "AWS::Region": "us-east-1", Replicas: "us-east-2" }, variables),
      await deploy(REGION_TEMPLATE_FILE, { Table, "AWS::Region": "us-east-2", Replicas: "us-east-1" }, variables),
    ];
    for (const { url } of [first, second]) await createLockClient({ url }).withLock("warm", () => undefined);
    const health = await fetch(`${second.url}/v1/health?caller=1`);
    expect(await health.json()).toMatchObject({ doors: [first.url, second.url] });
    const client = createLockClient({ url: [first.url, second.url] });
    const lease = await client.acquire("ORDER_1");
    await first.close();
    try {
      await lease.renew();
      await client.withLocks(["A", "B"], (leases) => expect(leases.isHeld()).toBe(true));
      await lease.release();
      await second.invoke("LocksTableSweep", {});
    } finally {
      await client.close();
      await second.close();
    }
    expect(second.log.map((line) => (JSON.parse(line) as { event?: string }).event)).toContain("table-swept");
  });
});
