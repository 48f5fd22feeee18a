/** A look of the console takes a bounded number of requests, which end with their reader. */
import { once } from "node:events";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { KeyView, ListData, LocksData } from "../../console/data.js";
import { type Operator, handlersOf, READ_REQUESTS } from "../../console/handlers.js";
import { RecentLines } from "../../console/recent-lines.js";
import { consoleOf } from "../../console/server.js";
import type { LogLine } from "../../lib/dynamodb.js";
import { createLocalServer } from "../../infra/local/local-server.js";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Query {
  readonly cursor?: string;
  readonly prefix?: string;
}

const held = (key: string): KeyView => ({ key, version: 1, mode: "exclusive", fencingToken: 1, holders: [], waiters: [] });

/** A service on whose table all keys are idle: each page is empty, and the next cursor is a number. */
function idle(pages = Infinity) {
  const asked: Query[] = [];
  const list = async (query: Query) => {
    asked.push(query);
    const next = Number(query.cursor ?? 0) + 1;
    return { items: [], ...(next < pages && { cursor: String(next) }), namespace: "default" };
  };
  const locks = { list, runs: { list } } as unknown as Operator;
  return { asked, locks };
}

const never = new AbortController().signal;
const look = async (locks: Operator, path: "locks" | "runs" | "exhausted", query: Record<string, string> = {}, signal = never) =>
  (await handlersOf({ locks, where: "here", canChange: false, pollMs: 1000 }).answers[path]?.(
    new URLSearchParams(query),
    signal,
  )) as ListData<KeyView>;

const PATHS = ["locks", "runs", "exhausted"] as const;

describe("a look", () => {
  it.each(PATHS)("at %s of a table full of idle keys is bounded, and says that not all were looked at", async (path) => {
    const { asked, locks } = idle();
    const seen = await look(locks, path);
    expect(asked).toHaveLength(READ_REQUESTS);
    expect(seen).toMatchObject({ items: [], more: true, requests: READ_REQUESTS });
  });

  it.each(["locks", "runs"] as const)(
    "at %s is followed by one that reads on, in twice as many requests; then somebody has to ask",
    async (path) => {
      const { locks } = idle();
      const bounds = [await look(locks, path), await look(locks, path, { on: "1" })].map(({ requests, readsOn }) => [requests, readsOn]);
      expect(bounds).toEqual([
        [READ_REQUESTS, true],
        [2 * READ_REQUESTS, false],
      ]);
      expect(await look(idle(3).locks, path)).toMatchObject({ more: false, readsOn: false });
    },
  );

  it("that is bounded asks once more for the keys that begin with the search, if a key may begin so", async () => {
    const { asked, locks } = idle();
    expect(await look(locks, "locks", { find: " ORDER_1 " })).toMatchObject({ requests: READ_REQUESTS + 1 });
    expect(asked.map(({ prefix }) => prefix)).toEqual([...Array<undefined>(READ_REQUESTS), "ORDER_1"]);
    expect(await look(locks, "locks", { find: "no key" })).toMatchObject({ requests: READ_REQUESTS });
  });

  it("that begins with the search has a key once, and counts as read those alone that the order is of", async () => {
    const [near, far] = [held("ORDER_1"), held("ORDER_2")];
    const list = ({ prefix, cursor }: Query) =>
      Promise.resolve(prefix === undefined ? { items: cursor === undefined ? [near] : [], cursor: "on" } : { items: [near, far] });
    const { items, read, more } = await look({ list } as never, "locks", { find: "ORDER_" });
    expect([items.map(({ key }) => key), read, more]).toEqual([["ORDER_1", "ORDER_2"], 1, true]);
  });

  it.each(["locks", "runs"] as const)("at %s reads on for as long as there are keys, if all are asked for", async (path) => {
    const pages = 3 * READ_REQUESTS;
    const { asked, locks } = idle(pages);
    expect(await look(locks, path, { all: "1" })).toMatchObject({ more: false, requests: pages });
    expect(asked).toHaveLength(pages);
  });

  it("at a service in this process reads everything, and its requests are free", async () => {
    const pages = 3 * READ_REQUESTS;
    const { asked, locks } = idle(pages);
    const face = handlersOf({ locks, where: "here", canChange: false, pollMs: 1000, lines: new RecentLines(0) });
    expect(await face.answers["locks"]?.(new URLSearchParams(), never)).toEqual(
      expect.not.objectContaining({ requests: expect.anything() as unknown }),
    );
    expect(asked).toHaveLength(pages);
  });

  it("that fills its rows says how many there are", async () => {
    const list = () => Promise.resolve({ items: [held("a"), held("b")] });
    const seen = await look({ list } as never, "locks", { max: "1" });
    expect(seen).toMatchObject({ items: [{ key: "a" }], fits: 2, read: 2, more: false, requests: 1 });
  });

  it("at runs that need one has the interrupted ones, and the error of the first few out of attempts, by a request each; not what was reset meanwhile", async () => {
    const run = (name: string, attempt = 5) => ({ key: name, state: "failed", retryable: true, attempt, fencingToken: 1, version: 1 });
    const items = [run("once", 1), ...["a", "b", "c", "d", "e", "f"].map((name) => run(name))];
    const states: unknown[] = [];
    const lists: Readonly<Record<string, readonly unknown[]>> = { failed: items, interrupted: [{ ...run("cut"), state: "interrupted" }] };
    const list = ({ state = "" }: { readonly state?: string }) => (states.push(state), Promise.resolve({ items: lists[state] }));
    const get = (name: string) => Promise.resolve(name === "b" ? null : { ...run(name), error: new Error(`${name} is down`) });
    const seen = await look({ runs: { list, get } } as never, "exhausted");
    const errors = (seen.items as readonly { key: string; error?: string }[]).map(({ key, error }) => [key, error?.includes("is down")]);
    expect(errors).toEqual([
      ["a", true],
      ["c", true],
      ["d", true],
      ["e", true],
      ["f", undefined],
    ]);
    expect(seen).toMatchObject({ interrupted: [{ key: "cut" }], isPart: false });
    expect([states, seen.requests]).toEqual([["failed", "interrupted"], 7]);
  });
});

