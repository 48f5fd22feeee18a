/**
 * The production store on the in-memory DynamoDB. Each process has its own store, with its own recent-records cache, on one shared table.
 * Every write to the table is reported to the oracle as the record that the item represents.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { LockRecord } from "../../lib/core/record.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { sdkCalls } from "../support/sdk-calls.js";
import { fromItem } from "../../lib/store/dynamo/item.js";
import { createSleeperStore } from "../../lib/store/dynamo/sleeper-store.js";
import type { Address } from "../../lib/store/port.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { type Backend, type Records, type Surroundings, NAMESPACE, POLICY } from "./backend.js";
import { callsBy } from "../../lib/testing/served-table.js";
import type { AllCalls } from "../../lib/store/dynamo/calls.js";
import { type Input, DynamoTable } from "../../lib/testing/table/table.js";
import { type TableWorld, TableClient } from "./dynamo/table-client.js";
import { droppedFrom, newerClient } from "./newer-version.js";
import { type ValueMap, isList, isMap, membersSize } from "../../lib/testing/table/values.js";
import { drawClockError } from "./faults.js";
import { type SimulatedRegions, simulatedRegions } from "./regions.js";
import type { Door } from "../../lib/testing/regions.js";
import { Process } from "./world.js";
import { known, tableClocks } from "../../lib/service/clocks.js";
import { sweepTable } from "../../lib/store/dynamo/sweep.js";
import { watchTableClock } from "../../lib/store/dynamo/table-clock.js";

const TABLE_NAME = "simulated";

/** Records in a table. */
export interface DynamoBackend extends Backend {
  /** The Regions of its table, if it has several. */
  readonly regions: SimulatedRegions | undefined;
  /** The same backend for processes of the next version, which adds fields to everything it writes. */
  readonly newer: Backend;
  /** Returns a client for one process, and the records by it: for a client that watches the table's clock. @param door that of its Region */
  clientFor(process: Process, door?: Door): Records & { readonly client: DynamoDBClient };
}

/** One table, shared by the processes of a history. */
// Over 60 lines: one model or one server, whose parts share its state.
export function dynamoBackend(
  { world, random, faultProfile, oracle }: Surroundings,
  inRegions = false,
  areBothRefused = false,
): DynamoBackend {
  const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => world.nowMs);
  const regions = inRegions ? simulatedRegions(table, { world, random, faultProfile, areBothRefused }) : undefined;
  // The processes are in the Regions by turns.
  let processes = 0;
  const nextDoor = (): Door | undefined => regions?.doors[processes++ % regions.doors.length];
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
    onDeleted: collected,
    onAnswered: ({ Key }, tookMs, isRefused) => {
      if (Key !== undefined && kindOf(Key as ValueMap) === "limits") oracle.limits.answered(tookMs, isRefused);
    },
  };
  const allCallsOf = (client: TableClient): AllCalls => callsBy((operation, input) => client.send({ operation, input: input as Input }));
  const recordsBy = (client: TableClient, process: Process): Records => ({
    store: createDynamoStore({
      calls: sdkCalls(client as unknown as DynamoDBClient),
      tableName: TABLE_NAME,
      policy: POLICY,
      clock: process,
      random: () => random.unit(),
      transactions: !inRegions,
    }),
    sleepers: createSleeperStore({ calls: allCallsOf(client), tableName: TABLE_NAME }),
  });
  function collected(item: ValueMap): void {
    const address = addressOf(item);
    if (address) oracle.collected(address, recordOf(item));
    else texts.delete(textAt(item, TABLE.sortKey));
  }

  /** Sweeps from a process of some Region, whose clock may be as wrong as a function's. */
  async function sweep(): Promise<void> {
    const { mix } = faultProfile;
    const process = new Process(world, { name: "sweep", wallErrorMs: drawClockError(random, mix.handlerErrorMs, mix.clocksAtExtremes) });
    const client = new TableClient(shared, process, nextDoor());
    const clocks = known(tableClocks(process, watchTableClock(client as unknown as DynamoDBClient, process)));
    await sweepTable(
      { calls: allCallsOf(client), clocks, clock: process, random: () => random.unit(), tableName: TABLE_NAME },
      { namespace: NAMESPACE },
    );
  }

  const backend: Backend = {
    recordsFor: (process) => recordsBy(new TableClient(shared, process, nextDoor()), process),
    collect() {
      if (regions) void sweep();
      else for (const item of table.expire(Math.floor(world.nowMs / 1000), () => random.chance(0.7))) collected(item);
    },
  };
  return {
    ...backend,
    newer: { ...backend, recordsFor: (process) => recordsBy(newerClient(shared, process, nextDoor()), process) },
    regions,
    clientFor(process, door = nextDoor()) {
      const client = new TableClient(shared, process, door);
      return { client: client as unknown as DynamoDBClient, ...recordsBy(client, process) };
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
