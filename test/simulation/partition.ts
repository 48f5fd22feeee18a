/**
 * A contended key on a table that answers like DynamoDB, in simulated time. Each process is a direct client of its own, with its own
 * recent-records cache. The figures are the same in every run.
 */
import { LeaseIds } from "../../lib/client/ask/lease-ids.js";
import { createClient } from "../../lib/client/client.js";
import type { Lease } from "../../lib/client/hold/lease-types.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { lockService } from "../../lib/service/service.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { fromItem } from "../../lib/store/dynamo/item.js";
import type { LockRecord } from "../../lib/core/record.js";
import { NAMESPACE, POLICY } from "./backend.js";
import { isThrottled } from "../../lib/store/dynamo/unavailable.js";
import { TABLE_NAME } from "../../lib/testing/served-table.js";
import { ServedTable } from "./dynamo/served-table.js";
import { Random } from "./random.js";
import { Process, World } from "./world.js";

const START_MS = Date.UTC(2027, 0, 1);

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
export function partition({ isBarred = () => false }: { readonly isBarred?: (update: string) => boolean } = {}): Partition {
  const world = new World(START_MS);
  const random = new Random(1);
  const served = new ServedTable(world, random);
  const nowMs = (): number => Math.floor(world.nowMs);

  function join(): Member {
    const process = new Process(world);
    const sent = { writes: 0 };
    const { calls } = served.callsOf(process);
    const counted: TableCalls = {
      ...calls,
      updateItem(input) {
        sent.writes++;
        const { ConditionExpression: condition, UpdateExpression: update } = input;
        const barred = isBarred(update) ? { ...input, ConditionExpression: `attribute_exists(nothing) AND ${condition}` } : input;
        return calls.updateItem(barred).catch((error: unknown) => {
          // What is throttled is not carried out.
          if (isThrottled(error)) sent.writes--;
          throw error;
        });
      },
    };
    const unit = (): number => random.unit();
    const store = createDynamoStore({ calls: counted, tableName: TABLE_NAME, policy: POLICY, clock: process, random: unit });
    const caller = { principal: `${NAMESPACE}/direct`, namespace: NAMESPACE, requestId: "direct" };
    const clocks = () => ({ earliestMs: nowMs(), latestMs: nowMs() });
    const api = lockService({ store, log: () => undefined, clock: process, exposeCause: true }, caller, clocks);
    const client = createClient({ api, clock: process, random: unit, ids: new LeaseIds(process, (count) => random.bytes(count)) });
    return { client, sent };
  }

  const scene: Partition = { world, join, units: () => served.counts().writeUnits, onWritten: () => undefined };
  served.table.onWritten = ({ after }) => scene.onWritten(fromItem(after));
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
