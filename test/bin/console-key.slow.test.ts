/** The page of one key in a real Chromium, before a live service: with a connection that is cut, with a holder that died, and without a log. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { RecentLines } from "../../bin/console/recent-lines.js";
import { consoleOf } from "../../bin/console/server.js";
import type { Gateway } from "../../infra/local/gateway.js";
import { startLocalService } from "../../infra/local/local-service.js";
import type { LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/index.js";
import { faultsOf } from "../support/axe.js";
import { CHROMIUM, startChromium } from "../support/chromium.js";
import { endAll } from "./holdfast.js";

const MINUTE_MS = 60_000;

describe.skipIf(CHROMIUM === undefined)("the page of one key in Chromium (skipped without one on the path)", { timeout: 240_000 }, () => {
  let browser: Browser;
  let service: Gateway;
  let locks: LockClient;
  const pages: Page[] = [];

  beforeAll(async () => {
    browser = await startChromium();
    const lines = new RecentLines(Date.now());
    service = await startLocalService({ ports: [0], log: (line) => lines.add(line), onFailure: () => undefined });
    locks = createLockClient({ url: service.url, owner: "checkout-7" });
    service.mount(consoleOf({ locks, where: "here", canChange: true, pollMs: 1000, lines }));
  }, 120_000);
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.close();
  });
  afterAll(async () => {
    await endAll();
    await browser.close();
    await locks.close();
    await service.close();
  });

  /** Opens a view, on a clock that the test turns if it says so. */
  async function open(hash: string, turnsClock = false): Promise<Page> {
    const page = await browser.newPage();
    pages.push(page);
    page.on("pageerror", (error) => expect.fail(`the page threw ${error.message}`));
    page.setDefaultTimeout(60_000);
    if (turnsClock) await page.clock.install();
    await page.goto(`${service.url}/console${hash}`);
    return page;
  }

  /** Stands for a console whose server was stopped. */
  const cut = (page: Page) => page.route("**/console/api/**", (route) => route.abort());

  describe("whose connection is cut", () => {
    it("tells what was and when, concludes nothing, and offers no break", async () => {
      const lease = await locks.acquire("CUT_1", { leaseMs: 10_000 });
      const page = await open("#/locks/CUT_1", true);
      await page.getByText("Held by checkout-7").waitFor();
      expect(await page.getByRole("button", { name: "Break…" }).isDisabled()).toBe(false);
      await cut(page);
      await page.clock.runFor(45_000);
      await page.locator(".title .chip", { hasText: "not known" }).waitFor();
      const sentence = await page.locator(".sentence").textContent();
      expect(sentence).toMatch(/^At \d\d:\d\d:\d\d it was held by checkout-7, (granted|last renewed) \S+ before\. Not known since\.$/);
      expect(await page.locator("main").textContent()).not.toMatch(/its holder didn't renew|may be dead|free in/);
      expect(await page.getByRole("button", { name: "Break…" }).isDisabled()).toBe(true);
      const bar = page.locator(".holders .fill");
      const before = await bar.getAttribute("style");
      await page.clock.runFor(30_000);
      expect(await bar.getAttribute("style")).toBe(before);
      expect(await faultsOf(page)).toEqual([]);
      // The truth, meanwhile: the holder renewed.
      expect((await locks.inspect("CUT_1")).holders).toMatchObject([{ owner: "checkout-7" }]);
      await page.unroute("**/console/api/**");
      await page.getByRole("button", { name: "Try again now" }).click();
      await page.getByText("Held by checkout-7").waitFor();
      await lease.release();
    });

    it("ends a hold's bar where the last answer was, and hatches what is not known", async () => {
      const lease = await locks.acquire("CUT_2", { leaseMs: 10_000 });
      const page = await open("#/locks/CUT_2", true);
      await page.locator(".timeline rect.hold").waitFor();
      await cut(page);
      await page.clock.runFor(30_000);
      await page.locator(".timeline rect.unknown").waitFor();
      const [hold, now] = [page.locator(".timeline rect.hold"), page.locator(".timeline line.now")];
      const end = Number(await hold.getAttribute("x")) + Number(await hold.getAttribute("width"));
      expect(end).toBeLessThan(Number(await now.getAttribute("x1")));
      expect(await page.locator(".timeline rect.future").count()).toBe(0);
      await lease.release();
    });

    it("says the same of a list, of a run, and of the activity", async () => {
      const lease = await locks.acquire("CUT_3", { leaseMs: 10_000, waitMs: MINUTE_MS });
      await locks.runOnce("CUT_RUN", () => 1);
      for (const hash of ["#/locks?prefix=CUT_3", "#/runs/CUT_RUN", "#/activity"]) {
        const page = await open(hash, true);
        await page
          .getByText(hash === "#/runs/CUT_RUN" ? "Result" : "CUT_3")
          .first()
          .waitFor();
        await cut(page);
        await page.clock.runFor(45_000);
        await page.getByRole("alert").getByText("The console lost its server").waitFor();
        expect(await page.locator("main").textContent()).not.toMatch(/lease over|not renewed/);
        expect(await page.locator(".light.live").count()).toBe(0);
        expect(await faultsOf(page)).toEqual([]);
      }
      await lease.release();
    });
  });
});
