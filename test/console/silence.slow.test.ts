/** The views of the console while its server is killed, hung or slow: each says what was known, and of when, and concludes nothing. */
import type { Page, Route } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Operator } from "../../console/handlers.js";
import { PROBLEM_TYPE, toProblem } from "../../lib/contract/problem.js";
import { type ErrorCode, ERRORS, refuse } from "../../lib/core/errors.js";
import { createLockClient } from "../../lib/index.js";
import { type Scripted, startStubServer } from "../client/transport/stub-server.js";
import { faultsOf } from "../support/axe.js";
import { CHROMIUM } from "../support/chromium.js";
import { type Consoles, startConsoles, TIME } from "./in-chromium.js";

/** The states of the service, by what becomes of each request. */
const STATES = {
  killed: (route: Route) => route.abort(),
  hung: () => undefined,
} as const;

const HOUR_MS = 3_600_000;
const refusal = (code: string, status?: number) => ({ status: 502, json: { code, message: "no", status } });

/** Answers that may come from the address of a deployed service, by its gateway, and the state in the header. */
const DOWN: readonly (readonly [name: string, answer: Scripted, state: string])[] = [
  ["500", { status: 500, body: { message: "Internal Server Error" } }, "failing (500)"],
  ["504", { status: 504, body: { message: "Endpoint request timed out" } }, "failing (504)"],
  ["503 of the service itself", problemOf("unavailable"), "failing (503)"],
  ["500 of the service itself", problemOf("internal"), "failing (500)"],
  ["429 of the service itself", problemOf("throttled"), "throttled (429)"],
  ["401", { status: 401, body: { message: "Unauthorized" } }, "not accepted, or not set up (401)"],
  ["a connection that broke", { status: "broken" }, "no answer"],
  ["silence", { status: "silent" }, "no answer"],
];

function problemOf(code: ErrorCode): Scripted {
  return { status: ERRORS[code].status, headers: { "content-type": PROBLEM_TYPE }, body: toProblem(refuse(code), undefined) };
}

const AT = `At ${TIME}`;
const LAST = "The last answer had no row.";
/** Each view, what tells that its data are there, and the sentence of each state. */
const VIEWS: readonly (readonly [hash: string, there: RegExp, sentence: RegExp])[] = [
  ["#/locks/HELD", /Held by checkout-7 since/, new RegExp(`${AT}: held by checkout-7 since .*; checkout-8 waits. Not known since.`)],
  ["#/locks/GATE", /All 2 permits are out/, new RegExp(`${AT}: all 2 permits are out; 2 wait, next checkout-7. Not known since.`)],
  ["#/locks/NEVER", /Free; no holder is on record/, new RegExp(`${AT}: free; no holder is on record. Not known since.`)],
  ["#/locks?find=HELD", /1 of \d+ held keys/, /What is shown is of/],
  ["#/locks?find=NONE", /No held key fits/, new RegExp(LAST)],
  ["#/runs/NEVER", /This key has no run/, /By the last answer, this key had no run/],
  ["#/runs/DONE", /Result/, /What is shown is of/],
  ["#/runs?find=NONE", /No run fits/, new RegExp(LAST)],
  ["#/limits", /All 2 permits are out; 2 wait/, /What is shown is of/],
  ["#/limits/GATE", /All 2 permits are out/, new RegExp(`${AT}: all 2 permits are out; 2 wait. Not known since.`)],
  ["#/limits/NEVER", /Not in use/, new RegExp(`${AT}: not in use`)],
  ["#/runs/TICK", /In 7d: 1 done/, new RegExp(`${AT}: 1 done. Not known since.`)],
  ["#/limits?find=NONE", /No limit that was read fits/, new RegExp(LAST)],
  ["#/activity", /granted/, /What is shown is of/],
];
/** The statements that need an answer. */
const CONCLUDED = /Nobody (waits|holds)|No (held key|run|limit|key)|Free[;.]|lease over|may be dead|It never ran/;

