/**
 * A store on a table in memory: the production code down to the conditions of its writes. `holdfast dev`, `npm start` and `holdfast/testing`
 * have it. The table answers at once, or is served like DynamoDB.
 */
import { randomNumber } from "../core/random.js";
import type { LockPolicy } from "../core/record.js";
import { type Clock, systemClock } from "../core/time.js";
import type { AllCalls } from "../store/dynamo/calls.js";
import { createDynamoStore } from "../store/dynamo/dynamo-store.js";
import { TABLE } from "../store/dynamo/table.js";
import type { LockStore } from "../store/port.js";
import { type TableServiceDeps, TableService } from "./like-dynamodb.js";
import { type Door, type DoorRequest, Regions } from "./regions.js";
import { type Input, DynamoTable } from "./table/table.js";

/** The name of a table in memory. */
export const TABLE_NAME = "in-memory";

/** Sends one operation of DynamoDB, with values of JavaScript. */
export type Send = (operation: string, input: object) => Promise<object>;

const METHODS = {
  GetItem: "get",
  UpdateItem: "update",
  PutItem: "put",
  DeleteItem: "delete",
  Query: "query",
  Scan: "scan",
  TransactWriteItems: "transactWrite",
} as const;

/** An operation as the doors and the units of a table see it: its kind, and the names of its items; none for a page. */
interface Target {
  readonly kind: DoorRequest<object>["kind"];
  readonly items: readonly string[];
}

/** Returns what an operation is about. */
export function targetOf(table: DynamoTable, operation: string, input: Input): Target {
  if (operation === "Query" || operation === "Scan") return { kind: "query", items: [] };
  if (operation === "TransactWriteItems") return { kind: "transaction", items: table.idsOf(input) };
  return { kind: operation === "GetItem" ? "read" : "write", items: [table.idOf(input)] };
}

/** Carries out one operation of DynamoDB, on values of JavaScript. */
export function carryOut(table: DynamoTable, operation: string, input: Input): object {
  if (!Object.hasOwn(METHODS, operation)) throw new Error(`this table does not know the operation ${operation}`);
  return table[METHODS[operation as keyof typeof METHODS]](input);
}

/** Returns a sender to `table`, which is served like DynamoDB. */
export function senderTo(table: DynamoTable, deps: Omit<TableServiceDeps, "bytesOf">): Send {
  const service = new TableService({ ...deps, bytesOf: (item) => table.bytesOf(item) });
  return (operation, input) => {
    const { kind, items } = targetOf(table, operation, input as Input);
    return service.serve({ kind: kind === "query" ? "read" : kind, items, carryOut: () => carryOut(table, operation, input as Input) });
  };
}

/** Returns a sender to `table` through the door of a Region. */
export function senderThrough(door: Door, table: DynamoTable): Send {
  return (operation, input) =>
    door.serve({ ...targetOf(table, operation, input as Input), carryOut: (on) => carryOut(on, operation, input as Input) });
}

/** Returns the operations of a store, each of them sent by `send`. */
export function callsBy(send: Send): AllCalls {
  return {
    updateItem: (input) => send("UpdateItem", input),
    deleteItem: (input) => send("DeleteItem", input),
    getItem: (input) => send("GetItem", input),
    query: (input) => send("Query", input),
    scan: (input) => send("Scan", input),
    transactWriteItems: (input) => send("TransactWriteItems", input),
  };
}

/** Creates a store on a new table in memory. */
export function createStoreInMemory({
  policy,
  clock = systemClock,
  likeDynamodb = false,
  random = likeDynamodb ? randomNumber : () => 0,
}: {
  readonly policy: LockPolicy;
  readonly clock?: Clock;
  /** Gives the table DynamoDB's latency, units and throttles, in the clock's time. @default false: it answers at once */
  readonly likeDynamodb?: boolean;
  /** Returns 0 to 1: for latencies and jitter. @default 0 on a table that answers at once, whose store never waits for the clock */
  readonly random?: () => number;
}): LockStore {
  const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => clock.wallMs());
  const atOnce: Send = async (operation, input) => carryOut(table, operation, input as Input);
  const send = likeDynamodb ? senderTo(table, { clock, random }) : atOnce;
  return createDynamoStore({ calls: callsBy(send), tableName: TABLE_NAME, policy, clock, random });
}

/** The round trip between two Regions of a table in memory, in ms. */
const ROUND_TRIP_MS = [25, 35] as const;

/** The table in memory as it is in one Region. */
export interface RegionalStore {
  readonly door: Door;
  readonly store: LockStore;
  /** The URLs of the Region's services, which the store writes into the table. Add those that start. */
  readonly urls: string[];
}

/** Creates a table in memory that has a door in each of these Regions, and a store at each door. */
export function storesInRegions(regions: readonly string[], policy: LockPolicy, clock: Clock = systemClock): readonly RegionalStore[] {
  const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => clock.wallMs());
  const doors = new Regions(table, { clock, random: randomNumber, roundTripMs: ROUND_TRIP_MS });
  return regions.map((region) => {
    const [door, urls] = [doors.door(region), [] as string[]];
    const calls = callsBy(senderThrough(door, table));
    const store = createDynamoStore({
      calls,
      tableName: TABLE_NAME,
      policy,
      clock,
      random: randomNumber,
      transactions: false,
      doors: urls,
    });
    return { door, store, urls };
  });
}
