/** Compatibility: the leases that may hold beside others, and a scope's leases that leave their places in the queue. */
import { describe, expect, it } from "vitest";
import { type Occupant, isCompatible } from "../../lib/core/lock/compatibility.js";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import { at } from "./run-parts.js";
import { IN_S, permits } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";

describe("beside others", () => {
  const [reader, writer] = [
    { mode: "shared", permits: 1 },
    { mode: "exclusive", permits: 1 },
  ] as const satisfies readonly Occupant[];
  const takes = (count: number): Occupant => ({ mode: "exclusive", permits: count });
  it.each<[wanted: string, Occupant, others: readonly Occupant[], limit: number, may: boolean]>([
    ["a writer beside nobody", writer, [], 1, true],
    ["a reader beside nobody", reader, [], 1, true],
    ["a reader beside readers", reader, [reader, reader], 1, true],
    ["a reader beside a writer", reader, [writer], 1, false],
    ["a reader beside a permit, even if there is room", reader, [writer], 2, false],
    ["a writer beside a reader", writer, [reader], 1, false],
    ["a permit beside a reader, even if there is room", writer, [reader], 2, false],
    ["a writer beside a writer", writer, [writer], 1, false],
    ["the last permit", writer, [takes(2)], 3, true],
    ["one permit more than there are", takes(2), [takes(2)], 3, false],
  ])("%s holds, or does not", (_, wanted, others, limit, may) => {
    expect(isCompatible({ ...EMPTY_RECORD, limit }, others, wanted, at(0))).toBe(may);
  });
});

describe("a lease that is nested while it has an offer or a place", () => {
  it("leaves it to the next in the queue", () => {
    const key = new QueueKey();
    key.acquire("F", permits(3));
    key.ask("B", { ...IN_S, ...permits(1), priority: 1 });
    key.ask("A", { ...IN_S, ...permits(1) });
    key.ask("C", permits(2));
    key.release("F");
    key.ask("B", { ...IN_S, ...permits(1), priority: 1 });
    expect(key.all).toBe("B1/3 A1/3? C2/3…");
    expect(key.ask("A", { ...IN_S, ...permits(1) })).toMatchObject({ how: "granted" });
    expect([key.all, key.events]).toEqual(["A1/3=B1/3 C2/3?", "C offered, A granted"]);
  });
});