describe.skipIf(CHROMIUM === undefined)(
  "a console without an answer (skipped without a Chromium on the path)",
  { timeout: 240_000 },
  () => {
    let consoles: Consoles;
    const wait = (key: string, owner: string, limit?: number): void =>
      void consoles.locks
        .scope(`of ${key} ${owner}`)
        .acquire(key, { owner, limit, waitMs: 600_000 })
        .catch(() => undefined);

    beforeAll(async () => {
      consoles = await startConsoles("checkout-7");
      const { locks } = consoles;
      // Each renews all along. A lease of the default length outlasts a machine that stands still for some seconds.
      await locks.acquire("HELD");
      await locks.acquire("GATE", { limit: 2, permits: 2 });
      wait("HELD", "checkout-8");
      wait("GATE", "checkout-7", 2);
      while ((await locks.inspect("GATE")).waiters.length < 1);
      wait("GATE", "checkout-8", 2);
      while ((await locks.inspect("GATE")).waiters.length < 2);
      await locks.runOnce("DONE", () => 1);
      await locks.tick("TICK", { occurrence: new Date() }, () => 1);
      await locks.runOnce("RESET", () => 1);
      await locks.runs.reset("RESET", { reason: "the source was wrong" });
    });
    afterEach(() => consoles.closePages());
    afterAll(() => consoles.close());

    const headerOf = async (page: Page): Promise<string> => (await page.locator(".light").innerText()).replaceAll(/\s+/g, " ");

    describe.each(Object.entries(STATES))("whose server is %s", (_, answer) => {
      it.each(VIEWS)("says at %s what was so, and that nobody answers", async (hash, there, sentence) => {
        const page = await consoles.open(consoles.here + hash, { turnsClock: true });
        await page.locator("main").getByText(there).first().waitFor();
        // The header looks at the polls once a second.
        await page.clock.runFor(1000);
        expect(await headerOf(page)).toMatch(/^live answered \S+ ago$/);
        await page.route("**/console/api/**", answer);
        await page.clock.runFor(12_000);
        await page.locator(".light.over").waitFor();
        expect(await headerOf(page)).toMatch(/^no answer for \d+s$/);
        const said = await page.locator("main").innerText();
        expect(said).toMatch(sentence);
        expect(said).not.toMatch(CONCLUDED);
        expect(await page.locator(".lane :is(rect.hold.late, rect.hold.over, rect.hold.lost)").count()).toBe(0);
        expect(await faultsOf(page)).toEqual([]);
      });
    });

    it.each<[string, Parameters<Route["fulfill"]>[0], string, string]>([
      ["401", refusal("not-configured", 401), "not accepted, or not set up (401)", "The service does not accept these credentials"],
      ["403", refusal("forbidden", 403), "not allowed (403)", "You may not read this"],
      ["429", refusal("throttled", 429), "throttled (429)", "Too many requests"],
      ["503", refusal("unavailable", 503), "failing (503)", "The service or its table does not answer"],
      ["a page", { status: 200, contentType: "text/html", body: "<p>Hello</p>" }, "no answer of holdfast", "This is no answer of holdfast"],
    ])("is red at once after %s, and says what came", async (_, answer, state, title) => {
      const page = await consoles.open(`${consoles.here}#/locks`);
      await page.getByText("held keys").first().waitFor();
      await page.route("**/console/api/locks?**", (route) => route.fulfill(answer));
      await page.locator(".light.over").getByText(state, { exact: true }).waitFor();
      const notice = await page.getByRole("alert").innerText();
      expect(notice).toContain(title);
      expect(notice).not.toContain("under way");
      expect(await page.locator(".light.held").count()).toBe(0);
    });

    it.each(DOWN)("behind a client tells %s by what came, and no code that nobody answered with", async (_, answer, state) => {
      const stub = await startStubServer();
      stub.answer(answer);
      let isDown = false;
      const { url } = consoles.service;
      const locks = createLockClient({
        url,
        retryReads: false,
        fetch: (input, init) => fetch(isDown ? (input as string).replace(url, stub.url) : input, init),
      });
      const page = await consoles.open(`${await consoles.serve({ locks })}#/locks`);
      await page.getByText("held keys").first().waitFor();
      isDown = true;
      await page
        .getByRole("alert")
        .getByText(/^(The service|Too many|This could not)/)
        .waitFor();
      // The header looks at the polls once a second.
      await expect.poll(() => headerOf(page)).toMatch(/^[^l].* for /);
      expect((await headerOf(page)).replace(/ for .*$/, "")).toBe(state);
      await locks.close();
      await stub.close();
    });

    it("is amber after one missed answer", async () => {
      const page = await consoles.open(`${consoles.here}#/locks/HELD`, { turnsClock: true });
      await page.getByText("Held by checkout-7 since").waitFor();
      await page.route("**/console/api/**", STATES.hung);
      await page.clock.runFor(1500);
      await page.locator(".light.late").getByText("no answer yet").waitFor();
    });

    it("is green for one missed interval and a fixed time, however many requests the look took", async () => {
      const list = (query: { readonly cursor?: string }) =>
        Promise.resolve({ namespace: "default", items: [], cursor: String(Number(query.cursor ?? 0) + 1) });
      let turnedMs = 0;
      // The service's clock goes as the page's does.
      const health = () => Promise.resolve({ version: "0.1.0", serverTimeMs: Date.now() + turnedMs });
      const locks = { health, list, runs: { list } } as unknown as Operator;
      const page = await consoles.open("about:blank", { turnsClock: true });
      const asked: Route[] = [];
      await page.route("**/console/api/locks?**", (route) => void asked.push(route));
      await page.goto(`${await consoles.serve({ locks, pollMs: 5000 })}#/locks`);
      // The second look reads on, in 20 requests.
      await expect.poll(() => asked.length).toBe(1);
      await asked[0]?.continue();
      await expect.poll(() => asked.length).toBe(2);
      await asked[1]?.continue();
      await page.getByRole("button", { name: "Read all" }).waitFor();
      const told = new Set<string>();
      while (asked.length < 3) {
        turnedMs += 1000;
        await page.clock.runFor(1000);
        told.add(await headerOf(page));
      }
      const live = [...told].filter((one) => one.startsWith("live"));
      expect(live).toContainEqual(expect.stringMatching(/^live answered [5-9]s ago$/));
      expect(live.filter((one) => !/^live answered (\d|10|<1)s ago$/.test(one))).toEqual([]);
      expect([...told]).toContainEqual(expect.stringMatching(/^resting answered 2\ds ago, asks in 1m 1\ds$/));
      // The third look is under way.
      await page.clock.runFor(1000);
      await expect.poll(() => headerOf(page)).toMatch(/^asking answered 1m 4\ds ago$/);
    });

    it("takes the service's time where the browser's clock is an hour ahead, and says so", async () => {
      await consoles.locks.withLock("CLOCK", () => undefined);
      const page = await consoles.open("about:blank");
      await page.clock.install({ time: Date.now() + HOUR_MS });
      await page.goto(`${consoles.here}#/locks/CLOCK`);
      await page.getByText(new RegExp(String.raw`^Free since ${TIME} \((<1s|\d+s)\): checkout-7 released it\.$`)).waitFor();
      await page.getByText(/^this device's clock is (1h|59m \d+s) ahead: times are the service's$/).waitFor();
    });

    it("paints what was known, and hatches the rest", async () => {
      const page = await consoles.open(`${consoles.here}#/locks/HELD`, { turnsClock: true });
      await page.getByText("Held by checkout-7 since").waitFor();
      expect(await page.locator(".lane rect.unknown").count()).toBe(0);
      await page.route("**/console/api/**", STATES.hung);
      await page.clock.runFor(12_000);
      await page.locator(".lane rect.unknown").first().waitFor();
      expect(await page.locator(".lane rect.hold.held:not(.cut)").count()).toBe(1);
      await page.getByLabel("Queue").getByText("not known since").waitFor();
    });

    it("concludes nothing about a short lease between two answers of a slow service", async () => {
      await consoles.locks.acquire("SHORT", { leaseMs: 3000 });
      wait("SHORT", "checkout-8");
      while ((await consoles.locks.inspect("SHORT")).waiters.length < 1);
      const page = await consoles.open(`${consoles.here}#/locks/SHORT`, { turnsClock: true });
      await page.getByText("Held by checkout-7 since").waitFor();
      await page.route("**/console/api/**", STATES.hung);
      await page.clock.runFor(2500);
      await page.locator(".title .chip", { hasText: "held" }).waitFor();
      expect(await page.locator("main").innerText()).not.toMatch(CONCLUDED);
    });

    it("that never got one says so too, and isn't live", async () => {
      const page = await consoles.open("about:blank", { turnsClock: true });
      await page.route("**/console/api/**", STATES.hung);
      await page.goto(`${consoles.here}#/locks`);
      await page.getByText("asking").waitFor();
      await page.clock.runFor(40_000);
      await page.getByText(/^no answer$/).waitFor();
      expect(await page.locator(".light.held").count()).toBe(0);
    });

    it("says of a reset run that it was reset, and why", async () => {
      const page = await consoles.open(`${consoles.here}#/runs/RESET`);
      await page.getByText(/^It was reset at [\d:]+: the source was wrong\. The next start is a first attempt\.$/).waitFor();
    });
  },
);
