/** The flash sale, run as a reader runs it: its output, its exit status, and proof that it leaves nothing behind. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";

const SMALL = ["--buyers", "80", "--processes", "2", "--at-once", "10"];
const ESCAPE = "\u001B";

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the demo. `interruptAt`: sends Ctrl-C as soon as this was printed. */
async function runDemo(args: readonly string[], interruptAt?: string): Promise<Run> {
  const child = spawn(process.execPath, ["--import", "tsx", "examples/flash-sale/demo.ts", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, CI: "true" }, // Some libraries then colour all output.
  });
  let stdout = "";
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (interruptAt !== undefined && stdout.includes(interruptAt)) child.kill("SIGINT");
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

describe("the flash sale", () => {
  it("oversells without a lock and is exact with one", async () => {
    const { code, stdout, stderr } = await runDemo(SMALL);
    expect(stderr).toBe("");
    expect(stdout).toContain("80 buyers in 2 processes, 2 products with 40 pieces each");
    expect(stdout).toMatch(/^✓ No lock: 80 sold, but the stock fell by \d+: oversold by [1-9]\d*\.$/m);
    for (const name of ["A lock per product", "One lock for all"]) {
      expect(stdout).toContain(`✓ ${name}: exact. 80 sold, 0 left of 80, no piece or buyer twice.`);
    }
    expect(stdout).toMatch(/^✓ One lock for all, polled: \d+ sold, \d+ left of 80, no piece twice; \d+ got none\./m);
    for (const row of ["total time", "longest wait", "gave up", "lock requests spent", "left in stock"]) {
      expect(stdout).toMatch(new RegExp(`^ {2}${row}( +[\\d.,]+( s)?| +-){4}$`, "m"));
    }
    expect(stdout).toContain("80/80 buyers");
    expect(stdout).not.toContain(ESCAPE);
    expect(code).toBe(0);
  });

  it("says of each sale how far it is, in four lines, also where it is brief", async () => {
    const { code, stdout } = await runDemo([...SMALL, "--brief"]);
    const far = String.raw` {2}20/80 buyers, .*\n {2}40/80 buyers, .*\n {2}60/80 buyers, .*\n {2}80/80 buyers, .*\n✓ `;
    expect(stdout.match(new RegExp(far, "g"))).toHaveLength(4);
    expect(stdout.match(/buyers, /g)).toHaveLength(16);
    expect([stdout.includes(ESCAPE), code]).toEqual([false, 0]);
  });

  it("ends with all that it started on Ctrl-C", async () => {
    const { code, stdout, stderr } = await runDemo(SMALL, "lock per product.");
    expect({ code, stderr }).toEqual({ code: 130, stderr: "" });
    const url = /http:\/\/127\.0\.0\.1:(\d+)/.exec(stdout)!;
    await expect(fetch(url[0])).rejects.toThrow("fetch failed");
    const { stdout: processes } = spawnSync("ps", ["-eo", "args"], { encoding: "utf8" });
    expect(processes).not.toContain(`"url":"${url[0]}"`);
    expect(processes).not.toContain(`PORT=${url[1]}`);
  });

  it("tells what it can't do in one line", async () => {
    const { code, stdout, stderr } = await runDemo(["--bargains"]);
    expect(stderr).toMatch(/^demo: .*--bargains.*\n$/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });
});
