/** Each store, empty, with random pauses: for what must hold of all of them, whatever they meet. */
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore } from "../support/memory-store.js";
import { freshTable } from "../support/engine.js";
import { dynamoStoreOn, POLICY } from "./fixture.js";

export const STORES: readonly { readonly name: string; readonly makeStore: () => Promise<LockStore> }[] = [
  { name: "memory-store", makeStore: async () => createMemoryStore({ policy: POLICY, random: Math.random }) },
  { name: "dynamo-store", makeStore: async () => dynamoStoreOn(await freshTable(), Math.random) },
];
