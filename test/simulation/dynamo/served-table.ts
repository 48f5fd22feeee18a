/**
 * A table in memory whose requests are served like DynamoDB's (lib/testing/like-dynamodb.ts), in simulated time; and the calls of a process
 * on it, with the attempts and pauses of the built-in transport.
 */
import type { Clock } from "../../../lib/core/time.js";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { sendUntilAnswered, standardRetries } from "../../../lib/store/dynamo/retries.js";
import { TABLE_CALLS } from "../../../lib/store/dynamo/http-sender.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { type TableTime, answerWatcher } from "../../../lib/store/dynamo/table-clock.js";
import { type ServedRequest, type TableBehaviour, LIKE_DYNAMODB } from "../../../lib/testing/like-dynamodb.js";
import type { Door } from "../../../lib/testing/regions.js";
import { type Send, TABLE_NAME, callsBy, senderThrough, senderTo } from "../../../lib/testing/served-table.js";
import type { Random } from "../random.js";
import { type World, Process } from "../world.js";
import { DynamoTable } from "../../../lib/testing/table/table.js";

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
  readonly #serve: Send;
  readonly #counts = { writes: 0, reads: 0, refused: 0, throttled: 0, conflicts: 0, writeUnits: 0, readUnits: 0 };

  constructor(world: World, random: Random, behaviour: Partial<TableBehaviour> = {}) {
    this.#world = world;
    this.#random = random;
    this.table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => world.nowMs);
    this.#serve = senderTo(this.table, {
      ...{ clock: new Process(world), random: () => random.unit(), behaviour },
      onServed: (served) => this.#count(served),
    });
  }

  /** The requests so far. */
  counts(): TableCounts {
    return { ...this.#counts };
  }

  /** Returns the calls of a process; through a door in its Region, if the table has several. */
  callsOf(clock: Clock, door?: Door): ProcessCalls {
    const serve = door ? this.#through(door) : this.#serve;
    const watcher = answerWatcher(clock);
    const retries = standardRetries(TABLE_CALLS.maxAttempts, { clock, random: () => this.#random.unit() });
    const send: Send = (operation, input) => {
      const asked = operation === "TransactWriteItems" ? { ClientRequestToken: this.#random.bytes(8).join("-"), ...input } : input;
      const attempt = async (): Promise<object> => {
        const answered = watcher.sending();
        try {
          return await serve(operation, asked);
        } finally {
          answered(new Date(this.#world.nowMs).toUTCString());
        }
      };
      return sendUntilAnswered(attempt, retries, clock);
    };
    return { calls: callsBy(send), time: watcher.time };
  }

  /** Through a door, a request takes the latency within its Region beside the round trip. */
  #through(door: Door): Send {
    const send = senderThrough(door, this.table);
    const way = (): Promise<void> => this.#world.sleep(this.#random.between(...LIKE_DYNAMODB.latencyMs) / 2);
    return async (operation, input) => {
      await way();
      try {
        return await send(operation, input);
      } finally {
        await way();
      }
    };
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
