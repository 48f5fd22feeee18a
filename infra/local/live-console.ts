/**
 * The console of services that follow each other, as those of the tour's scenes do: one page at one address. Between two services it waits
 * for the next. It only reads, so nobody can change what a scene proves.
 */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Operator } from "../../console/handlers.js";
import { RecentLines } from "../../console/recent-lines.js";
import { CONSOLE_PATH, consoleOf } from "../../console/server.js";
import type { LogLine } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import { createLocalServer } from "./local-server.js";

export interface LiveConsole {
  /** The address of the page. */
  readonly url: string;
  /** Keeps a line of a service's log. */
  log(line: LogLine): void;
  /** Shows the service at `url` until the returned function is called. */
  show(url: string): () => Promise<void>;
  close(): void;
}

const HOST = "127.0.0.1";
/** The port, if it is free: a tab that is open already then shows the next tour too. */
const PORT = 4673;
const POLL_MS = 1000;

/** Serves the page. */
export async function openLiveConsole(): Promise<LiveConsole> {
  const lines = new RecentLines(Date.now());
  const shown = slot<LockClient>();
  /** Asks the service that is shown; if it is shown no more by then, the next one. */
  const ask = async <T>(question: (locks: LockClient) => Promise<T>): Promise<T> => {
    for (;;) {
      const locks = await shown.filled();
      try {
        return await question(locks);
      } catch (error) {
        if (shown.has(locks)) throw error;
      }
    }
  };
  const locks: Operator = {
    health: () => ask((now) => now.health()),
    list: (query) => ask((now) => now.list(query)),
    inspect: (key) => ask((now) => now.inspect(key)),
    forceRelease: (key, options) => ask((now) => now.forceRelease(key, options)),
    limits: {
      list: (query) => ask((now) => now.limits.list(query)),
      reset: (name, options) => ask((now) => now.limits.reset(name, options)),
    },
    runs: {
      get: (key) => ask((now) => now.runs.get(key)),
      list: (query) => ask((now) => now.runs.list(query)),
      reset: (key, options) => ask((now) => now.runs.reset(key, options)),
    },
  };
  const page = consoleOf({ locks, where: "the tour", canChange: false, pollMs: POLL_MS, lines });
  const server = createLocalServer((request, response) => {
    if (!page(request, response)) response.writeHead(404).end();
  });
  await listening(server.listen(PORT, HOST)).catch(() => listening(server.listen(0, HOST)));
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}${CONSOLE_PATH}`,
    log: (line) => lines.add(line),
    show(url) {
      const client = createLockClient({ url, owner: "console", retryReads: false });
      shown.fill(client);
      return () => {
        shown.empty();
        return client.close();
      };
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function listening(server: Server): Promise<void> {
  await once(server, "listening");
}

/** A place for one thing. Who asks for it while it is empty waits. */
function slot<T>() {
  let content: T | undefined;
  const waiting: (() => void)[] = [];
  return {
    has: (thing: T): boolean => content === thing,
    fill(thing: T): void {
      content = thing;
      for (const wake of waiting.splice(0)) wake();
    },
    empty: (): void => void (content = undefined),
    async filled(): Promise<T> {
      while (content === undefined) await new Promise<void>((resolve) => void waiting.push(resolve));
      return content;
    },
  };
}
