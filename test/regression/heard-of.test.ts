/** A waiter that said in time that it is still there is not passed over, although saying so leaves the version alone. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { systemClock } from "../../lib/core/time.js";
import { createDynamoStore } from "../../lib/store/dynamo-store.js";
import type { LockStore } from "../../lib/store/lock-store.js";
import { createMemoryStore, createMemoryTable } from "../../lib/store/memory-store.js";
import { QueueScene } from "../store/queue-scene.js";
import { A, B, C, D, RULES } from "../store/scene.js";
import { freshTable } from "../support/engine.js";

/** Two processes of one table. */
type Processes = readonly [here: LockStore, there: LockStore];

const SITES: readonly (readonly [name: string, processes: () => Promise<Processes>])[] = [
  [
    "the table",
    async () => {
      const { client, tableName } = await freshTable();
      const process = (): LockStore => createDynamoStore({ client, tableName, rules: RULES, clock: systemClock, random: () => 0 });
      return [process(), process()];
    },
  ],
  [
    "memory",
    async () => {
      const table = createMemoryTable();
      const process = (): LockStore => createMemoryStore({ rules: RULES, table });
      return [process(), process()];
    },
  ],
];

describe.each(SITES)("in %s", (_name, processes) => {
  it.each(["another process", "the same process"])(
    "a lapsed turn passes to it, noticed in %s that looked before it spoke",
    async (where) => {
      const [one, other] = await processes();
      const here = new QueueScene(one);
      await here.acquire(A);
      for (const id of [B, C, D]) await here.at(1).queue(id);
      await here.at(10).release(A); // B's turn; B is dead.
      const there = where === "the same process" ? here : new QueueScene(other, here.address);
      await there.read();
      if (here === there) await here.at(10 + LIMITS.reportAfterMs).queue(D);
      expect(await here.at(10 + LIMITS.reportAfterMs + 100).queue(C)).toMatchObject({ state: "waiting" });
      await there.at(10 + DEFAULTS.offerWindowMs).queue(D);
      expect(await here.standing()).toEqual({ holds: [], offers: [C], waiters: [D] });
    },
  );

  it("control: one that said nothing is passed over", async () => {
    const [one] = await processes();
    const here = new QueueScene(one);
    await here.acquire(A);
    for (const id of [B, C, D]) await here.at(1).queue(id);
    await here.at(10).release(A);
    await here.at(10 + DEFAULTS.offerWindowMs).queue(D);
    expect(await here.standing()).toEqual({ holds: [D], offers: [], waiters: [] });
  });
});
