/** A look of the console takes a bounded number of requests, which end with their reader. */
import { once } from "node:events";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { KeyView, Listed } from "../../bin/console/data.js";
import type { Operator } from "../../bin/console/face.js";
import { faceOf, LOOK_REQUESTS } from "../../bin/console/face.js";
import { poll } from "../../bin/console/page/poll.js";
import { consoleOf } from "../../bin/console/server.js";
import { createLocalServer } from "../../infra/local/local-server.js";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Query {
  readonly cursor?: string;
  readonly owner?: string;
}

/** A service on whose table all keys are idle, or held by others than who is asked for: each page is empty, and the next cursor is a number. */
function idle() {
  const asked: Query[] = [];
  const list = async (query: Query) => {
    asked.push(query);
    return { items: [], cursor: String(Number(query.cursor ?? 0) + 1), namespace: "default" };
  };
  const locks = { list, runs: { list } } as unknown as Operator;
  return { asked, locks };
}

const never = new AbortController().signal;
const look = async (locks: Operator, path: "locks" | "runs", query: Record<string, string> = {}, signal = never) =>
  (await faceOf({ locks, where: "here", canChange: false, pollMs: 1000 }).answers[path]?.(
    new URLSearchParams(query),
    signal,
  )) as Listed<KeyView>;

describe("a look", () => {
  it.each(["locks", "runs"] as const)(
    "at %s of a table full of idle keys is bounded, and says that not all were looked at",
    async (path) => {
      const { asked, locks } = idle();
      const seen = await look(locks, path, { owner: "nobody" });
      expect(asked).toHaveLength(LOOK_REQUESTS);
      expect(seen).toMatchObject({ items: [], more: true, unreadFrom: String(LOOK_REQUESTS), requests: LOOK_REQUESTS });
    },
  );

  it.each(["locks", "runs"] as const)("at %s goes on from where the last one ended", async (path) => {
    const { asked, locks } = idle();
    const seen = await look(locks, path, { from: "7" });
    expect(asked[0]).toMatchObject({ cursor: "7" });
    expect(seen.unreadFrom).toBe(String(7 + LOOK_REQUESTS));
  });

  it("that reads to the end of the table, or fills its rows, left nothing out", async () => {
    const held = (cursor?: string) => ({ list: () => Promise.resolve({ items: [{ key: "a" }], ...(cursor !== undefined && { cursor }) }) });
    expect(await look(held() as never, "locks")).toEqual({ items: [{ key: "a" }], more: false, requests: 1 });
    expect(await look(held("a") as never, "locks", { max: "1" })).toEqual({ items: [{ key: "a" }], more: true, requests: 1 });
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

  it("ends it in the page too: a poll that stops aborts what it asked", async () => {
    const { asked, locks } = idle();
    const signals: AbortSignal[] = [];
    const running = poll({
      ask: (signal) => {
        signals.push(signal);
        return look(locks, "locks", {}, signal);
      },
      tell: () => expect.fail("nobody listens any more"),
      everyMs: 1000,
      isIdle: () => false,
      later: () => () => undefined,
    });
    running.stop();
    await new Promise((resolve) => setImmediate(resolve));
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(asked).toHaveLength(1);
  });
});

describe("the next look", () => {
  it.each([1, 4, LOOK_REQUESTS])("comes after as many intervals as the last one took requests: %i", async (requests) => {
    const pauses: number[] = [];
    const running = poll({
      ask: () => Promise.resolve({ requests }),
      tell: () => undefined,
      everyMs: 5000,
      isIdle: () => false,
      later(ms) {
        pauses.push(ms);
        return () => undefined;
      },
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(pauses).toEqual([5000 * requests]);
    running.stop();
  });
});
