/** The console's limits in a real Chromium: what is left of each rate, on this machine and on a deployed service. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { faultsOf } from "../support/axe.js";
import { CHROMIUM } from "../support/chromium.js";
import { type Consoles, startConsoles, TIME } from "./in-chromium.js";

const HOUR_MS = 3_600_000;

describe.skipIf(CHROMIUM === undefined)("the console's limits in Chromium (skipped without one on the path)", { timeout: 240_000 }, () => {
  let consoles: Consoles;
  let here: string;

  beforeAll(async () => {
    consoles = await startConsoles("worker-1");
    ({ here } = consoles);
  });
  afterEach(() => consoles.closePages());
  afterAll(() => consoles.close());

  it("are none at first, and the page says how to take from one", async () => {
    const page = await consoles.open(`${here}#/locks`);
    await page.getByRole("table").or(page.getByText("No key is held")).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    await page.getByText("No limit is in use").waitFor();
    await page.getByText(/^npx holdfast --url \S+ limit demo --rate 5\/1m -- date$/).waitFor();
    expect(await page.title()).toBe("Limits · holdfast");
  });

  describe("that are in use", () => {
    beforeAll(async () => {
      const { locks } = consoles;
      const rates = [
        { count: 100, perMs: HOUR_MS, burst: 100 },
        { count: 5, perMs: HOUR_MS, burst: 2 },
      ];
      await locks.limiter("partner-api", { rates }).take({ cost: 2 });
      const large = { count: 1_000_000, perMs: 24 * HOUR_MS, burst: 1_000_000 };
      const sms = { rates: [{ count: 1, perMs: HOUR_MS, burst: 2 }], concurrent: 2 };
      await locks.limiter("sms", sms).take({ cost: 2 });
      await locks
        .limiter("sms", sms)
        .take()
        .catch(() => undefined);
      await locks.acquire("sms", { owner: "mailer-1", limit: 2, permits: 2 });
      await locks.tryAcquire("sms", { owner: "mailer-2", limit: 2 });
      void locks.acquire("sms", { owner: "mailer-3", limit: 2, waitMs: 600_000 }).catch(() => undefined);
      await locks.limiter("daily", { rates: [{ count: 1, perMs: 24 * HOUR_MS, burst: 1 }] }).take();
      await locks.limiter("tokens_user~401231_of-a-tenant-with-a-long-name", { rates: [large, large, large] }).take({ cost: 700_000 });
    });

    it("are shown by name, with a bar and the rest of each rate, and the time at which they are full", async () => {
      for (const address of [here, await consoles.serve({})]) {
        const page = await consoles.open(`${address}#/limits?find=PARTNER`);
        await page.getByText("1 in use").waitFor();
        const row = page.getByRole("row", { name: "partner-api" });
        expect((await row.innerText()).replaceAll(/\s+/g, " ")).toMatch(
          new RegExp(
            String.raw`^partner-api 199 in 1h \(bursts of 100\) 98 of 100 6 in 1h \(bursts of 2\) 0 of 2 ${TIME} \(in \d+m( \d+s)?\) Reset…$`,
          ),
        );
        const parts = await row.locator(".fill").evaluateAll((bars) => bars.map((one) => (one as HTMLElement).style.transform));
        expect(parts).toEqual(["scaleX(0.98)", "scaleX(0)"]);
        await page.getByRole("link", { name: "partner-api", exact: true }).click();
        await page.getByText(/^98 of 100 and 0 of 2 left\. The next may start at .* \(in 1[12]m( \d+s)?\)\. All is back at /).waitFor();
        expect(await faultsOf(page)).toEqual([]);
      }
    });

    it.each(["light", "dark"] as const)(
      "have a page with what is left over time, who was refused, and the permits, %s",
      async (colorScheme) => {
        for (const width of [1200, 360]) {
          const page = await consoles.open(`${here}#/limits/sms`, { colorScheme, viewport: { width, height: 800 } });
          const said = new RegExp(
            String.raw`^0 of 2 left, all 2 permits are out; 1 waits\. The next starts once a permit is back, and not before ${TIME} \(in [\dhms ]+\)\. Refused 2 times since ${TIME}, mailer-2 among them\. All is back at ${TIME} \(in [\dhms ]+\)\.$`,
          );
          await page.getByText(said).waitFor();
          await page.getByRole("img", { name: /2 in 1h \(bursts of 2\): 0 of 2 left now/ }).waitFor();
          const holders = page.getByRole("region", { name: "Holders" });
          expect(await holders.getByText("mailer-1").count()).toBe(1);
          expect(await page.getByRole("region", { name: "Queue" }).getByText("mailer-3").count()).toBe(1);
          // It falls by the takes of the log, which were before the page was opened, and then rises until it is full.
          const corners = await page.locator("path.level").first().getAttribute("d");
          expect(new Set(corners?.split("L").map((corner) => corner.split(" ")[1])).size).toBeGreaterThan(2);
          expect(await page.locator("path.level.next").count()).toBe(1);
          expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
          expect(await faultsOf(page)).toEqual([]);
          await page.close();
        }
        const daily = await consoles.open(`${here}#/limits/daily`);
        // In 24 h it is tomorrow.
        await daily.getByText(/^0 of 1 left\. The next may start at [A-Z][a-z]{2} \d+, \d\d:\d\d:\d\d \(in (1d|23h [^)]+)\)\./).waitFor();
        const page = await consoles.open(`${here}#/limits/never`);
        await page.getByText("Not in use: all is back, or it was never used.").waitFor();
      },
    );
  });
});
