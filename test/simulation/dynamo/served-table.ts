/**
 * A table in memory whose requests are served like DynamoDB's (lib/testing/like-dynamodb.ts), in simulated time; and the calls of a process
 * on it, with the attempts and pauses of the built-in transport.
 */
import type { Clock } from "../../../lib/core/time.js";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { sendUntilAnswered, standardRetries } from "../../../lib/store/dynamo/retries.js";
import { TABLE, TABLE_CALLS } from "../../../lib/store/dynamo/table.js";
import { type TableTime, answerWatcher } from "../../../lib/store/dynamo/table-clock.js";
import { type ServedRequest, type TableBehaviour, TableService } from "../../../lib/testing/like-dynamodb.js";
import type { Random } from "../random.js";
import { type World, Process } from "../world.js";
import { carryOut } from "./sdk-client.js";
import { type Input, DynamoTable } from "./table.js";

export const TABLE_NAME = "simulated";

/** The requests that a table served. */
export interface TableCounts {
  readonly writes: number;
  readonly reads: number;
  /** Writes that their conditions refused. */
  readonly refused: number;
  /** Requests that were throttled. */
  readonly throttled: number;
  /** Writes that met a transaction. */
  readonly conflicts: number;
  readonly writeUnits: number;
  readonly readUnits: number;
}

/** The calls of one process, and the table's time by their answers. */
export interface ProcessCalls {
  readonly calls: TableCalls;
  readonly time: () => TableTime | undefined;
}

/** The table of a scene. */
export class ServedTable {
  readonly table: DynamoTable;
  readonly #world: World;
  readonly #random: Random;
  readonly #service: TableService;
  readonly #counts = { writes: 0, reads: 0, refused: 0, throttled: 0, conflicts: 0, writeUnits: 0, readUnits: 0 };

  constructor(world: World, random: Random, behaviour: Partial<TableBehaviour> = {}) {
    this.#world = world;
    this.#random = random;
    this.table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => world.nowMs);
    this.#service = new TableService({
      ...{ clock: new Process(world), random: () => random.unit(), behaviour },
      bytesOf: (item) => this.table.bytesOf(item),
      onServed: (served) => this.#count(served),
    });
  }

  /** The requests so far. */
  counts(): TableCounts {
    return { ...this.#counts };
  }

  callsOf(clock: Clock): ProcessCalls {
    const watcher = answerWatcher(clock);
    const retries = standardRetries(TABLE_CALLS.maxAttempts, { clock, random: () => this.#random.unit() });
    const send = <Answer extends object>(operation: string, input: object): Promise<Answer> => {
      const asked = operation === "TransactWriteItems" ? { ClientRequestToken: this.#random.bytes(8).join("-"), ...input } : input;
      const attempt = async (): Promise<object> => {
        const answered = watcher.sending();
        try {
          return await this.#serve(operation, asked as Input);
        } finally {
          answered(new Date(this.#world.nowMs).toUTCString());
        }
      };
      return sendUntilAnswered(attempt, retries, clock) as Promise<Answer>;
    };
    const calls: TableCalls = {
      updateItem: (input) => send("UpdateItem", input),
      getItem: (input) => send("GetItem", input),
      query: (input) => send("Query", input),
      transactWriteItems: (input) => send("TransactWriteItems", input),
    };
    return { calls, time: watcher.time };
  }

  #serve(operation: string, input: Input): Promise<object> {
    const act = (): object => carryOut(this.table, operation, input);
    if (operation === "Query") return this.#service.serve({ kind: "read", items: [], carryOut: act });
    if (operation === "TransactWriteItems")
      return this.#service.serve({ kind: "transaction", items: this.table.idsOf(input), carryOut: act });
    const kind = operation === "GetItem" ? "read" : "write";
    return this.#service.serve({ kind, items: [this.table.idOf(input)], carryOut: act });
  }

  #count({ kind, outcome, units }: ServedRequest): void {
    const counts = this.#counts;
    if (kind === "read") counts.reads++;
    else counts.writes++;
    counts[kind === "read" ? "readUnits" : "writeUnits"] += units;
    if (outcome === "refused") counts.refused++;
    if (outcome === "throttled") counts.throttled++;
    if (outcome === "conflict") counts.conflicts++;
  }
}
