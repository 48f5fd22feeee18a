/** The behaviour of DynamoDB that lib/testing/like-dynamodb.ts gives a table: units by size, throttles, conflicts of transactions. */
import { describe, expect, it } from "vitest";
import { type ServedRequest, TableService } from "../../lib/testing/like-dynamodb.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";

function scene(behaviour: object = {}) {
  const clock = new VirtualClock();
  const served: ServedRequest[] = [];
  const bytesOf = (item: string): number => (item === "large" ? 5000 : 100);
  const service = new TableService({ clock, random: () => 0.5, bytesOf, behaviour, onServed: (one) => served.push(one) });
  const ask = (kind: ServedRequest["kind"], items: readonly string[], carryOut = (): string => "done") =>
    service.serve({ kind, items, carryOut });
  return { clock, served, ask };
}

describe("a table that is served like DynamoDB", () => {
  it("charges by the item's size: a write by 1 KB, a read by 4, a transaction twice, and a refused write like any other", async () => {
    const { clock, served, ask } = scene();
    const refused = (): string => {
      throw new Error("the condition");
    };
    for (const kind of ["write", "read", "transaction"] as const) await clock.settle(ask(kind, ["large"]));
    await expect(clock.settle(ask("write", ["large"], refused))).rejects.toThrow("the condition");
    expect(served.map(({ outcome, units }) => [outcome, units])).toEqual([
      ["done", 5],
      ["done", 2],
      ["done", 10],
      ["refused", 5],
    ]);
  });

  it("throttles an item that has no units left, for as long as they take to come back, and no other item", async () => {
    const { clock, ask } = scene({ writeUnits: 1 });
    await clock.settle(ask("write", ["large"]));
    await expect(clock.settle(ask("write", ["large"]))).rejects.toMatchObject({ name: "ProvisionedThroughputExceededException" });
    await expect(clock.settle(ask("transaction", ["small", "large"]))).rejects.toMatchObject({
      CancellationReasons: [{ Code: "None" }, { Code: "ProvisionedThroughputExceeded" }],
    });
    expect(await clock.settle(ask("write", ["small"]))).toBe("done");
    await clock.advance(4000);
    expect(await clock.settle(ask("write", ["large"]))).toBe("done");
  });

  it("lets an item begin with the units that it has saved up, and then with those that come", async () => {
    const granted = async (creditMs: number): Promise<number> => {
      const { clock, ask } = scene({ latencyMs: [0, 0], creditMs });
      const outcomes = await clock.settle(Promise.allSettled(Array.from({ length: 300 }, () => ask("write", ["large"]))));
      return outcomes.filter(({ status }) => status === "fulfilled").length;
    };
    expect([await granted(1000), await granted(10)]).toEqual([200, 2]);
  });

  it("refuses a write and a transaction while another transaction has the item, and reads it", async () => {
    const { clock, ask } = scene();
    const first = ask("transaction", ["a", "b"]);
    await clock.advance(4);
    const [write, second, read] = [ask("write", ["a"]), ask("transaction", ["c", "b"]), ask("read", ["a"])];
    const outcomes = await clock.settle(Promise.allSettled([first, write, second, read]));
    expect(outcomes).toMatchObject([
      { value: "done" },
      { reason: { name: "TransactionConflictException" } },
      { reason: { CancellationReasons: [{ Code: "None" }, { Code: "TransactionConflict" }] } },
      { value: "done" },
    ]);
  });
});
