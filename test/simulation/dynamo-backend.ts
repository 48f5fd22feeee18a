/**
 * The production store on the in-memory DynamoDB. Each process has its own store, with its own recent-records cache, on one shared table.
 * Every write to the table is reported to the oracle as the record that the item represents.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { LockRecord } from "../../lib/core/record.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { sdkCalls } from "../support/sdk-calls.js";
import { fromItem } from "../../lib/store/dynamo/item.js";
import type { Address, LockStore } from "../../lib/store/port.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { type Backend, type Surroundings, NAMESPACE, POLICY } from "./backend.js";
import { DynamoTable } from "../../lib/testing/table/table.js";
import { type TableWorld, TableClient } from "./dynamo/table-client.js";
import { droppedFrom, newerClient } from "./newer-version.js";
import { type ValueMap, isList, isMap, membersSize } from "../../lib/testing/table/values.js";
import { drawClockError } from "./faults.js";
import type { Process } from "./world.js";

const TABLE_NAME = "simulated";

/** Records in a table. */
export interface DynamoBackend extends Backend {
  /** The same backend for processes of the next version, which adds fields to everything it writes. */
  readonly newer: Backend;
  /** Returns a client for one process, and a store on it: for a client that watches the table's clock. */
  clientFor(process: Process): { readonly client: DynamoDBClient; readonly store: LockStore };
}

/** One table, shared by the processes of a history. */
// Over 60 lines: one model or one server, whose parts share its state.
export function dynamoBackend({ world, random, faultProfile, oracle }: Surroundings): DynamoBackend {
  const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => world.nowMs);
  const records = new WeakMap<ValueMap, LockRecord>();
  const texts = new Map<string, string>();
  let decidedAtMs = 0;
  oracle.runs.textBeside = (key, digest) => texts.get(`${key}/${digest}`);

  function recordOf(item: ValueMap): LockRecord {
    let record = records.get(item);
    if (!record) records.set(item, (record = fromItem(item)));
    return record;
  }

  table.onWritten = ({ before, after }) => {
    const address = addressOf(after);
    const dropped = before && droppedFrom(before, after);
    if (dropped !== undefined) oracle.fail("internal", `a field of a newer version was dropped from ${dropped}`);
    if (address && isCrowded(after)) oracle.sized(address, membersSize(after));
    if (address) oracle.observed(address, { before: before && recordOf(before), next: recordOf(after), decidedAtMs });
    else texts.set(textAt(after, TABLE.sortKey), textAt(after, "t"));
  };
  const shared: TableWorld = {
    world,
    random,
    faultProfile,
    table,
    clockErrorMs: drawClockError(random, faultProfile.mix.tableErrorMs, faultProfile.mix.clocksAtExtremes),
    inTransaction: new Set(),
    deciding: (atMs) => void (decidedAtMs = atMs),
    onMisuse: (what) => oracle.fail("internal", what),
    onTried: ({ Key }) => {
      const address = addressOf(Key as ValueMap);
      if (address) oracle.tried(address);
    },
    onDone: () => oracle.settled(),
    onAnswered: ({ Key }, tookMs) => {
      if (Key !== undefined && kindOf(Key as ValueMap) === "limits") oracle.limits.answered(tookMs);
    },
  };
  const storeOn = (client: TableClient, process: Process): LockStore =>
    createDynamoStore({
      calls: sdkCalls(client as unknown as DynamoDBClient),
      tableName: TABLE_NAME,
      policy: POLICY,
      clock: process,
      random: () => random.unit(),
    });
  const backend: Backend = {
    storeFor: (process) => storeOn(new TableClient(shared, process), process),
    collect() {
      for (const item of table.expire(Math.floor(world.nowMs / 1000), () => random.chance(0.7))) {
        const address = addressOf(item);
        if (address) oracle.collected(address, recordOf(item));
        else texts.delete(textAt(item, TABLE.sortKey));
      }
    },
  };
  return {
    ...backend,
    newer: { ...backend, storeFor: (process) => storeOn(newerClient(shared, process), process) },
    clientFor(process) {
      const client = new TableClient(shared, process);
      return { client: client as unknown as DynamoDBClient, store: storeOn(client, process) };
    },
  };
}

/** True if an item has so many entries that its size may matter. */
function isCrowded({ h, q }: ValueMap): boolean {
  return (isMap(h) ? Object.keys(h).length : 0) + (isList(q) ? q.length : 0) > 15;
}

/** The record's address in its item; undefined for the item of a payload or of a limit. */
function addressOf(item: ValueMap): Address | undefined {
  const kind = kindOf(item);
  if (kind !== "locks" && kind !== "runs") return undefined;
  return { namespace: NAMESPACE, kind, key: textAt(item, TABLE.sortKey) };
}

function kindOf(item: ValueMap): string | undefined {
  return textAt(item, TABLE.partitionKey).split("/")[1];
}

function textAt(item: ValueMap, name: string): string {
  const text = item[name];
  return typeof text === "string" ? text : "";
}
