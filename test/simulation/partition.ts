/**
 * A contended key on one partition in simulated time: it serves 1,000 write units a second, in the order of arrival, and charges a refused
 * write by the item's size too. Each process is a direct client of its own, with its own recent-records cache. The figures are the same in
 * every run.
 */
import { LeaseIds } from "../../lib/client/ask/lease-ids.js";
import { createClient } from "../../lib/client/client.js";
import type { Lease } from "../../lib/client/hold/lease-types.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { lockService } from "../../lib/service/service.js";
import type { TableCalls, UpdateInput } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { fromItem } from "../../lib/store/dynamo/item.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import type { LockRecord } from "../../lib/core/record.js";
import { NAMESPACE, POLICY } from "./backend.js";
import { type Input, DynamoTable } from "./dynamo/table.js";
import { membersSize } from "./dynamo/values.js";
import { Random } from "./random.js";
import { Process, World } from "./world.js";

const START_MS = Date.UTC(2027, 0, 1);
const TABLE_NAME = "simulated";
/** The time that a write unit takes, in ms. */
const UNIT_MS = 1;
/** The longest way of a request to the table, or back, in ms. */
const WAY_MS = 5;

/** A member of a crowd: a process, and the writes that it sent. */
export interface Member {
  readonly client: LockClient;
  readonly sent: { writes: number };
}

/** A scene: one partition, and processes that contend for its keys. */
export interface Partition {
  readonly world: World;
  /** Starts a process that has seen nothing. */
  join(): Member;
  /** The write units that were charged so far. */
  units(): number;
  /** Called after each write, with the record that it left. */
  onWritten: (record: LockRecord) => void;
}

/** Returns an empty partition. It refuses every write whose update `isBarred`. */
// Over 60 lines: one model or one server, whose parts share its state.
export function partition({ isBarred = () => false }: { readonly isBarred?: (update: string) => boolean } = {}): Partition {
  const world = new World(START_MS);
  const random = new Random(1);
  const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => world.nowMs);
  const nowMs = (): number => Math.floor(world.nowMs);
  let [charged, busyUntilMs] = [0, 0];

  const way = (): Promise<void> => world.sleep(random.between(1, WAY_MS));
  /** Waits until the partition has served those before, and charges the write. */
  async function served<T>(act: () => T, key: Input): Promise<T> {
    const units = Math.max(1, Math.ceil(sizeOf(key) / 1024));
    charged += units;
    const atMs = Math.max(world.nowMs, busyUntilMs);
    busyUntilMs = atMs + units * UNIT_MS;
    await world.sleep(atMs - world.nowMs);
    return act();
  }
  const sizeOf = (Key: Input): number => {
    const { Item } = table.get({ TableName: TABLE_NAME, Key, ConsistentRead: true });
    return Item ? membersSize(Item) : 0;
  };
  const unused = (): never => {
    throw new Error("a crowd neither lists nor takes sets");
  };

  function join(): Member {
    const process = new Process(world);
    const sent = { writes: 0 };
    const calls: TableCalls = {
      async updateItem(input: UpdateInput) {
        sent.writes++;
        await way();
        try {
          const { ConditionExpression: condition, UpdateExpression: update } = input;
          const ConditionExpression = isBarred(update) ? `attribute_exists(nothing) AND ${condition}` : condition;
          return await served(() => table.update({ ...input, ConditionExpression }), input.Key);
        } finally {
          await way();
        }
      },
      async getItem(input) {
        await way();
        const got = table.get(input as unknown as Input);
        await way();
        return got;
      },
      query: unused,
      transactWriteItems: unused,
    };
    const unit = (): number => random.unit();
    const store = createDynamoStore({ calls, tableName: TABLE_NAME, policy: POLICY, clock: process, random: unit });
    const caller = { principal: `${NAMESPACE}/direct`, namespace: NAMESPACE, requestId: "direct" };
    const clocks = () => ({ earliestMs: nowMs(), latestMs: nowMs() });
    const api = lockService({ store, log: () => undefined, clock: process, exposeCause: true }, caller, clocks);
    const client = createClient({ api, clock: process, random: unit, ids: new LeaseIds(process, (count) => random.bytes(count)) });
    return { client, sent };
  }

  const scene: Partition = { world, join, units: () => charged, onWritten: () => undefined };
  table.onWritten = ({ after }) => scene.onWritten(fromItem(after));
  return scene;
}

/** A release, as it went. */
export interface Released {
  readonly outcome: string;
  readonly writes: number;
  readonly atMs: number;
}

/** Releases a lease, and counts its writes. */
export async function release({ world }: Partition, { sent }: Member, lease: Lease): Promise<Released> {
  const before = sent.writes;
  const outcome = await lease.release().catch((error: unknown) => (error as Error).name);
  return { outcome, writes: sent.writes - before, atMs: world.nowMs };
}
