/** The console in a real Chromium, before a live service. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { RecentLines } from "../../console/recent-lines.js";
import { type ConsoleOptions, consoleOf } from "../../console/server.js";
import type { Gateway } from "../../infra/local/gateway.js";
import { createLocalServer } from "../../infra/local/local-server.js";
import { startLocalService } from "../../infra/local/local-service.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import { startChromium } from "../support/chromium.js";

/** The browser and the service. */
export interface Consoles {
  readonly service: Gateway;
  readonly locks: LockClient;
  /** The address of the service's own console, which has its log and may change things. */
  readonly here: string;
  /** Serves another console, and returns its address. */
  serve(options: Partial<ConsoleOptions>): Promise<string>;
  /** Opens an address, on a clock that the test turns if it says so. A page that throws fails the test. */
  open(address: string, options?: PageOptions): Promise<Page>;
  closePages(): Promise<void>;
  close(): Promise<void>;
}

export type PageOptions = NonNullable<Parameters<Browser["newPage"]>[0]> & {
  readonly turnsClock?: boolean;
  /** A script that runs before the page's own. */
  readonly script?: string;
};

/** Starts both. `owner` is the client's. */
export async function startConsoles(owner: string): Promise<Consoles> {
  const browser = await startChromium();
  const lines = new RecentLines(Date.now());
  const service = await startLocalService({ ports: [0], log: (line) => lines.add(line), onFailure: () => undefined });
  const locks = createLockClient({ url: service.url, owner });
  service.mount(consoleOf({ locks, where: "here", canChange: true, pollMs: 1000, lines }));
  const pages: Page[] = [];
  const servers: Server[] = [];
  return {
    service,
    locks,
    here: `${service.url}/console`,
    async serve(options) {
      const one = consoleOf({ locks, where: "here", canChange: true, pollMs: 1000, ...options });
      const server = createLocalServer((request, response) => void one(request, response)).listen(0, "127.0.0.1");
      servers.push(server);
      await once(server, "listening");
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/console`;
    },
    async open(address, { turnsClock = false, script, ...options } = {}) {
      const page = await browser.newPage(options);
      pages.push(page);
      page.on("pageerror", (error) => expect.fail(`the page threw ${error.message}`));
      page.setDefaultTimeout(60_000);
      if (turnsClock) await page.clock.install();
      if (script !== undefined) await page.addInitScript(script);
      await page.goto(address);
      return page;
    },
    async closePages() {
      for (const page of pages.splice(0)) await page.close();
    },
    async close() {
      for (const server of servers) server.close().closeAllConnections();
      await browser.close();
      await locks.close();
      await service.close();
    },
  };
}

/** A time as the page tells it: with its date if that is not today's, as around midnight. */
export const TIME = String.raw`(?:[A-Z][a-z]+ \d+, (?:\d+, )?)?\d\d:\d\d:\d\d`;

/** Stands for a console whose server was stopped. */
export const cut = (page: Page): Promise<unknown> => page.route("**/console/api/**", (route) => route.abort());
