/** The console in a real Chromium: its policy, its accessibility, hostile text, the keyboard, thousands of keys, and its polls. */
import type { Locator, Page, Route } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type LockClient, FinalError } from "../../lib/index.js";
import { faultsOf } from "../support/axe.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { CHROMIUM } from "../support/chromium.js";
import { endAll } from "../bin/holdfast.js";
import { type Consoles, type PageOptions, cut, startConsoles } from "./in-chromium.js";
import { start } from "../bin/in-process.js";

const HOSTILE = `<img src=x onerror="window.broken=1"><script>window.broken=2</script>`;
const TURNED = "\u202Eevil";
/** The number of keys with which the page must stay quick. */
const MANY = 5000;
/** The most time that a task of the page may take then: as much as sorting the names of so many keys this often. */
const SORTS = 300;

const HOUR_MS = 3_600_000;

/** Runs in the page: returns the words that touch the number before them. */
function touching(all: readonly Element[]): readonly (string | null)[] {
  const touchesNumber = (words: Element): boolean => {
    const before = document.createRange();
    before.setStart(words.parentElement!, 0);
    before.setEndBefore(words);
    const [number, place] = [before.getBoundingClientRect(), words.getBoundingClientRect()];
    return place.top < number.bottom && place.left - number.right < 4;
  };
  return all.filter(touchesNumber).map(({ textContent }) => textContent);
}

interface Violation {
  readonly directive: string;
}

/** Runs in the page before its own script: collects violations of the policy. */
const COLLECT = `
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => window.violations.push({ directive: event.effectiveDirective }));
`;

