/**
 * The ownership of a place in the queue: requests by strangers, with other parameters, by sets and in scopes, and ids
 * that are refused for good.
 */
import { describe, expect, it } from "vitest";
import type { Acquire } from "../../lib/core/commands.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { ID, IN_S, permits } from "./kinds-key.js";
import { QueueKey, queueOf } from "./queue-key.js";

const { offerWindowMs: WINDOW_MS } = DEFAULTS;

describe("nobody else", () => {
  const everything = (key: QueueKey, letter: string) => {
    const stranger = key.by("Q", letter);
    return [key.ask(letter, { principal: "Q" }), key.acquire(letter, { principal: "Q" }), stranger.check(), stranger.release()];
  };

  it.each(["waits", "is offered the key"])("asks for, looks at or takes away the place of who %s", (where) => {
    const key = queueOf("BC");
    if (where !== "waits") key.release("A");
    const { record } = key;
    for (const answer of everything(key, "B")) expect(answer).toMatchObject({ ok: false, code: "forbidden" });
    expect(key.record).toBe(record);
    expect(key.by("Q", "B").renew()).toMatchObject({ code: "lease-lost", reason: "never" });
    expect(key.by("P", "B").check()).toMatchObject({ state: "waiting" });
  });

  it("is told who waits, or who is next, by a refusal", () => {
    const key = queueOf("BC");
    key.release("A");
    const refused = key.acquire("D");
    expect(refused).toMatchObject({ ok: false, code: "locked", holders: [], retryAfterMs: WINDOW_MS });
    expect(JSON.stringify(refused)).not.toContain(ID("B"));
  });
});

describe("the same id", () => {
  it.each(["waits", "is offered the key"])("with other parameters is refused while it %s", (where) => {
    const key = queueOf("BC");
    if (where !== "waits") key.release("A");
    const { record } = key;
    expect(key.ask("B", { requestHash: "others" })).toMatchObject({ ok: false, code: "lease-reused" });
    expect(key.acquire("B", { requestHash: "others" })).toMatchObject({ ok: false, code: "lease-reused" });
    expect(key.ask("B", { requestHash: "others", principal: "Q" })).toMatchObject({ ok: false, code: "forbidden" });
    expect(key.record).toBe(record);
  });

  it("stands once, however often it asks, and renews or changes nothing while it waits", () => {
    const key = queueOf("BC");
    for (let times = 0; times < 5; times++) key.ask("B");
    expect(key.all).toBe("Ax Bx… Cx…");
    const never = { ok: false, code: "lease-lost", reason: "never" };
    expect([key.renew("B"), key.change("B", "shared"), key.transfer("B", "D")]).toMatchObject([never, never, never]);
    key.release("A");
    expect([key.renew("B"), key.change("B", "shared"), key.transfer("B", "D")]).toMatchObject([never, never, never]);
    expect(key.all).toBe("Bx? Cx…");
  });

  it("of a set neither queues nor gets past the queue", () => {
    // A set asks for each of its keys without a place in the queue, and with parameters that no single key has.
    const key = queueOf("B");
    const asOfASet = { requestHash: "of two keys" } satisfies Partial<Acquire>;
    expect(key.acquire("S", asOfASet)).toMatchObject({ code: "locked" });
    key.release("A");
    expect(key.acquire("S", asOfASet)).toMatchObject({ code: "locked" });
    expect(key.all).toBe("Bx?");
    expect(key.acquire("B", asOfASet)).toMatchObject({ code: "lease-reused" });
    expect(key.all).toBe("Bx?");
  });

  it("that left is out for good, and one that was skipped is not", () => {
    const key = queueOf("BC");
    key.release("B");
    for (const again of [key.ask("B"), key.acquire("B")]) expect(again).toMatchObject({ code: "lease-over" });
    expect(key.check("B")).toMatchObject({ code: "lease-lost", reason: "never" });
    key.release("A");
    key.at(WINDOW_MS);
    expect(key.ask("D")).toMatchObject({ how: "granted" });
    expect(key.check("C")).toMatchObject({ code: "lease-lost", reason: "never" });
    expect(key.ask("C")).toMatchObject({ state: "waiting" });
    expect(key.all).toBe("Dx Cx…");
  });
});

describe("a level of a scope", () => {
  it("that waited joins the scope when it has come to hold, and leaves its place", () => {
    const key = new QueueKey();
    key.acquire("A", permits(3));
    key.ask("B", { ...permits(1), ...IN_S, priority: 1 });
    key.ask("C", { ...permits(3), ...IN_S });
    key.release("A");
    key.ask("B", { ...permits(1), ...IN_S, priority: 1 });
    expect(key.all).toBe("B1/3 C3/3…");
    // It gets no more permits than its scope has.
    expect(key.ask("C", { ...permits(3), ...IN_S })).toMatchObject({ code: "locked" });
    expect(key.all).toBe("B1/3 C3/3…");
    key.release("C");
    expect(key.ask("D", { ...permits(1), ...IN_S })).toMatchObject({ how: "granted", lease: { fencingToken: key.tokenOf("B") } });
    expect(key.all).toBe("B1/3=D1/3");
  });
});
