/**
 * Takes from one limit in simulated time, on the arena of the benchmark of crowds. Each process has a store of its own. Counts the writes of
 * each take. The figures are the same in every run.
 */
import { Arena } from "../../bench/crowds/arena.js";
import type { RateWithBurst } from "../../lib/core/rate.js";
import type { TableCalls, UpdateInput } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { type LimitStore, KeyContended } from "../../lib/store/port.js";
import { TABLE_NAME } from "../../lib/testing/served-table.js";
import type { Random } from "../simulation/random.js";
import { Process } from "../simulation/world.js";
import { POLICY } from "./fixture.js";

const NAME = { namespace: "limits", key: "partner" };

/** Takes at random times, or all at once again and again. */
export interface Load {
  readonly rates: readonly RateWithBurst[];
  /** The number of processes. "cold": a new one for each take. */
  readonly processes: number | "cold";
  readonly takes: number;
  /** Takes a second, at random times. Without it, one take of each process at once, each time after the limit has been full. */
  readonly perSec?: number;
  /** The longest wait, in ms. @default 0 */
  readonly waitMs?: number;
}

/** The counts of a load. */
export interface Counts {
  readonly writesPerTake: number;
  readonly granted: number;
  readonly refused: number;
  readonly contended: number;
  /** The refused takes that needed more than two writes. */
  readonly refusedLate: number;
}

/** Plays a load. `change` is applied to each condition on its way. */
export async function play(load: Load, change: (condition: string) => string = (condition) => condition): Promise<Counts> {
  const arena = new Arena(1);
  const { world, random } = arena;
  function newProcess(): { readonly limits: LimitStore; readonly sent: { writes: number } } {
    const sent = { writes: 0 };
    const sending = arena.calls();
    const calls: TableCalls = {
      ...sending,
      updateItem(input: UpdateInput) {
        sent.writes++;
        return sending.updateItem({ ...input, ConditionExpression: change(input.ConditionExpression) });
      },
    };
    const unit = (): number => random.unit();
    return {
      limits: createDynamoStore({ calls, tableName: TABLE_NAME, policy: POLICY, clock: new Process(world), random: unit }).limits,
      sent,
    };
  }
  const { rates, perSec, takes, waitMs = 0 } = load;
  const processes = Array.from({ length: load.processes === "cold" ? 0 : load.processes }, newProcess);
  const counts = { granted: 0, refused: 0, contended: 0, refusedLate: 0 };
  const nowMs = (): number => Math.floor(world.nowMs);
  let ended = 0;
  const take = async ({ limits, sent }: ReturnType<typeof newProcess>): Promise<void> => {
    sent.writes = 0;
    const answer = await limits
      .take(NAME, { rates, cost: 1, waitMs }, () => ({ earliestMs: nowMs(), latestMs: nowMs() }))
      .catch((error: unknown) => {
        if (error instanceof KeyContended) return undefined;
        throw error;
      });
    ended++;
    if (!answer) counts.contended++;
    else if (answer.ok) counts.granted++;
    else {
      counts.refused++;
      if (sent.writes > 2) counts.refusedLate++;
    }
  };
  for (const [index, atMs] of timesOf(load, random).entries())
    world.in(
      atMs,
      () =>
        void take(
          processes[perSec === undefined ? index % processes.length : Math.floor(random.unit() * processes.length)] ?? newProcess(),
        ),
    );
  await world.run(Number.POSITIVE_INFINITY, () => ended === takes);
  return { writesPerTake: arena.counts().writes / takes, ...counts };
}

function timesOf({ rates, perSec, takes, processes }: Load, random: Random): readonly number[] {
  const fillMs = Math.max(...rates.map(({ count, perMs, burst }) => (burst * perMs) / count));
  const crowd = processes === "cold" ? 50 : processes;
  if (perSec === undefined) return Array.from({ length: takes }, (_, index) => Math.floor(index / crowd) * (fillMs + 1000));
  let atMs = 0;
  return Array.from({ length: takes }, () => (atMs += (-Math.log(1 - random.unit()) * 1000) / perSec));
}
