/**
 * "Start here", followed step by step, and what "Over HTTP" says of `npm start`: the commands, their output and the program behave as the
 * pages say.
 */
import { execFile, spawnSync } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NpmStart, npmStart, plainEnvironment } from "./npm-start.js";
import { type Running, endAll, onPath, start } from "../bin/holdfast.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { guide, pasted, printed, workshop } from "./snippets.js";

const run = promisify(execFile);
const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);
const MINUTE_MS = 60_000;
const GUIDE = guide("start-here");
const OVER_HTTP = guide("over-http");
const REQUEST = GUIDE.blocks("sh").at(-1)?.trim() ?? "";

let dev: Running;
let devUrl: string;
let service: NpmStart;
let directory: string;

beforeAll(async () => {
  dev = start(["dev", "--port", "0"], {});
  [devUrl = ""] = /http:\S+/.exec(await dev.printed(/Lock activity/)) ?? [];
  service = await npmStart();
  directory = await workshop();
});
afterAll(async () => {
  await endAll();
  service.kill();
  await rm(directory, { recursive: true, force: true });
});

/** Replaces the parts that differ each time: times, tokens, and the width of their columns. */
function inGeneral(text: string): readonly string[] {
  const general = text.replaceAll(/\d\d:\d\d:\d\d/g, "AT").replaceAll(/\b1\d{12}\b|…\d{6}\b/g, "TOKEN");
  const lines = general.replaceAll(/\b\d+(ms|(\.\d)?s)\b/g, "TIME").replaceAll(/ {2,}/g, " ");
  return lines.trim().split("\n");
}

describe("start here", () => {
  it("the locks by hand print what stands below them, and the first terminal who got what", async () => {
    const [, first = "", second = ""] = GUIDE.blocks("sh");
    const [listed = "", log = ""] = GUIDE.blocks("text");
    const env = plainEnvironment({ PATH: `${await onPath()}:${process.env["PATH"] ?? ""}`, HOLDFAST_URL: devUrl });
    const paste = (block: string) =>
      run("bash", ["-c", block.replaceAll(/^export .*$/gm, "").replaceAll("npx holdfast", "holdfast")], { env });
    expect(inGeneral((await paste(first)).stdout)).toEqual(inGeneral(listed));
    await expect(paste(second)).rejects.toMatchObject({ code: 75, stdout: "" });
    const said = (await dev.printed(/(released[\s\S]*){2}\n/)).split("Lock activity:\n")[1] ?? "";
    expect(inGeneral(said)).toEqual(inGeneral(log));
  });

  it.runIf(HAS_CURL)("the three lines answer as it says, and again as it says", async () => {
    const lines = service.greeting.split("\n").filter((line) => line.trim().startsWith("curl"));
    expect(lines).toHaveLength(3);
    const paste = async (line = ""): Promise<string> => (await run("bash", ["-c", line], { env: plainEnvironment({}) })).stdout;
    const tokenOf = (answer: string): number => Number(/"fencingToken":(\d+)/.exec(answer)?.[1]);
    const [acquire, inspect, release] = lines;
    const first = await paste(acquire);
    expect(first).toMatch(/^HTTP\/1\.1 201/);
    expect(first).toMatch(/"fencingToken":\d+.*"remainingMs":\d+/);
    const again = await paste(acquire);
    expect(again).toMatch(/^HTTP\/1\.1 200/);
    expect(again).toMatch(/^idempotent-replayed: true\r$/im);
    expect(tokenOf(again)).toBe(tokenOf(first));
    const seen = await paste(inspect);
    expect(seen).toMatch(/^HTTP\/1\.1 200/);
    expect(seen).toMatch(/"holders":\[\{"owner":"me"/);
    expect(seen).not.toContain("leaseId");
    for (const released of [await paste(release), await paste(release)]) {
      expect(released).toMatch(/^HTTP\/1\.1 204/);
      expect(released).toMatch(/^lease-state: released\r$/im);
    }
    expect(first).toContain(`"leaseMs":${2 * MINUTE_MS},`);
    expect(OVER_HTTP.text).toContain("acquire `ORDER_1231` for 2 minutes");
    const late = await paste(acquire);
    expect(late).toMatch(/^HTTP\/1\.1 410/);
    expect(late).toContain('"code":"lease-over"');
    expect(OVER_HTTP.text).toContain("Paste the first again now: `410`, `lease-over`.");
  });

  it.runIf(HAS_CURL)("prints a line of JSON for each of them, and none for who looks", async () => {
    const events = (): readonly unknown[] => service.lines().map((line) => (JSON.parse(line) as { readonly event: unknown }).event);
    await expect.poll(events).toEqual(["granted", "replayed", "ended", "ended", "refused"]);
    expect(OVER_HTTP.text).toContain("a line of JSON for each acquire, release and refusal");
  });

  it("the program prints what stands beside it", async () => {
    const file = join(directory, "first.mts");
    await writeFile(file, pasted(GUIDE.program));
    expect(GUIDE.says).toHaveLength(4);
    expect(await printed(file, { HOLDFAST_URL: devUrl })).toEqual(GUIDE.says);
  });

  it.runIf(HAS_CURL)("the request that stands for a client's acquires the key", async () => {
    const { stdout } = await run("bash", ["-c", REQUEST], {
      env: plainEnvironment({ HOLDFAST_URL: devUrl, LEASE: leaseIdAt(Date.now()) }),
    });
    expect(stdout).toMatch(/^HTTP\/1\.1 201/);
  });

  it("its commands are those that are tried here, in the README's test and in that of the package", () => {
    expect(GUIDE.blocks("sh").map((block) => block.trim())).toEqual([
      "npm ci && npx holdfast dev",
      "export HOLDFAST_URL=http://127.0.0.1:4653\nnpx holdfast lock ORDER_1231 --owner me -- npx holdfast ls",
      'npx holdfast lock ORDER_1231 --owner me -- \\\n  npx holdfast lock ORDER_1231 --no-wait --owner you -- echo "two at once"',
      "npx tsx first.mts",
      "mkdir -p ../my-project && npm pack --silent --pack-destination ../my-project\ncd ../my-project && npm install ./holdfast-0.1.0.tgz",
      REQUEST,
    ]);
    expect(REQUEST).toContain("curl -i -X PUT");
  });
});
