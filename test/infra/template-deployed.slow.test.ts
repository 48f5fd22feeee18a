/**
 * The template without the CDK, with the code from its zip, run on localhost: whichever way it is deployed, the API is whole, and so is the
 * agent that wakes sleepers.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PlainTemplate, TEMPLATE_FILE, writeTemplate, ZIP_FILE } from "../../infra/template.js";
import { conformance } from "../e2e/conformance.js";
import { withHeaders } from "../e2e/target.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { type WakeTargets, startWakeTargets } from "../support/wake-targets.js";
import { type Deployment, type Template, deployTemplate, engineVariables } from "./deployment.js";
import { resourcesOf, unzipped } from "./plain-template.js";

const GIVEN = { CodeBucket: "artifacts", CodeKey: "holdfast.zip", Wake: "true" };
const folder = mkdtempSync(join(tmpdir(), "holdfast-template-"));
let deployment: Deployment;
let targets: WakeTargets;

beforeAll(async () => {
  await writeTemplate(folder);
  const template = JSON.parse(readFileSync(join(folder, TEMPLATE_FILE), "utf8")) as PlainTemplate;
  const code = join(folder, "code");
  mkdirSync(code);
  for (const [file, contents] of Object.entries(unzipped(readFileSync(join(folder, ZIP_FILE))))) {
    mkdirSync(dirname(join(code, file)), { recursive: true });
    writeFileSync(join(code, file), contents);
  }
  targets = await startWakeTargets();
  const environment = { ...targets.env, ...(await engineVariables()) };
  deployment = await deployTemplate({ Resources: resourcesOf(template, GIVEN) } as unknown as Template, environment, (key) => {
    expect(key).toBe(GIVEN.CodeKey);
    return code;
  });
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
    for (const file of [TEMPLATE_FILE, ZIP_FILE])
      expect(readFileSync(join(again, file)).equals(readFileSync(join(folder, file))), file).toBe(true);
  });
});
