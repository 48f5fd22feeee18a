/** The console's lists in a real Chromium, among 5,000 held keys: what needs a look, order and search over all keys, and runs that need a person. */
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Operator, READ_KEYS, READ_ON_KEYS } from "../../console/handlers.js";
import { type LockClient, LockError } from "../../lib/index.js";
import { faultsOf } from "../support/axe.js";
import { CHROMIUM } from "../support/chromium.js";
import { type Consoles, startConsoles, TIME } from "./in-chromium.js";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

describe.skipIf(CHROMIUM === undefined)("the console's lists in Chromium (skipped without one on the path)", { timeout: 240_000 }, () => {
  let consoles: Consoles;
  let locks: LockClient;
  /** The console on the service's own machine, and one that reaches the service as a deployed one. */
  let here: string;
  let deployed: string;

  beforeAll(async () => {
    consoles = await startConsoles("worker-1");
    ({ locks, here } = consoles);
    deployed = await consoles.serve({});
    await locks.acquire("ORDER_91231", { owner: "checkout-7" });
    await locks.acquire("ZONE_hot", { owner: "importer-2" });
    wait("ORDER_91231", "checkout-9");
    while ((await locks.inspect("ORDER_91231")).waiters.length < 1);
    for (const owner of ["importer-3", "importer-4", "importer-5"]) wait("ZONE_hot", owner);
    while ((await locks.inspect("ZONE_hot")).waiters.length < 3);
  });
  afterEach(() => consoles.closePages());
  afterAll(() => consoles.close());

  const wait = (key: string, owner: string): void =>
    void locks
      .scope(`the scope of ${owner}`)
      .acquire(key, { owner, waitMs: 600_000 })
      .catch(() => undefined);

  const open: Consoles["open"] = (...page) => consoles.open(...page);

  /** The keys of the shown rows. */
  const keysOf = (page: Page) => page.locator("table.rows .row-link .key > bdi").allTextContents();
  const textOf = (page: Page) => page.evaluate(() => document.body.innerText);

  describe("among thousands of other held keys", () => {
    const others = 5000;
    beforeAll(async () => {
      for (let at = 0; at < others; at += 100)
        await Promise.all(
          Array.from({ length: 100 }, (_, one) => locks.acquire(`CART_${at + one}`, { owner: "shop", heartbeat: false, leaseMs: HOUR_MS })),
        );
    });
    const all = others + 2;

    it("sorts, counts and searches all of them, wherever their names are", async () => {
      const page = await open(`${here}#/locks`);
      await page.getByText(`${all} held keys`, { exact: true }).waitFor();
      expect((await keysOf(page)).slice(0, 2)).toEqual(["ORDER_91231", "ZONE_hot"]);
      const figures = await page.getByRole("list", { name: "Figures" }).getByRole("listitem").allTextContents();
      expect(figures.map((text) => text.trim())).toEqual([
        `${all} keys held`,
        "4 callers waiting, on 2 keys",
        "0 holders not renewed in time",
        "0 leases lost in the last 10 min",
      ]);
      expect(await textOf(page)).not.toMatch(/\d+ms/);
      await page.getByLabel("Only keys with waiters").check();
      await page.getByText(`2 of ${all} held keys`, { exact: true }).waitFor();
      await page.getByRole("searchbox").fill("CHECKOUT-9");
      await page.getByText(`1 of ${all} held keys`, { exact: true }).waitFor();
      expect(await keysOf(page)).toEqual(["ORDER_91231"]);
    });

    it("reads on by itself on a deployed service, says of how many keys its figures are, and reads all on demand", async () => {
      const page = await open(`${deployed}#/locks`);
      await page.getByText(`≥ 0 callers waiting, of ${READ_KEYS} read`).waitFor();
      await page.getByText(`Counted and sorted among the first ${READ_KEYS} held keys of more. Reading on…`).waitFor();
      await page.getByText(`Counted and sorted among the first ${READ_ON_KEYS} held keys of more.`, { exact: true }).waitFor();
      await page.getByText(`≥ 0 callers waiting, of ${READ_ON_KEYS} read`).waitFor();
      await page.getByLabel("Only keys with waiters").check();
      await page.getByText(`None of the first ${READ_ON_KEYS} held keys is waited for`).waitFor();
      expect(await textOf(page)).not.toContain("or more held keys");
      expect(await faultsOf(page)).toEqual([]);
      await page.getByRole("button", { name: "Read all" }).click();
      await page.getByText(`2 of ${all} held keys`, { exact: true }).waitFor();
      expect(await keysOf(page)).toEqual(["ORDER_91231", "ZONE_hot"]);
      expect(await page.getByText("Counted and sorted").count()).toBe(0);
    });
  });

  it("says of which keys it names those that need a look, where not all were read", async () => {
    const holder = { owner: "old", mode: "exclusive", permits: 1, fencingToken: 7, heldMs: 300_000, remainingMs: 5000, leaseMs: 30_000 };
    const late = { key: "LATE", version: 1, mode: "exclusive", fencingToken: 7, holders: [holder], waiters: [] };
    const fine = { ...late, key: "FINE", holders: [{ ...holder, remainingMs: 29_000 }] };
    const list = ({ cursor = "0" }: { readonly cursor?: string }) =>
      Promise.resolve({ namespace: "default", items: cursor === "0" ? [late, fine] : [], cursor: String(Number(cursor) + 1) });
    const endless = ({ cursor = "0" }: { readonly cursor?: string }) => Promise.resolve({ items: [], cursor: String(Number(cursor) + 1) });
    const operator = { health: () => locks.health(), list, runs: { list: endless } } as unknown as Operator;
    const page = await open(`${await consoles.serve({ locks: operator, canChange: false })}#/locks`);
    const looks = page.getByRole("region", { name: "Needs a look" });
    await looks.getByText("among the 2 held keys and the runs that were read").waitFor();
    expect(await looks.innerText()).toMatch(/LATE\s+Held by old since /);
    expect(await looks.getByRole("listitem").count()).toBe(1);
  });

  it("keeps what is typed while it searches", async () => {
    const page = await open(`${here}#/locks`);
    await page.getByRole("table").waitFor();
    const search = page.getByRole("searchbox");
    // The rest is typed in the very moment in which the search for the beginning is applied.
    await search.evaluate((box: HTMLInputElement) => {
      const typeTheRest = (): void => {
        box.value = "91231";
        box.dispatchEvent(new Event("input", { bubbles: true }));
      };
      addEventListener("hashchange", typeTheRest, { once: true });
    });
    await search.fill("912");
    await page.getByRole("link", { name: "Open ‘91231’" }).waitFor();
  });

  it("opens a key that is free, and comes back to the search by Escape and by the link", async () => {
    const page = await open(`${here}#/locks`);
    await page.getByRole("table").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("91231");
    await page.getByRole("link", { name: "Open ‘91231’" }).click();
    await page.getByText("Free; no holder is on record.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "ORDER_91231" }).click();
    await page.getByText(/^Held by checkout-7 since /).waitFor();
    await page.getByRole("link", { name: "‹ Locks" }).click();
    await page.getByRole("link", { name: "ORDER_91231" }).waitFor();
    expect([page.url(), await page.getByRole("searchbox").inputValue()]).toEqual([`${here}#/locks?find=91231`, "91231"]);
  });

  describe("a run that failed as often as callers try by default", () => {
    beforeAll(async () => {
      const fail = () =>
        locks
          .runOnce("REFUND_17", { owner: "worker-3" }, () => Promise.reject(new Error("the card network is down")))
          .then(
            () => "done",
            (error: unknown) => (error instanceof LockError ? error.code : "failed"),
          );
      for (let attempt = 1; attempt <= 5; attempt++) expect(await fail()).not.toBe("attempts-exhausted");
      expect(await fail()).toBe("attempts-exhausted");
      for (let at = 0; at < 3; at++) await locks.runOnce(`PAYMENT_${at}`, () => at);
      await locks.runOnce("REFUND_18", () => Promise.reject(new Error("once"))).catch(() => undefined);
    });

    it("is on the first view and on the tab, is first in the list, and says why and when it failed last", async () => {
      const page = await open(`${here}#/locks`);
      const panel = page.getByRole("region", { name: "Needs a look" });
      await panel.getByText("failed 5 times, refused until reset").waitFor();
      expect(await panel.innerText()).toMatch(/The limit is the caller's, 5 by default\.\s+the card network is down/);
      await page.getByRole("link", { name: "Runs 1 needs you" }).click();
      const row = page.getByRole("row", { name: "REFUND_17" });
      await row.getByText("worker-3").waitFor();
      expect((await keysOf(page)).slice(0, 2)).toEqual(["REFUND_17", "PAYMENT_0"]);
      expect(await row.textContent()).toMatch(
        new RegExp(
          String.raw`failed 5 times, refused until reset\s*the card network is down\s*5\s*${TIME} \([\w <]+ ago\)\s*[\w.< ]+\s*worker-3$`,
        ),
      );
      await page.getByRole("row", { name: "REFUND_18" }).getByText("failed, can be retried").waitFor();
      await page.getByRole("link", { name: "REFUND_17" }).click();
      await page.getByText("5. The limit is the caller's, 5 by default").waitFor();
    });

    it("is not said any more once the answers are old, and the figures and rows lose their colours", async () => {
      const page = await open(`${here}#/locks`, { turnsClock: true });
      const panel = page.getByRole("region", { name: "Needs a look" });
      await panel.getByText("failed 5 times, refused until reset").waitFor();
      await page.locator(".figures:not(.old) .wait").waitFor();
      await page.route("**/console/api/**", () => undefined); // Nobody answers, and nothing fails.
      await page.clock.runFor(45_000);
      await page.locator(".figures.old").waitFor();
      expect(await panel.count()).toBe(0);
      expect(await page.locator("table.locks.old").count()).toBe(1);
      expect(await faultsOf(page)).toEqual([]);
    });
  });

  it("shows two lines of a long error, which leaves the other columns their width", async () => {
    const error = JSON.stringify({ message: "the partner answered with a page of its own ".repeat(60) });
    const run = { key: "REFUND_LONG", state: "failed", retryable: true, attempt: 5, fencingToken: 1, owner: "worker-3", error };
    const page = await open("about:blank", { viewport: { width: 1000, height: 800 } });
    await page.route("**/console/api/exhausted?**", (route) =>
      route.fulfill({ json: { items: [run], interrupted: [], more: false, isPart: false } }),
    );
    await page.goto(`${here}#/runs?state=failed`);
    const row = page.getByRole("row", { name: "REFUND_LONG" });
    const linesOf = (element: Element) => element.getBoundingClientRect().height / parseFloat(getComputedStyle(element).lineHeight);
    expect(await row.locator(".error").evaluate(linesOf)).toBeLessThan(2.1);
    expect(await row.locator(".key").evaluate(linesOf)).toBeLessThan(1.5);
    expect(await row.locator(".owner").evaluate((element) => element.getClientRects().length)).toBe(1);
  });

  it("has one row for a schedule, which leads to its page, and from there to all its occurrences", async () => {
    for (const day of [1, 2, 3]) await locks.runOnce(`nightly_2026-11-0${day}T02:00:00.000Z`, () => day);
    const page = await open(`${here}#/runs`);
    await page.getByRole("link", { name: "the last of 3" }).waitFor();
    expect((await keysOf(page)).filter((key) => key.startsWith("nightly"))).toEqual(["nightly_2026-11-03T02:00:00.000Z"]);
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole("link", { name: "the last of 3" }).click();
    await page.getByRole("link", { name: "the list of its occurrences" }).click();
    await page.getByText("3 runs", { exact: true }).waitFor();
    expect(await keysOf(page)).toHaveLength(3);
  });

  describe("what needs a look", () => {
    let address: string;

    const hold = { mode: "exclusive", permits: 1, heldMs: 250_000, leaseMs: MINUTE_MS } as const;
    const common = { version: 1, mode: "exclusive", fencingToken: 7 } as const;
    const items = [
      { key: "A_fine", ...common, holders: [{ ...hold, owner: "fine", fencingToken: 1, remainingMs: 55_000 }], waiters: [] },
      {
        key: "ORDER_8",
        ...common,
        holders: [{ ...hold, owner: "checkout-12", fencingToken: 2, remainingMs: 17_000 }],
        waiters: [{ owner: "checkout-13", mode: "exclusive", priority: 0, position: 1, waitingMs: 190_000 }],
      },
      {
        key: "HOT_item",
        ...common,
        holders: [{ ...hold, owner: "fn-holder", fencingToken: 3, remainingMs: 56_000 }],
        waiters: [{ owner: "next", mode: "exclusive", priority: 0, position: 1, waitingMs: 240_000 }],
      },
    ] as const;

    beforeAll(async () => {
      const health = async () => ({ status: "ok", version: "1.0.0", serverTimeMs: 0 });
      const list = async () => ({ items, namespace: "default" });
      const none = async () => ({ items: [] });
      address = await consoles.serve({ locks: { health, list, runs: { list: none } } as unknown as Operator });
    });

    it("is said in sentences: a holder that is late, and a long wait", async () => {
      const page = await open(`${address}#/locks`);
      const looks = page.getByRole("region", { name: "Needs a look" }).getByRole("listitem");
      await looks.first().waitFor();
      const said = (await looks.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " ").replace(new RegExp(TIME), "TIME").trim());
      expect(said).toEqual([
        "HOT_item Held by fn-holder since TIME (4m 10s), renewed 4s ago; next waits. The longest wait is 4m. Open HOT_item",
        "ORDER_8 Held by checkout-12 since TIME (4m 10s), not renewed for 43s: it may be dead, and if it stays silent, checkout-13 gets the key in about 18s; checkout-13 waits. The longest wait is 3m 10s. Open ORDER_8",
      ]);
      expect(await keysOf(page)).toEqual(["HOT_item", "ORDER_8", "A_fine"]);
      await page.getByRole("link", { name: "Open ORDER_8" }).waitFor();
    });

    it("has clock times that stand still, and columns that a person reads", async () => {
      const page = await open(`${address}#/locks`);
      await page.getByRole("table").waitFor();
      expect(await page.getByRole("columnheader").allTextContents()).toEqual([
        "Key",
        "Owner",
        "Held since",
        "Last renewed",
        "Lease left",
        "Waiting",
      ]);
      const row = page.getByRole("row", { name: "A_fine" });
      const [since] = /\d\d:\d\d:\d\d/.exec((await row.textContent()) ?? "") ?? [];
      // Each answer says again that the hold lasts 250 s: the later ones were longer on their way.
      for (let answers = 0; answers < 3; answers++) await page.waitForResponse(/api\/locks/);
      expect(await row.textContent()).toContain(since);
      expect(await row.textContent()).toMatch(new RegExp(String.raw`A_fine\s*fine\s*${TIME} \(4m 10s\)\s*5s ago\s*55s\s*–$`));
    });
  });
});
