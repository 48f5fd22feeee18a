/**
 * A pair of stores that get the same commands, and must give the same answers and store the same records: the core behind conditional
 * writes in memory, and the table with its forms.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { itemKey, toItem } from "../../../lib/store/dynamo/item.js";
import type { Command } from "../../../lib/core/commands.js";
import type { Kind } from "../../../lib/core/api/locks.js";
import type { LockRecord } from "../../../lib/core/record.js";
import type { ClockReading } from "../../../lib/core/time.js";
import type { Address } from "../../../lib/store/port.js";
import { type MemoryTable, createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { expectSame } from "../../support/same.js";
import { dynamoStoreOn, freshNamespace, outcomeOf, POLICY } from "../fixture.js";

/** A table on an engine, or in memory. */
export interface EngineTable {
  /** The AWS SDK's client, for what a test reads and writes itself. */
  readonly client: DynamoDBClient;
  readonly calls: TableCalls;
  readonly tableName: string;
}

/** The past of a key (undefined: unused) and its commands to come. */
interface Remembering {
  readonly remembered: LockRecord | undefined;
}

/**
 * The way to play a kind of key: the commands of a history with their clocks. Each command is made after the one before has been carried
 * out.
 */
export interface Played<H extends Remembering> {
  readonly kind: Kind;
  commandsOf(
    history: H,
    key: string,
    read: () => Promise<LockRecord | undefined>,
  ): AsyncIterable<{ readonly command: Command; readonly reading: ClockReading }>;
}

/** Plays a history through both stores, and reports each outcome to `told`. @throws an assertion if they differ. */
export type Play<H> = (history: H, told: (outcome: string) => void) => Promise<void>;

export function storePair<H extends Remembering>({ client, calls, tableName }: EngineTable, { kind, commandsOf }: Played<H>): Play<H> {
  const table = createMemoryTable();
  const memory = createMemoryStore({ policy: POLICY, table });
  const process = dynamoStoreOn({ calls, tableName });
  const documents = DynamoDBDocumentClient.from(client);

  return async (history, told) => {
    const address: Address = { namespace: freshNamespace(), kind, key: "ORDER_1" };
    if (history.remembered) {
      await table.replace(address, history.remembered, undefined);
      await documents.send(new PutCommand({ TableName: tableName, Item: { ...itemKey(address), ...toItem(history.remembered) } }));
    }
    const asked: unknown[] = [history.remembered];
    let version = history.remembered?.version;
    let turn = 0;
    for await (const { command, reading } of commandsOf(history, address.key, () => memory.read(address))) {
      asked.push([reading, command]);
      const wanted = await memory.apply(address, command, () => reading);
      // A process that saw the key decides, and one that didn't guesses. Each second command is of a new one.
      const dynamo = turn++ % 2 === 0 ? process : dynamoStoreOn({ calls, tableName });
      const came = await dynamo.apply(address, command, () => reading);
      told(`${command.type}: ${outcomeOf(wanted.answer)}`);
      expectSame({ answer: came.answer, events: came.events }, wanted, asked);
      const record = await memory.read(address);
      // If one store's record hasn't changed, a change of the other shows in its next record: versions only rise.
      if (record?.version === version) continue;
      version = record?.version;
      expectSame(await process.read(address), record, asked);
    }
    expectSame(await process.read(address), await memory.read(address), asked);
  };
}

function byId<T>(holds: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(holds).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The same table, with leases in the order of their ids. Their order in a map depends on the engine, and decides that of the tombstones of
 * leases that are taken over together. So both stores are made to report leases in this order.
 */
export function withHoldsById(table: MemoryTable): MemoryTable {
  return { ...table, replace: (at, next, seen) => table.replace(at, { ...next, holds: byId(next.holds) }, seen) };
}

/** An item in a response: plain values in an answer, wire form in a refusal. */
type WithHolds = { h?: Record<string, unknown> } | undefined;

/** Sorts the holds in every item of an answer or of a refusal. */
export function tellHoldsById(client: DynamoDBClient): void {
  const sort = (item: WithHolds): void => {
    const { h } = item ?? {};
    if (item && h) item.h = h["M"] ? { M: byId(h["M"] as Record<string, unknown>) } : byId(h);
  };
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        const result = await next(args);
        const { Item, Attributes } = result.output as { Item?: WithHolds; Attributes?: WithHolds };
        [Item, Attributes].forEach(sort);
        return result;
      } catch (error) {
        sort((error as { Item?: WithHolds }).Item);
        throw error;
      }
    },
    { step: "deserialize", priority: "high" },
  );
}
