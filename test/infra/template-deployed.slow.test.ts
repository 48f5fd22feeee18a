/** The template without the CDK, with the code from its zip, run on localhost: whichever way it is deployed, the API is whole. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PlainTemplate } from "../../infra/template.js";
import { TEMPLATE_FILE, writeTemplate, ZIP_FILE } from "../../infra/template.js";
import { conformance } from "../e2e/conformance.js";
import { withHeaders } from "../e2e/target.js";
import type { Deployment, Template } from "./deployment.js";
import { deployTemplate, engineVariables } from "./deployment.js";
import { resourcesOf, unzipped } from "./plain-template.js";

const CODE = { CodeBucket: "artifacts", CodeKey: "holdfast.zip" };
const folder = mkdtempSync(join(tmpdir(), "holdfast-template-"));
let deployment: Deployment;

beforeAll(async () => {
  await writeTemplate(folder);
  const template = JSON.parse(readFileSync(join(folder, TEMPLATE_FILE), "utf8")) as PlainTemplate;
  const code = join(folder, "code");
  mkdirSync(code);
  for (const [file, contents] of Object.entries(unzipped(readFileSync(join(folder, ZIP_FILE))))) writeFileSync(join(code, file), contents);
  const environment = await engineVariables();
  deployment = await deployTemplate({ Resources: resourcesOf(template, CODE) } as unknown as Template, environment, (key) => {
    expect(key).toBe(CODE.CodeKey);
    return code;
  });
}, 120_000);

afterAll(async () => {
  await deployment.close();
  rmSync(folder, { recursive: true });
});

conformance("the functions of the zip", async () => ({
  url: deployment.url,
  fetch,
  asAnother: withHeaders({ "x-holdfast-principal": "another" }),
}));

describe("the template and its zip", () => {
  it("have the same bytes when they are built again", { timeout: 120_000 }, async () => {
    const again = join(folder, "again");
    await writeTemplate(again);
    for (const file of [TEMPLATE_FILE, ZIP_FILE])
      expect(readFileSync(join(again, file)).equals(readFileSync(join(folder, file))), file).toBe(true);
  });
});
