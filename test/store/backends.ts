/** Both stores, for bugs that each of them could have: two processes that share the records of one table. */
import { createMemoryStore, createMemoryTable } from "../support/memory-store.js";
import type { LockStore } from "../../lib/store/port.js";
import { tableInMemory } from "../simulation/dynamo/table-in-memory.js";
import { dynamoStoreOn, POLICY } from "./fixture.js";

/** Two processes of one table. */
export type Processes = readonly [here: LockStore, there: LockStore];

/** The stores by name. */
export const BACKENDS: readonly (readonly [name: string, processes: () => Promise<Processes>])[] = [
  [
    "the table",
    async () => {
      const { calls, tableName } = tableInMemory();
      const process = (): LockStore => dynamoStoreOn({ calls, tableName }, () => 0);
      return [process(), process()];
    },
  ],
  [
    "memory",
    async () => {
      const table = createMemoryTable();
      const process = (): LockStore => createMemoryStore({ policy: POLICY, table });
      return [process(), process()];
    },
  ],
];
