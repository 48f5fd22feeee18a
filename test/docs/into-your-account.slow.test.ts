/** "Into your AWS account": its programs compile and synthesize. */
import { execFile } from "node:child_process";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleFunction } from "../../infra/bundle.js";
import { ROOT } from "../tidy/tree.js";
import { readPage } from "./generated.js";
import { plainEnvironment } from "./npm-start.js";
import { compile, workshop } from "./snippets.js";

const PAGE = readPage("docs/into-your-account.md");

describe("the page's programs", () => {
  const programs = [...PAGE.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""], at) => ({ file: `program-${at + 1}.mts`, code }));
  const ENTRIES = {
    "holdfast/cdk": "infra/index.js",
    "holdfast/sigv4": "lib/sigv4.js",
    "holdfast/dynamodb": "lib/dynamodb.js",
    holdfast: "lib/index.js",
  };
  let directory: string;
  beforeAll(async () => {
    await bundleFunction();
    directory = await workshop();
    for (const { file, code } of programs) {
      const here = Object.entries(ENTRIES).reduce(
        (text, [name, path]) => text.replaceAll(`from "${name}"`, `from ${JSON.stringify(join(ROOT, path))}`),
        code,
      );
      await writeFile(join(directory, file), here);
    }
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it("have the types that they use", async () => {
    expect(programs.length).toBeGreaterThan(2);
    expect(
      await compile(
        directory,
        programs.map(({ file }) => file),
      ),
    ).toBe("");
  });

  it("synthesize: a stack whose function may lock orders, and knows where", async () => {
    await mkdir(join(directory, "checkout"));
    await writeFile(join(directory, "checkout/index.mjs"), "export const handler = async () => {};");
    const env = plainEnvironment({ CDK_OUTDIR: join(directory, "out") });
    await promisify(execFile)(process.execPath, ["--import", "tsx", programs[0]!.file], { cwd: directory, env });
    const [name] = (await readdir(join(directory, "out"))).filter((file) => file.endsWith(".template.json"));
    const template = await readFile(join(directory, "out", name!), "utf8");
    expect(template).toContain('"HOLDFAST_URL"');
    expect(template).toContain("/$default/PUT/v1/locks/ORDER_*/leases/*");
  });
});
