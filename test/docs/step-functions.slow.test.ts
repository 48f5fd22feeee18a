/** The page on sections of state machines: its program synthesizes, and its state machine runs on the real service. */
import { execFile } from "node:child_process";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Template } from "aws-cdk-lib/assertions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleFunction } from "../../infra/bundle.js";
import { definitionsIn, INPUT, KEY, Scene } from "../step-functions/scene.js";
import { readPage } from "./generated.js";
import { plainEnvironment } from "./npm-start.js";
import { guide, pasted, workshop } from "./snippets.js";

const PAGE = guide("step-functions");
const SYNTHESIS_MS = 180_000;

describe("the page's program", () => {
  let directory: string;
  let template: Template;
  beforeAll(async () => {
    await bundleFunction();
    directory = await workshop();
    await writeFile(join(directory, "program.mts"), pasted(PAGE.program));
    const env = plainEnvironment({ CDK_OUTDIR: join(directory, "out") });
    await promisify(execFile)(process.execPath, ["--import", "tsx", "program.mts"], { cwd: directory, env });
    const [name = ""] = (await readdir(join(directory, "out"))).filter((file) => file.endsWith(".template.json"));
    template = Template.fromJSON(JSON.parse(await readFile(join(directory, "out", name), "utf8")) as object);
  }, SYNTHESIS_MS);
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it("makes a section that waits asleep, charges with its token, and releases", async () => {
    const its = new Scene({ functionName: "charge" });
    const rival = await its.rival.acquire(KEY);
    const [orders] = definitionsIn(template);
    const order = its.machine.start("a", orders!, INPUT);
    await its.pass(10);
    await rival.release();
    await its.pass(1);
    expect(order).toMatchObject({ status: "SUCCEEDED", output: "done" });
    expect(its.inside.calls).toEqual([{ id: INPUT.id, idempotencyKey: `CHARGE_${INPUT.id}`, fencingToken: expect.any(Number) as number }]);
    expect(await its.users()).toEqual([]);
  });

  it("makes a section that renews, and lasts an hour and more", async () => {
    const its = new Scene();
    const [, nightly] = definitionsIn(template);
    const night = its.machine.start("a", nightly!, {});
    await its.pass(64);
    expect(night.status).toBe("RUNNING");
    await its.pass(2);
    expect(night.status).toBe("SUCCEEDED");
  });

  it("has the states that the page lists", () => {
    const listed = [...readPage("docs/step-functions.md").matchAll(/^\| `(Order: [a-z ]+)`/gm)].map(([, name]) => name);
    const { States = {} } = definitionsIn(template)[0] ?? {};
    expect(
      Object.keys(States)
        .filter((name) => name !== "Order: unreleased")
        .toSorted(),
    ).toEqual(listed.toSorted());
  });
});
