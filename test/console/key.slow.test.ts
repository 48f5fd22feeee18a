/** The page of one key in a real Chromium, before a live service: with a connection that is cut, with a holder that died, and without a log. */
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Operator } from "../../console/handlers.js";
import { RecentLines } from "../../console/recent-lines.js";
import type { AcquireOptions, LockClient } from "../../lib/index.js";
import { faultsOf } from "../support/axe.js";
import { CHROMIUM } from "../support/chromium.js";
import { endAll, start as startProcess } from "../bin/holdfast.js";
import { type Consoles, cut, startConsoles, TIME } from "./in-chromium.js";

const MINUTE_MS = 60_000;

describe.skipIf(CHROMIUM === undefined)("the page of one key in Chromium (skipped without one on the path)", { timeout: 240_000 }, () => {
  let consoles: Consoles;
  let locks: LockClient;

  beforeAll(async () => {
    consoles = await startConsoles("checkout-7");
    ({ locks } = consoles);
  });
  afterEach(() => consoles.closePages());
  afterAll(async () => {
    await endAll();
    await consoles.close();
  });

  const open = (hash: string, turnsClock = false): Promise<Page> => consoles.open(consoles.here + hash, { turnsClock });

  it("names the other keys of its set, as links, for as long as they are held", async () => {
    const set = await locks.acquireAll(["ACCOUNT_1", "ACCOUNT_2", "ACCOUNT_3"]);
    const page = await open("#/locks/ACCOUNT_1");
    const holder = page.getByRole("region", { name: "Holder" });
    await holder.getByText("In a set with").waitFor();
    expect(await holder.getByRole("link").allTextContents()).toEqual(["ACCOUNT_2", "ACCOUNT_3"]);
    expect(await faultsOf(page)).toEqual([]);
    await holder.getByRole("link", { name: "ACCOUNT_3" }).click();
    await holder.getByRole("link", { name: "ACCOUNT_1" }).waitFor();
    await set.release();
    await holder.getByText("Nobody holds it").waitFor();
    expect(await holder.getByRole("link").count()).toBe(0);
    await using _ = await locks.acquire("ACCOUNT_1");
    await page.goto(`${consoles.here}#/locks/ACCOUNT_1`);
    await holder.getByText("Fencing token").waitFor();
    expect(await holder.getByRole("link").count()).toBe(0);
  });

  it("tells the tries of a standby as one event, with their number", async () => {
    await using _ = await locks.acquire("LEADER", { owner: "leader-1" });
    // As `elect` asks while another leads.
    for (let tries = 0; tries < 3; tries++) expect(await locks.tryAcquire("LEADER", { owner: "standby-2" })).toBeNull();
    const page = await open("#/locks/LEADER");
    await page.getByRole("row", { name: new RegExp(`refused standby-2 locked, 3 times since ${TIME}`) }).waitFor();
    expect(await page.getByRole("row", { name: "standby-2" }).count()).toBe(1);
  });

  describe("whose holder died", () => {
    it("says since when the key is free, and draws the hold for as long as its lease was", async () => {
      await locks.acquire("DEAD_1", { owner: "importer-9", leaseMs: 3000, heartbeat: false });
      const page = await open("#/locks/DEAD_1");
      await page.getByText(new RegExp(String.raw`^Free since ${TIME} \(\d+m?s\): importer-9's lease ran out\.$`)).waitFor();
      const lane = () => page.locator(".lane title").textContent();
      // On a busy machine a request takes a while: on its way to the grant it is a wait, and an answer makes the hold longer. The log has it below.
      expect(await lane()).toMatch(/^importer-9, (waited [^,]+, )?held \d+s, token \d+, lost: its lease ran out$/);
      await page.reload();
      await page.getByText("importer-9's lease ran out").waitFor();
      expect(await lane()).toMatch(/^importer-9, (waited [^,]+, )?held \d+s, /);
      await (await locks.acquire("DEAD_1", { owner: "next" })).release();
      await page.getByText(": next released it.").waitFor();
      expect(await page.locator(".lane title").allTextContents()).toContainEqual(
        expect.stringMatching(/^importer-9, .*held 3s, .*, lost: its lease ran out$/),
      );
      await page.getByRole("row", { name: /lost importer-9 lease ran out, held at most 3s, taken \d+/ }).waitFor();
      // The log tells the end by the service's clock alone, so the bar is as long on every page.
      const bar = page.locator(".lane", { has: page.locator("path.end.lost") }).locator("rect.hold");
      const widthPx = Number(await bar.getAttribute("width"));
      expect(widthPx).toBeGreaterThan(0);
      await page.reload();
      expect(Math.abs(Number(await bar.getAttribute("width")) - widthPx)).toBeLessThan(1);
    });

    it("counts its lease as lost before anybody sees that, at once on both views, and once", async () => {
      const [list, activity] = [await open("#/locks"), await open("#/activity")];
      await activity.getByRole("button", { name: "10m" }).click();
      const counts = async (): Promise<readonly (string | undefined)[]> => [
        /(\d+) leases? lost/.exec(await list.getByRole("list", { name: "Figures" }).innerText())?.[1],
        /^\d+/.exec(await activity.getByRole("region", { name: "Losses" }).locator(".figure").innerText())?.[0],
      ];
      await list.getByText("lost in the last 10 min").waitFor();
      const [before = ""] = await counts();
      await expect.poll(counts).toEqual([before, before]);
      await locks.acquire("UNSEEN_1", { leaseMs: 3000, heartbeat: false });
      const after = String(Number(before) + 1);
      await expect.poll(counts, { timeout: 30_000 }).toEqual([after, after]);
      expect(await activity.getByRole("row", { name: "UNSEEN_1" }).filter({ hasText: "lost" }).count()).toBe(0);
      // Now a line of the log tells it too.
      await (await locks.acquire("UNSEEN_1")).release();
      await activity.getByRole("row", { name: "UNSEEN_1" }).filter({ hasText: "lost" }).waitFor();
      expect(await counts()).toEqual([after, after]);
    });

    it("draws an interrupted run until its lease was over", async () => {
      const args = ["once", "DEAD_RUN", "--owner", "worker", "--lease", "3s", "--", "sh", "-c", "echo works; exec sleep 60"];
      const runner = startProcess(args, { HOLDFAST_URL: consoles.service.url });
      await runner.printed(/works/);
      runner.signal("SIGKILL");
      const page = await open("#/runs/DEAD_RUN");
      await page.locator(".title .chip", { hasText: "interrupted" }).waitFor();
      expect(await page.locator(".lane title").textContent()).toMatch(
        /^worker, (waited [^,]+, )?held \d+s, token \d+, attempt 1, lost: its lease ran out$/,
      );
      const facts = page.getByRole("region", { name: "State" });
      expect(await facts.innerText()).toMatch(
        new RegExp(
          String.raw`interrupted, ended at ${TIME} \([^)]+ ago\); start it again, unless something does by itself: that takes over`,
        ),
      );
      expect(await facts.innerText()).toMatch(/By\s+worker\b/);
      await page.goto(`${consoles.here}#/locks`);
      const looks = page.getByRole("region", { name: "Needs a look" });
      await looks.getByText("The run was interrupted.").waitFor();
      expect(await looks.innerText()).toMatch(
        /DEAD_RUN\s+The run was interrupted\.\s+Start it again, unless something does by itself: that takes over\. /,
      );
      await page.goto(`${consoles.here}#/runs`);
      const row = page.getByRole("row", { name: "DEAD_RUN" });
      await row.waitFor();
      expect(await row.textContent()).toMatch(
        /interrupted\s*ended at [\d:]+ \([^)]+ ago\); start it again, unless something does by itself: that takes over\. Until then it stays unfinished\s*1\s*–\s*–\s*worker$/,
      );
    });
  });

  it("says what happens next, and how alive the holder is, before it breaks a hold", async () => {
    await locks.acquire("NEXT_1", { owner: "checkout-12", leaseMs: 60_000, heartbeat: false });
    const waits = new AbortController();
    void locks
      .scope("a-scope-of-the-next")
      .acquire("NEXT_1", { owner: "checkout-13", waitMs: 10 * MINUTE_MS, signal: waits.signal })
      .catch(() => undefined);
    const page = await open("#/locks/NEXT_1", true);
    await page.getByLabel("Queue").getByText("checkout-13").waitFor();
    await page.getByRole("button", { name: "Break…" }).click();
    const dialog = page.getByRole("dialog", { name: "Break the hold on NEXT_1" });
    await dialog.getByText(/^checkout-12: not renewed yet: its lease is current\.$/).waitFor();
    const said = (await dialog.innerText()).replaceAll(/\s+/g, " ");
    expect(said).toMatch(/Safe: it can't renew, and nothing overlaps; checkout-13 gets the key in (1m|\d+s)( \d+s)? at the latest\./);
    expect(said).toContain("Now: checkout-13 gets the key at once.");
    expect(said).toMatch(/its lease is current\. token …?\d+ /);
    await dialog.getByText("Breaking ends the hold, not the work").waitFor();
    expect(await dialog.getByLabel("Type the key").count()).toBe(0);
    await dialog.getByLabel("Now:").check();
    await dialog.getByLabel("Reason").fill("stuck");
    const submit = dialog.getByRole("button", { name: "End it now" });
    expect(await submit.isDisabled()).toBe(true);
    expect(await faultsOf(page)).toEqual([]);
    await dialog.getByLabel("Type the key").fill("NEXT_1");
    expect(await submit.isDisabled()).toBe(false);
    await cut(page);
    await page.clock.runFor(10_000);
    await dialog.getByRole("alert").waitFor();
    expect(await submit.isDisabled()).toBe(true);
    await page.keyboard.press("Escape");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Break…");
    await page.keyboard.press("Enter");
    expect(await page.getByRole("dialog").count()).toBe(0);
    waits.abort();
  });

  describe("before it breaks one of several holds", () => {
    it.each<[string, AcquireOptions, AcquireOptions, string]>([
      ["a reader's, for which a writer waits", { mode: "shared" }, {}, "the key stays held by 2 others, and nobody who waits gets in"],
      [
        "a semaphore's, whose next waiter wants more permits",
        { limit: 3 },
        { limit: 3, permits: 3 },
        "2 of 3 permits stay out, and nobody who waits gets in",
      ],
    ])("says what stays, and that nobody gets in: %s", async (_, held, waited, stays) => {
      const key = `SEVERAL_${"limit" in held ? "permits" : "readers"}`;
      const owners = ["first", "second", "third"];
      for (const owner of owners)
        await locks.scope(`the scope of ${owner}`).acquire(key, { ...held, owner, leaseMs: 60_000, heartbeat: false });
      const waits = new AbortController();
      void locks
        .scope("the scope of who waits")
        .acquire(key, { ...waited, owner: "waits", waitMs: 10 * MINUTE_MS, signal: waits.signal })
        .catch(() => undefined);
      const page = await open(`#/locks/${key}`);
      await page.getByLabel("Queue").getByText("waits", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Break…" }).click();
      const dialog = page.getByRole("dialog");
      const said = async () => (await dialog.innerText()).replaceAll(/\s+/g, " ");
      for (const owner of owners) {
        await dialog.getByLabel(new RegExp(`^${owner}, token `)).check();
        await dialog.getByText(new RegExp(`^${owner}: not renewed `)).waitFor();
        expect(await said()).toMatch(
          new RegExp(String.raw`Safe: it can't renew, and nothing overlaps; its hold is over in [\dms ]+ at the latest: ${stays}\.`),
        );
        expect(await said()).toContain(`Now: its hold is over at once: ${stays}.`);
      }
      expect(await faultsOf(page)).toEqual([]);
      waits.abort();
    });
  });

  it("opens a long queue whole, and prints it whole", async () => {
    await using _lease = await locks.acquire("LONG_QUEUE");
    const page = await open("about:blank");
    const waiters = Array.from({ length: 30 }, (_, at) => {
      return { position: at + 1, owner: `checkout-${at + 1}`, mode: "exclusive", priority: 0, waitingMs: 5000, offered: false };
    });
    const view = { ...(await locks.inspect("LONG_QUEUE")), waiters };
    await page.route("**/console/api/lock?**", (route) => route.fulfill({ json: view }));
    await page.goto(`${consoles.here}#/locks/LONG_QUEUE`);
    const shown = (): Promise<number> => page.getByLabel("Places in the queue").getByRole("listitem").count();
    const more = page.getByRole("button", { name: "21 more" });
    await more.waitFor();
    expect(await shown()).toBe(9);
    await page.emulateMedia({ media: "print" });
    expect([await shown(), await more.isVisible()]).toEqual([30, false]);
    await page.emulateMedia({ media: "screen" });
    await more.click();
    expect(await shown()).toBe(30);
  });

  it("says which right a break needs that is denied", async () => {
    await using _lease = await locks.acquire("DENIED_1");
    const page = await open("#/locks/DENIED_1");
    const refusal = { code: "forbidden", message: "forceRelease DENIED_1: refused" };
    await page.route("**/console/api/break", (route) => route.fulfill({ status: 502, json: refusal }));
    await page.getByRole("button", { name: "Break…" }).click();
    await page.locator("dialog :focus").waitFor();
    await page.getByLabel("Reason").fill("stuck");
    await page.getByRole("button", { name: "Break it" }).click();
    expect(await page.getByRole("dialog").getByRole("alert").innerText()).toBe(
      "You may not do this: it needs grantAdmin, or one of the stack's adminScopes (locks:admin by default). Nothing was changed.",
    );
  });

  it("draws what began before the picture with a straight edge, and a hold as late from the time at which it became so", async () => {
    const holder = {
      owner: "old",
      mode: "exclusive",
      permits: 1,
      fencingToken: 7,
      heldMs: 5 * MINUTE_MS,
      remainingMs: 5000,
      leaseMs: 30_000,
    };
    const waiter = { owner: "patient", mode: "exclusive", permits: 1, priority: 0, position: 1, waitingMs: 4 * MINUTE_MS };
    const view = { key: "OLD", version: 1, mode: "exclusive", fencingToken: 7, holders: [holder], waiters: [waiter] };
    const none = () => Promise.resolve({ namespace: "default", items: [] });
    const health = () => locks.health();
    const operator = { health, inspect: () => Promise.resolve(view), list: none, runs: { list: none } } as unknown as Operator;
    const atMs = Date.now();
    const lines = new RecentLines(atMs - 9 * MINUTE_MS);
    const who = { namespace: "default", kind: "lock", model: "", id: "OLD", principal: "p", requestId: "r" } as const;
    lines.add({ ...who, event: "queued", operateAtMs: atMs - 4 * MINUTE_MS, owner: "patient", lease: "waits", position: 1 });
    const page = await consoles.open(`${await consoles.serve({ locks: operator, lines })}#/locks/OLD`);
    await page.locator(".lane rect.hold.late").waitFor();
    expect(await page.locator("rect.hold.cut").count()).toBe(1);
    const xOf = async (kind: string) => Number(await page.locator(`.lane rect.hold.${kind}`).first().getAttribute("x"));
    expect(await xOf("late")).toBeGreaterThan((await xOf("held")) + 50);
    const wait = page.locator(".lane rect.wait");
    expect([await wait.getAttribute("rx"), await page.locator(".lane line.wait").count()]).toEqual(["0", 0]);
    await page.getByRole("button", { name: "10m", exact: true }).click();
    await page.locator(".lane line.wait").waitFor({ state: "attached" });
    expect(await wait.getAttribute("rx")).toBe("2");
    expect(await page.locator("rect.hold.cut").count()).toBe(0);
    // The times of a day have no seconds, and a date where they are yesterday's.
    await page.getByRole("button", { name: "1d", exact: true }).click();
    const short = /^(?:[A-Z][a-z]{2} \d+, )?\d\d:00$/;
    await page.locator(".axis text", { hasText: short }).first().waitFor();
    const signs = page.locator(".legend li").filter({ has: page.locator("path.moment") });
    expect(await signs.allTextContents()).toEqual(["offered or changed", "break began", "outcome recorded"]);
    await page.getByText("renewed, since this page was opened").waitFor();
  });

  it("opens on all that is known where the last lease ended before the latest minute", async () => {
    const atMs = Date.now();
    const lines = new RecentLines(atMs - 9 * MINUTE_MS);
    const who = {
      namespace: "default",
      kind: "lock",
      model: "",
      id: "IDLE",
      principal: "p",
      requestId: "r",
      owner: "early",
      lease: "1",
    } as const;
    lines.add({ ...who, event: "granted", operateAtMs: atMs - 5 * MINUTE_MS, fencingToken: 1 });
    lines.add({ ...who, event: "ended", operateAtMs: atMs - 4 * MINUTE_MS, fencingToken: 1, heldMs: MINUTE_MS, reason: "released" });
    const page = await consoles.open(`${await consoles.serve({ lines })}#/locks/IDLE`);
    await page.locator(".lane rect.hold.held").waitFor();
    expect(await page.locator(".spans button[aria-pressed=true]").textContent()).toBe("all");
    expect(await page.locator(".lane title").textContent()).toBe("early, held 1m, token 1, released");
    await page.getByRole("button", { name: "1m", exact: true }).click();
    await page.getByText("the log has no lease of this time").waitFor();
  });

  it("claims nothing without a log: it says where the history is, and draws what the query finds", async () => {
    await (await locks.acquire("FAR_1")).release();
    const atMs = Date.now() - 20_000;
    const line = { key: "FAR_1", kind: "lock", lease: "l", owner: "far" } as const;
    const asked: string[] = [];
    const deployedLog = {
      logGroup: "shop-log",
      linesOf: (key: string, query: string) => {
        asked.push(key, query);
        const granted = { ...line, seq: 0, event: "granted", atMs, fencingToken: 1 } as const;
        return Promise.resolve([
          granted,
          { ...line, seq: 1, event: "ended", atMs: atMs + 5000, heldMs: 5000, reason: "released" } as const,
        ]);
      },
    };
    const far = await consoles.serve({ where: "abc.example", canChange: false, deployedLog, cliOptions: "--url https://abc.example" });
    const page = await consoles.open(`${far}#/locks/FAR_1`);
    await page.getByText("This key's history is in CloudWatch Logs.").waitFor();
    await page.getByText("this page saw no lease in this time").waitFor();
    expect(await page.locator("main").textContent()).not.toMatch(/nothing happened|No events yet/);
    await page.getByRole("button", { name: "Read the last hour" }).click();
    await page.getByRole("row", { name: /released far held 5s/ }).waitFor();
    expect(await page.locator(".lane title").textContent()).toBe("far, held 5s, token 1, released");
    expect(asked).toEqual(["FAR_1", expect.stringContaining('model = "FAR" and id = "1"')]);
    expect(await faultsOf(page)).toEqual([]);
    const lease = await locks.acquire("FAR_1");
    await page.getByText(`holdfast --url https://abc.example break FAR_1 --token ${lease.fencingToken} --reason "…"`).waitFor();
    await lease.release();
  });

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
      expect(sentence).toMatch(
        new RegExp(
          String.raw`^At ${TIME}: held by checkout-7 since ${TIME} \([^)]+\), (not renewed yet: its lease is current|renewed \S+ ago)\. Not known since\.$`,
        ),
      );
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
      const lanes = await page.locator(".lane title").allTextContents();
      expect(lanes).toEqual([
        expect.stringMatching(new RegExp(`^checkout-7, (waited [^,]+, )?held \\S+( \\S+)? so far, token ${lease.fencingToken}$`)),
      ]);
      await lease.release();
    });
  });
});
