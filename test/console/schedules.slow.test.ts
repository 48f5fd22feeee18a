/** A schedule's page in a real Chromium: what its squares say, what each opens, and when the next is due. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FinalError } from "../../lib/index.js";
import { CHROMIUM } from "../support/chromium.js";
import { faultsOf } from "../support/axe.js";
import { type Consoles, startConsoles } from "./in-chromium.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe.skipIf(CHROMIUM === undefined)("a schedule's page in Chromium (skipped without one on the path)", { timeout: 240_000 }, () => {
  let consoles: Consoles;
  const lastMs = (Math.floor(Date.now() / HOUR_MS) - 2) * HOUR_MS;
  /** The time of the occurrence so many days before the last one, which is two hours ago. */
  const at = (daysBefore: number): Date => new Date(lastMs - daysBefore * DAY_MS);

  beforeAll(async () => {
    consoles = await startConsoles("worker-1");
    const { locks } = consoles;
    const tick = (daysBefore: number, work: () => unknown, maxLateMs?: number): Promise<unknown> =>
      locks.tick("nightly", { occurrence: at(daysBefore), keepMs: 60 * DAY_MS, maxLateMs }, work).catch(() => undefined);
    for (const day of [20, 19, 6, 4, 3]) await tick(day, () => 1);
    await tick(2, () => Promise.reject(new FinalError("disk full")));
    await tick(1, () => 1, 1000);
    const lease = await locks.acquire("nightly", { owner: "slow" });
    await tick(0, () => 1);
    await lease.release();
  });
  afterEach(() => consoles.closePages());
  afterAll(() => consoles.close());

  it.each(["light", "dark"] as const)(
    "says of each time of a week what is on record, %s, and axe finds no fault, on a phone too",
    async (colorScheme) => {
      for (const width of [1200, 360]) {
        const page = await consoles.open(`${consoles.here}#/runs/nightly`, { colorScheme, viewport: { width, height: 800 } });
        const squares = page.getByRole("list", { name: "nightly" }).getByRole("listitem");
        await squares.first().waitFor();
        const words = await squares.evaluateAll((items) =>
          items.map((item) => (item as HTMLElement).title.replace(/^.*\d\d: /, "").replace(/, took .*$/, "")),
        );
        expect(words).toEqual(["done", "nothing on record", "done", "done", "failed", "too late", "skipped"]);
        const sentence = await page.locator(".sentence").textContent();
        expect(sentence).toMatch(
          /^In 7d: 3 done, 1 failed, 1 skipped, 1 too late, 1 with nothing on record\. The last was due at .*\d\d:00:00: skipped\. If they come every 1d, the next is due at .*\d\d:00:00 \(in 2\dh( \d+m)?\)\.$/,
        );
        expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
        expect(await faultsOf(page)).toEqual([]);
        await page.close();
      }
    },
  );

  it("has rows in the list of runs that tell what never ran apart from what failed, and why", async () => {
    const page = await consoles.open("about:blank");
    const rowsAt = async (query: string): Promise<readonly (readonly string[])[]> => {
      await page.goto(`${consoles.here}#/runs?${query}`);
      await page.getByText("nightly_").first().waitFor();
      return page
        .getByRole("table")
        .locator("tbody tr")
        .evaluateAll((rows) =>
          rows.map((row) => [
            row.querySelector(".key")?.textContent ?? "",
            row.querySelector<HTMLElement>("[data-label=State]")?.innerText.replaceAll(/\s+/g, " ").trim() ?? "",
            row.getAttribute("class") ?? "",
          ]),
        );
    };
    const keyOf = (day: number): string => `nightly_${at(day).toISOString()}`;
    const [late, skipped] = [
      [keyOf(1), "too late", "free"],
      [keyOf(0), "skipped", "free"],
    ];
    await expect.poll(() => rowsAt("find=nightly_&state=too-late")).toEqual([late]);
    await expect.poll(() => rowsAt("find=nightly_&state=skipped")).toEqual([skipped]);
    await expect.poll(() => rowsAt("find=nightly_&state=failed")).toEqual([[keyOf(2), "failed FinalError", "over"]]);
    const last = async (): Promise<unknown> => (await rowsAt("find=nightly_")).slice(-3);
    await expect.poll(last).toEqual([[keyOf(2), "failed FinalError", "over"], late, skipped]);
  });

  it("has a page for an occurrence that never ran, which draws and tells no failure; control: one that failed", async () => {
    const page = await consoles.open("about:blank");
    for (const [day, word, failures] of [
      [0, "skipped", 0],
      [1, "too late", 0],
      [2, "failed FinalError", 1],
    ] as const) {
      await page.goto(`${consoles.here}#/runs/nightly_${at(day).toISOString()}`);
      await page.getByRole("heading", { name: `nightly_${at(day).toISOString()}` }).waitFor();
      await page.locator(".lane title").first().waitFor({ state: "attached" });
      expect([word, await page.locator(".lane rect.failed").count()]).toEqual([word, failures]);
      const recorded = page.getByRole("row", { name: "recorded" });
      expect(await recorded.textContent()).toMatch(new RegExp(`${word}, attempt 1`));
    }
  });

  it("leads to the run of each, by the keyboard too, and from there back to the schedule", async () => {
    const page = await consoles.open(`${consoles.here}#/runs?find=nightl`);
    await page.getByText("nightly_").first().waitFor();
    await page.goto(`${consoles.here}#/locks/nightly`);
    await page.getByRole("link", { name: "See its run" }).click();
    await page.getByRole("button", { name: "30d" }).click();
    await expect.poll(() => page.getByRole("list", { name: "nightly" }).getByRole("link").count()).toBe(8);
    for (const key of ["k", "k", "k", "Enter"]) await page.keyboard.press(key);
    await page.getByText("disk full").waitFor();
    expect(page.url()).toContain(encodeURIComponent(`nightly_${at(2).toISOString()}`));
    await page.getByRole("link", { name: "nightly", exact: true }).click();
    await page.getByRole("heading", { name: "Occurrences" }).waitFor();
  });
});
