/** The tour, run as a reader runs it: what each scene proves, and its exit status. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { CHROMIUM, startChromium } from "../support/chromium.js";

/** Scenes take real time: processes to start, leases that run out. */
const TIMEOUT_MS = 120_000;

const startTour = (...args: readonly string[]) =>
  spawn(process.execPath, ["--import", "tsx", "examples/tour/main.ts", ...args], { env: { ...process.env, CI: "true" } });

async function runTour(...args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = startTour(...args);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

describe("the tour", () => {
  it.each([
    [
      "crash",
      /^ {2}ann +·*█+✕ +killed\n {2}bob +·+█+ +released\n {2}cleo +·+█+ +holds/m,
      "The queue kept its order, and each grant has a larger token.",
    ],
    [
      "zombie",
      /^ {2}ann +·*█+░+ +refused: token …\d{5}\n {2}bob +·+█+ +wrote/m,
      "The table refused the late write: its token is smaller than bob's.",
    ],
    ["payment", /attempt 2, from the checkpoint "charged"/, "The card was charged once."],
    [
      "leader",
      /^ {2}bob +·+█+ +holds/m,
      "bob did not have to wait for the end of the lease of 10 s: a process that ends gives its keys back.",
    ],
    ["region", /us-east-1 is back/, "ann's lease went on by us-east-2."],
    ["outage", /the service is started again/, "ann held the key through it: a lease needs the service only when it is renewed."],
  ])("%s proves what it says", async (name, picture, proved) => {
    const { code, stdout, stderr } = await runTour("--only", name);
    expect(stderr).toBe("");
    expect(stdout).toMatch(picture);
    expect(stdout).toContain(`✓ ${proved}\n`);
    expect(stdout).toMatch(/^█ holds {2}· waits {2}░ is frozen {2}✕ is killed .*\n/);
    expect(stdout).toMatch(/\n1 of 1 proved in \d+ s\. Next: npx holdfast dev · docs\/start-here\.md\n$/);
    expect(stdout).not.toContain("\u001B");
    expect(code).toBe(0);
  });

  it.each([
    [["--only", "circus"], 'demo: there is no scene "circus", only crash, zombie, payment, leader, outage, region, sale\n'],
    [["--fast"], "demo: unknown option --fast: see npm run demo -- --help\n"],
    [["--only", "crash", "fast"], "demo: fast: only the sale takes more options\n"],
  ])("tells in one line what it can't do: %j", async (args, said) => {
    expect(await runTour(...args)).toEqual({ code: 1, stdout: "", stderr: said });
  });

  it("prints its options", async () => {
    const { code, stdout, stderr } = await runTour("--help");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: npm run demo /);
    expect(stdout).toContain("play one scene: crash, zombie, payment, leader, outage, region, sale\n");
  });

  it.skipIf(CHROMIUM === undefined)("is live in the console, at the address that a scene prints (skipped without Chromium)", async () => {
    const browser = await startChromium();
    const child = startTour("--only", "crash");
    try {
      const closed = once(child, "close");
      let printed = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
      const address = () => /^http\S+#\/locks\/\w+$/m.exec(printed)?.[0] ?? "";
      await expect.poll(address, { timeout: TIMEOUT_MS }).not.toBe("");
      const page = await browser.newPage();
      await page.goto(address());
      await page.getByText(/^Held by ann since /).waitFor();
      await page.getByLabel("Queue").getByText("bob").waitFor();
      for (const name of [/lost ann lease ran out/, /granted bob/]) await page.getByRole("row", { name }).waitFor();
      expect(await page.locator(".timeline path.end.lost").count()).toBe(1);
      expect((await closed)[0]).toBe(0);
    } finally {
      child.kill("SIGKILL");
      await browser.close();
    }
  });
});