describe.skipIf(CHROMIUM === undefined)("the console in Chromium (skipped without one on the path)", { timeout: 240_000 }, () => {
  let consoles: Consoles;
  let locks: LockClient;
  let here: string;

  beforeAll(async () => {
    consoles = await startConsoles("worker-1");
    ({ locks, here } = consoles);
    await scenery();
  });
  afterEach(() => consoles.closePages());
  afterAll(async () => {
    await endAll();
    await consoles.close();
  });

  /** Keys and runs in every state that the page shows. */
  async function scenery(): Promise<void> {
    await locks.acquire("ORDER_1");
    await locks.acquire("ORDER_2", { owner: HOSTILE, meta: { note: HOSTILE } });
    await locks.acquire("ORDER_3", { owner: TURNED });
    await locks.acquire("stripe_evt~5F1~3Cb~3E");
    await locks.acquire("gate", { limit: 3, permits: 2 });
    await locks.acquire("gate", { limit: 3 });
    const { fencingToken } = await locks.acquire("broken", { owner: "gone", leaseMs: HOUR_MS, heartbeat: false });
    await locks.forceRelease("broken", { fencingToken, reason: HOSTILE });
    for (const owner of ["next", HOSTILE]) void locks.acquire("ORDER_1", { owner, waitMs: 600_000 }).catch(() => undefined);
    await locks.runOnce("REFUND_1", () => ({ note: `</pre>${HOSTILE}` }));
    for (let attempt = 1; attempt <= DEFAULTS.maxAttempts; attempt++)
      await locks.runOnce("REFUND_3", () => Promise.reject(new Error("down"))).catch(() => undefined);
    await locks.runOnce("REFUND_2", () => Promise.reject(new FinalError(HOSTILE))).catch(() => undefined);
    for (const day of [3, 2]) {
      const occurrence = new Date(Date.now() - day * 24 * HOUR_MS);
      await locks.tick("nightly", { occurrence, maxLateMs: (day - 2) * 5 * 24 * HOUR_MS }, () => 1);
    }
    await locks.tryAcquire("ORDER_1");
    const large = { count: 1_000_000, perMs: 24 * HOUR_MS, burst: 1_000_000 };
    const rates = [{ count: 5, perMs: HOUR_MS, burst: 2 }, large, large];
    await locks.limiter("tokens_user~401231_of-a-tenant-with-a-long-name", { rates }).take({ cost: 2 });
  }

  const open = (hash: string, options: PageOptions = {}): Promise<Page> => consoles.open(here + hash, { script: COLLECT, ...options });

  const violationsOf = (page: Page): Promise<readonly Violation[]> => page.evaluate("window.violations");

  /** Every view with what tells that its data are there. */
  const VIEWS: readonly (readonly [hash: string, text: string])[] = [
    ["#/locks", "ORDER_1"],
    ["#/locks?find=none_", "No held key fits"],
    ["#/locks/ORDER_1", "1 refused"],
    ["#/locks/ORDER_2", "onerror"],
    ["#/locks/gate", "2 holders"],
    ["#/locks/broken", "can't be renewed"],
    ["#/locks/never", "no holder is on record"],
    ["#/runs", "REFUND_2"],
    ["#/runs/REFUND_1", "Result"],
    ["#/runs/REFUND_2", "Error"],
    ["#/runs/nightly", "too late"],
    ["#/limits", "tokens_user"],
    ["#/limits/tokens_user~401231_of-a-tenant-with-a-long-name", "Left over time"],
    ["#/activity", "refused"],
  ];

  /** Returns the width in px by which an element scrolls sideways. */
  const sidewaysOf = (page: Page, selector: string): Promise<number> =>
    page.locator(selector).evaluate((element) => element.scrollWidth - element.clientWidth);

  async function openView([hash, text]: (typeof VIEWS)[number], options?: PageOptions): Promise<Page> {
    const page = await open(hash, options);
    await page.getByText(text.replace(/^1 /, "")).first().waitFor();
    return page;
  }

  it("keeps to its policy in every view; control: a style and a script that don't are counted", async () => {
    for (const view of VIEWS) {
      const page = await openView(view);
      expect([view[0], await violationsOf(page)]).toEqual([view[0], []]);
    }
    const page = await openView(VIEWS[0]!);
    await page
      .evaluate(() => {
        document.body.setAttribute("style", "color: red");
        const script = document.createElement("script");
        script.src = "data:text/javascript,1";
        document.body.append(script);
      })
      .catch(() => undefined);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    const directives = new Set((await violationsOf(page)).map(({ directive }) => directive));
    expect(directives.size).toBeGreaterThanOrEqual(2);
  });

  it.each(["light", "dark"] as const)("has no fault that axe finds, %s, in every view, dialog and notice", async (colorScheme) => {
    for (const view of VIEWS) {
      const page = await openView(view, { colorScheme });
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        expect([view[0], width, await faultsOf(page)]).toEqual([view[0], width, []]);
      }
      await page.close();
    }
    const page = await openView(["#/locks/ORDER_1", "Timeline"], { colorScheme });
    await page.keyboard.press("b");
    await page.getByRole("dialog").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByText("Use these shortcuts").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await cut(page);
    await page.getByRole("alert").first().waitFor();
    expect(await faultsOf(page)).toEqual([]);
    // Control: a field without a label is a fault.
    await page.evaluate(() => document.body.append(document.createElement("input")));
    expect(await faultsOf(page)).toContain("label");
  });

  it.each(["light", "dark"] as const)(
    "tells a failed attempt from a lost lease without colours, in picture and legend, %s",
    async (colorScheme) => {
      const page = await openView(["#/runs/REFUND_2", "Error"], { colorScheme });
      const failed = page.locator(".lane rect.hold.failed").first();
      const inLegend = page.locator(".legend li", { hasText: "failed attempt" }).locator("rect");
      const lost = page.locator(".legend li", { hasText: "lost: the lease ran out" });
      const paintOf = (box: Locator) => box.evaluate((rect) => getComputedStyle(rect).fill);
      expect([await paintOf(failed), await paintOf(inLegend)]).toEqual(Array(2).fill('url("#failed")'));
      expect(await paintOf(page.locator("pattern#failed rect"))).toBe(await paintOf(lost.locator("rect")));
      expect([await lost.locator("path.end").count(), await page.locator(".lane path.end").count()]).toEqual([1, 0]);
    },
  );

  it("shows hostile text as text, and never a lease's meta", async () => {
    for (const view of VIEWS) {
      const page = await openView(view);
      const found = await page.evaluate(() => ({
        broken: (window as { broken?: number }).broken,
        elements: document.querySelectorAll("img[src=x], script:not([src]), [onerror]").length,
        text: document.body.innerText,
      }));
      expect([view[0], found.broken, found.elements]).toEqual([view[0], undefined, 0]);
      expect(found.text).not.toContain(TURNED[0]);
      if (view[0] === "#/locks/ORDER_2") expect(found.text).toContain(HOSTILE);
      if (view[0] === "#/runs/REFUND_1") expect(found.text).toContain("</pre>");
      expect(found.text).not.toContain('note": "<img');
      await page.close();
    }
  });

  it.each([412, 390, 320])("fits %i px without scrolling sideways, and no tab breaks beside its badge", async (width) => {
    for (const view of VIEWS) {
      const page = await openView(view, { viewport: { width, height: 800 } });
      await page.locator(".badge").waitFor();
      const heights = await page.locator("nav a").evaluateAll((tabs) => tabs.map((tab) => (tab as HTMLElement).offsetHeight));
      expect([view[0], new Set(heights).size]).toEqual([view[0], 1]);
      expect([view[0], await sidewaysOf(page, "html")]).toEqual([view[0], 0]);
      expect([view[0], await page.locator(".figure small:not(:empty)").evaluateAll(touching)]).toEqual([view[0], []]);
      await page.close();
    }
    const page = await openView(["#/locks/ORDER_1", "Timeline"], { viewport: { width, height: 800 } });
    for (const pressed of ["b", "?"]) {
      await page.keyboard.press(pressed);
      await page.getByRole("dialog").waitFor();
      expect([pressed, await sidewaysOf(page, "dialog"), await sidewaysOf(page, "html")]).toEqual([pressed, 0, 0]);
      await page.keyboard.press("Escape");
    }
    await cut(page);
    await page.getByRole("alert").first().waitFor();
    expect(await sidewaysOf(page, "html")).toBe(0);
  });

  it("gives an owner the whole width of a card on a phone", async () => {
    const views: readonly (typeof VIEWS)[number][] = [
      ["#/locks", "ORDER_1"],
      ["#/runs", "REFUND_2"],
      ["#/activity", "granted"],
    ];
    for (const view of views) {
      const page = await openView(view, { viewport: { width: 390, height: 800 } });
      const cell = page.locator(".rows td", { has: page.locator(".owner") }).last();
      const [of, row] = [await cell.boundingBox(), await cell.locator("..").boundingBox()];
      expect([view[0], (of?.width ?? 0) / (row?.width ?? 1) > 0.9]).toEqual([view[0], true]);
      await page.close();
    }
  });

  it("names its own service in the command to try, and the state of its times on the button", async () => {
    const page = await open("#/locks?find=none_");
    await page.route("**/console/api/locks?**", (route) =>
      route.fulfill({
        json: {
          items: [],
          fits: 0,
          read: 0,
          more: false,
          figures: { held: 0, waiting: 0, waitedFor: 0, late: 0 },
          looks: [],
          looksInAll: 0,
        },
      }),
    );
    await page.goto(`${here}#/locks`);
    await page.getByText(`npx holdfast --url ${consoles.service.url} lock demo -- sleep 30`, { exact: true }).waitFor();
    await page.getByRole("button", { name: "Times: UTC" }).click();
    await page.getByRole("button", { name: "Times: local" }).click();
    await page.getByRole("button", { name: "Times: UTC" }).waitFor();
  });

  it("breaks a hold through the keyboard alone, and gives the focus back", async () => {
    const { fencingToken } = await locks.acquire("KEYS_1", { owner: "stuck", leaseMs: 600_000, heartbeat: false });
    const page = await openView(["#/activity", "granted"]);
    // The page takes two letters for one shortcut by the time between them, which is none here. Then its clock goes on.
    await page.clock.setFixedTime(Date.now());
    await page.keyboard.press("g");
    await page.keyboard.press("l");
    await page.clock.setSystemTime(Date.now());
    await page.getByRole("link", { name: "KEYS_1" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("KEYS_");
    await page.getByText(/^1 of \d+ held keys$/).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByText("Held by stuck since").waitFor();
    await page.keyboard.press("b");
    // On a busy machine the dialog takes a moment, and what is typed before that is no reason.
    await page.locator("dialog :focus").waitFor();
    const submit = page.getByRole("button", { name: "Break it" });
    expect(await submit.isDisabled()).toBe(true);
    await page.keyboard.press("Enter"); // No reason yet: nothing happens.
    await page.keyboard.type("its machine is gone");
    expect((await locks.inspect("KEYS_1")).holders[0]?.breaking).toBeUndefined();
    await page.keyboard.press("Enter");
    await page.getByText("KEYS_1: the hold can't be renewed any more").waitFor();
    expect((await locks.inspect("KEYS_1")).holders).toMatchObject([{ fencingToken, breaking: true }]);
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Break…");
    await page.getByText("its machine is gone, by local/local").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "KEYS_1" }).waitFor();
    await page.goto(`${here}#/activity`);
    const deed = page.getByRole("table", { name: "Breaks and resets" }).getByRole("row", { name: "KEYS_1" });
    expect(await deed.textContent()).toMatch(/^[\d:.]+local\/localbroken, to drainKEYS_1stuckits machine is gone$/);
  });

  it("shows the events of a kind or an owner alone, and keeps that in the address", async () => {
    for (const owner of ["one", "two", "three"]) await (await locks.acquire("FILTER_1", { owner })).release();
    const page = await openView(["#/locks/FILTER_1", ": three released it"]);
    const events = page.getByRole("table", { name: "Events of FILTER_1" });
    const shown = async () =>
      (await events.locator("tbody tr").allTextContents()).map((text) =>
        /\d(granted|released)(\w+?)(held|waited|token)/.exec(text)?.slice(1, 3).join(" "),
      );
    expect(await shown()).toHaveLength(6);
    await page.getByRole("combobox", { name: "Owner" }).selectOption("two");
    await page.getByText("2 of 6 events").waitFor();
    expect(await shown()).toEqual(["released two", "granted two"]);
    await page.getByRole("combobox", { name: "Event" }).selectOption("Ends");
    await page.getByText("1 of 6 events").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.reload();
    await page.getByText("1 of 6 events").waitFor();
    expect([page.url(), await shown()]).toEqual([`${here}#/locks/FILTER_1?event=ended&owner=two`, ["released two"]]);
    await page.getByRole("combobox", { name: "Event" }).selectOption("Refusals");
    await page.getByText("No event fits").waitFor();
  });

  describe("its polls", () => {
    /** A page on a clock that the test turns, and the requests for the list, which the test answers. */
    async function polled() {
      const page = await consoles.open("about:blank", { turnsClock: true });
      const asked: Route[] = [];
      await page.route("**/console/api/locks?**", (route) => void asked.push(route));
      await page.goto(`${here}#/locks?find=ORDER_`);
      const arrives = (count: number) => expect.poll(() => asked.length).toBe(count);
      await arrives(1);
      return { page, asked, arrives };
    }

    it("rest while the tab is hidden, and while they are paused", async () => {
      const { page, asked, arrives } = await polled();
      const hide = (isHidden: boolean) =>
        page.evaluate((hidden) => {
          Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }, isHidden);
      await asked[0]?.continue();
      await page.getByText("ORDER_1").first().waitFor();
      await hide(true);
      await page.clock.runFor(120_000);
      expect(asked.length).toBe(1);
      await hide(false);
      await arrives(2);
      await asked[1]?.continue();
      await page.keyboard.press("p");
      await page.getByText("paused").waitFor();
      await page.clock.runFor(120_000);
      expect(asked.length).toBe(2);
      await page.keyboard.press("p");
      await arrives(3);
    });
  });

  it("opens by the address of holdfast ui, whose secret is exchanged at once for a cookie, and hides what it may not do", async () => {
    const ui = start(["ui", "--port", "0"], { HOLDFAST_URL: consoles.service.url });
    const [, address = ""] = /Open (\S+)/.exec(await ui.printed(/Ctrl-C/)) ?? [];
    const page = await consoles.open(address);
    await page.getByText("ORDER_1").first().waitFor();
    expect(page.url()).toMatch(/\/console#\/locks$/);
    const secret = address.replace(/.*=/, "");
    expect(await page.evaluate(() => [document.cookie, sessionStorage.length, localStorage.length])).toEqual(["", 0, 0]);
    const { entries } = await (await page.context().newCDPSession(page)).send("Page.getNavigationHistory");
    expect(entries.map(({ url }) => url).filter((url) => url.includes(secret))).toEqual([]);
    await page.reload();
    await page.getByRole("link", { name: "ORDER_1" }).click();
    await page.getByText("Held by worker-1 since").waitFor();
    expect(await page.getByRole("button", { name: "Break…" }).count()).toBe(0);
    await page
      .getByText(/renewed/)
      .first()
      .waitFor();
    const stranger = await consoles.open(address.replace(/#.*/, ""));
    await stranger.getByText("doesn't know the running console").first().waitFor();
    // Another browser with the whole address, as from a history, gets nothing either: the secret was exchanged.
    const later = await consoles.open(address);
    await later.getByText("doesn't know the running console").first().waitFor();
    ui.signal("SIGINT");
    expect((await ui.ended).status).toBe(0);
  });

  it(`stays quick with ${MANY} keys; control: a slow task is noticed`, async () => {
    for (let at = 0; at < MANY; at += 100)
      await Promise.all(Array.from({ length: 100 }, (_, one) => locks.acquire(`MANY_${at + one}`, { heartbeat: false, leaseMs: HOUR_MS })));
    const page = await open("#/activity");
    await page.getByText("granted").first().waitFor();
    const used = await longestTaskMs(page, async () => {
      await page.goto(`${here}#/locks?find=MANY_`);
      await page.getByText(new RegExp(`^${MANY} of \\d+ held keys$`)).waitFor();
      for (const rows of [200, 300, 400, 500]) {
        await page.getByText("Show more keys").click();
        await page
          .locator(".row-link")
          .nth(rows - 1)
          .waitFor();
      }
      await page.getByText(`The first 500 of ${MANY} are shown.`).waitFor();
      await page.getByLabel("Order").selectOption("left");
      await page.getByRole("searchbox").fill("MANY_49");
      await page.getByText(/^111 of \d+ held keys$/).waitFor();
    });
    const sorted = (times: number) =>
      longestTaskMs(page, () =>
        page.evaluate(
          ([names, repeats]) => {
            const list = Array.from({ length: names }, (_, at) => `MANY_${(at * 7919) % names}`);
            for (let time = 0; time < repeats; time++) list.toSorted((a, b) => a.localeCompare(b));
          },
          [MANY, times] as const,
        ),
      );
    const most = await sorted(SORTS);
    expect(used / most).toBeGreaterThan(0);
    expect(used / most).toBeLessThan(1);
    expect((await sorted(2 * SORTS)) / most).toBeGreaterThan(1);
  });
});

/** Returns the processor time of the longest task of the page's main thread while `act` runs, in ms. Other processes don't count in it. */
async function longestTaskMs(page: Page, act: () => Promise<unknown>): Promise<number> {
  const browser = page.context().browser();
  await browser?.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await act();
  // A task answers before it ends, and is not in the trace until then.
  await page.evaluate(() => new Promise((ended) => setTimeout(ended)));
  const { traceEvents } = JSON.parse(String(await browser?.stopTracing())) as { readonly traceEvents: readonly TraceEvent[] };
  const main = new Set(traceEvents.filter(({ args }) => args?.name === "CrRendererMain").map(({ pid, tid }) => `${pid}.${tid}`));
  const tasks = traceEvents.filter(({ name, pid, tid }) => name.endsWith("RunTask") && main.has(`${pid}.${tid}`));
  return Math.max(0, ...tasks.map(({ tdur = 0 }) => tdur / 1000));
}

/** An event of Chromium's trace; `tdur` is the processor time of its thread, in µs. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}