describe("a reader who goes", () => {
  it("ends the look: a closed connection sends no further request", async () => {
    const asked: Query[] = [];
    let answer = (): void => undefined;
    let second = (): void => undefined;
    const isAskedAgain = new Promise<void>((resolve) => (second = resolve));
    const list = (query: Query) => {
      asked.push(query);
      if (asked.length === 2) second();
      return new Promise((resolve) => (answer = () => resolve({ items: [], cursor: "next" })));
    };
    const page = consoleOf({ locks: { list } as never, where: "here", canChange: false, pollMs: 1000 });
    const server = createLocalServer((incoming, response) => {
      response.on("close", () => server.emit("gone"));
      page(incoming, response);
    }).listen(0, "127.0.0.1");
    closing.push(() => server.close());
    await once(server, "listening");
    const reader = request({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, path: "/console/api/locks" });
    reader.on("error", () => undefined).end();
    await once(server, "request");
    answer();
    await isAskedAgain;
    const gone = once(server, "gone");
    reader.destroy();
    await gone;
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toHaveLength(2);
  });
});

describe("a lease that ran out, and that no line of the log ends", () => {
  const HOUR_MS = 3_600_000;
  const granted = (lease: string, fencingToken: number): LogLine => ({
    event: "granted",
    kind: "lock",
    namespace: "default",
    model: "",
    id: `key of ${lease}`,
    lease,
    fencingToken,
    owner: "",
    principal: "",
    operateAtMs: 0,
    requestId: "",
  });

  /** A service with a log, whose keys are held, or over for so long, or neither. */
  function service(states: Readonly<Record<string, "held" | "gone" | number>>) {
    const lines = new RecentLines(0);
    const tokens = Object.keys(states);
    for (const [at, lease] of tokens.entries()) lines.add(granted(lease, at + 1));
    const view = (lease: string): KeyView => {
      const fencingToken = tokens.indexOf(lease) + 1;
      const state = states[lease];
      const hold = { owner: "", mode: "exclusive", permits: 1, fencingToken, heldMs: 1, remainingMs: 1, leaseMs: 2 } as const;
      const lapsed = typeof state === "number" ? [{ owner: "", fencingToken, heldMs: 1, endedAgoMs: state }] : [];
      return { ...held(`key of ${lease}`), holders: state === "held" ? [hold] : [], lapsed };
    };
    const asked: string[] = [];
    const locks = {
      list: () => Promise.resolve({ namespace: "default", items: tokens.filter((lease) => states[lease] === "held").map(view) }),
      inspect: (key: string) => {
        asked.push(key);
        return Promise.resolve(view(key.slice("key of ".length)));
      },
    } as unknown as Operator;
    const { answers } = handlersOf({ locks, where: "here", canChange: false, pollMs: 1000, lines });
    const ranOut = async () => {
      const { figures } = (await answers["locks"]?.(new URLSearchParams(), never)) as LocksData;
      return figures.ranOut?.map(({ lease }) => lease);
    };
    return { lines, asked, ranOut };
  }

  it("is told as soon as that is past, for a day, and its key is looked at once", async () => {
    const { asked, ranOut } = service({ a: "held", b: 1, c: 23 * HOUR_MS, d: 25 * HOUR_MS, e: "gone" });
    expect([await ranOut(), await ranOut()]).toEqual([
      ["b", "c"],
      ["b", "c"],
    ]);
    expect(asked.toSorted()).toEqual(["b", "c", "d", "e"].map((lease) => `key of ${lease}`));
  });

  it("is not told beside the line that ends it", async () => {
    const { lines, ranOut } = service({ b: 1 });
    expect(await ranOut()).toEqual(["b"]);
    lines.add({ ...granted("b", 1), event: "ended", reason: "taken", heldMs: 2 });
    expect(await ranOut()).toEqual([]);
  });
});
