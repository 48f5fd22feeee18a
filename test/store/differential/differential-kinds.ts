/**
 * Histories of all kinds of locks through two stores at once: the core behind conditional writes in memory, and the table with its fast
 * paths. Both must give the same answers and store the same records.
 */
import type { Address } from "../../../lib/store/port.js";
import { createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { type History, resolver } from "./kind-histories.js";
import { dynamoStoreOn, freshNamespace, outcomeOf, POLICY } from "../fixture.js";
import { type EngineTable, type Play, tellHoldsById, withHoldsById } from "./differential-pair.js";
import { expectSame } from "../../support/same.js";

export function kindsStorePair({ client, calls, tableName }: EngineTable): Play<History> {
  const table = createMemoryTable();
  const memory = createMemoryStore({ policy: POLICY, table: withHoldsById(table) });
  tellHoldsById(client);
  const process = dynamoStoreOn({ calls, tableName });

  return async (history, told) => {
    const address: Address = { namespace: freshNamespace(), kind: "locks", key: "ORDER_1" };
    const resolve = resolver(history, address.key);
    const asked: unknown[] = [];
    let turn = 0;
    for (const step of history.steps) {
      const before = await memory.read(address);
      const { command, reading } = resolve(step, before);
      asked.push([reading, command]);
      const wanted = await memory.apply(address, command, () => reading);
      // A process that saw the key decides, and one that didn't guesses. Each second command is of a new one.
      const dynamo = turn++ % 2 === 0 ? process : dynamoStoreOn({ calls, tableName });
      const came = await dynamo.apply(address, command, () => reading);
      const record = await memory.read(address);
      const isNested = "lease" in wanted.answer && wanted.answer.lease.holdCount > 1 && wanted.answer.how === "granted";
      told(`${command.type}: ${isNested ? "nested" : outcomeOf(wanted.answer)}`);
      expectSame({ answer: came.answer, events: came.events }, wanted, asked);
      // If one store's record hasn't changed, a change of the other shows in its next record: versions only rise.
      if (record?.version !== before?.version) expectSame(await process.read(address), record, asked);
    }
    expectSame(await process.read(address), await memory.read(address), asked);
  };
}
