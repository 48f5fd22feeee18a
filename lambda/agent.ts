/**
 * Assembles the function that wakes sleepers and renews tied leases, from its environment, which a schedule invokes once a minute, and the table's
 * stream after an offer; and the one that deletes what is over, of a table without TTL.
 */
import type { DynamoDBBatchResponse, DynamoDBRecord } from "aws-lambda";
import { randomNumber } from "../lib/core/random.js";
import { type Clock, systemClock } from "../lib/core/time.js";
import { type AgentDeps, type SweepPlace, type TieResult, type WakeResult, sweep, wakeOffered } from "../lib/service/agent.js";
import { known, tableClocks } from "../lib/service/clocks.js";
import { withoutLeaseIds } from "../lib/service/log.js";
import { builtInCalls } from "../lib/store/dynamo/built-in-calls.js";
import { createDynamoStore } from "../lib/store/dynamo/dynamo-store.js";
import { environmentSettings } from "../lib/store/dynamo/environment-settings.js";
import { lockAddress } from "../lib/store/dynamo/item-key.js";
import { createSleeperStore } from "../lib/store/dynamo/sleeper-store.js";
import { type SweepPlace as TableSweepPlace, type Swept, sweepTable } from "../lib/store/dynamo/sweep.js";
import { TABLE } from "../lib/store/dynamo/table.js";
import { answerWatcher } from "../lib/store/dynamo/table-clock.js";
import { type Environment, listIn, metricPrefixesOf, policyOf, required, write } from "./compose.js";
import { printed } from "./printed.js";
import { awsIsRunning, awsTell } from "./executions.js";

/** The parts that a test or a local server replaces. */
export type AgentParts = Partial<Pick<AgentDeps, "tell" | "isRunning" | "clock" | "log" | "onFailure">> & {
  readonly print?: (line: object) => void;
};

/** The number of sleepers and tied leases with each result. */
export type SweptSleepers = Readonly<Partial<Record<WakeResult | TieResult, number>>>;

/** The results of which a sweep prints nothing. */
const ROUTINE: ReadonlySet<string> = new Set<WakeResult | TieResult>(["asleep", "left", "renewed"]);

/** An agent, which is called without an event too. */
export interface Agent {
  /** A schedule's event says nothing. @throws Error if a sleeper was left to the next sweep by a failure */
  (event?: { readonly Records?: undefined }): Promise<SweptSleepers>;
  /** A batch of the table's stream. Its records are of keys that are offered to a sleeper. */
  (event: { readonly Records: readonly DynamoDBRecord[] }): Promise<DynamoDBBatchResponse>;
}

/**
 * Creates the agent for `env`, which has the table, its Regions and the policy of the other functions. Its second clock is the table's.
 * @throws Error naming the missing or invalid variable, when the function starts
 */
export function composeAgent(
  env: Environment,
  {
    clock = systemClock,
    tell = awsTell(env, clock),
    isRunning = awsIsRunning(env, clock, randomNumber),
    print = write,
    log,
    onFailure = failureLine(print),
  }: AgentParts = {},
): Agent {
  const prefixes = metricPrefixesOf(env);
  const { place, clocks } = tableOf(env, clock);
  const store = createDynamoStore({ ...place, policy: policyOf(env), clock, random: randomNumber });
  const deps: AgentDeps = {
    store,
    sleepers: createSleeperStore(place),
    tell,
    regions: listIn(env, "HOLDFAST_REGIONS"),
    isRunning,
    clocks,
    clock,
    log: log ?? ((line) => print(printed(line, prefixes))),
    onFailure,
  };
  // A process has one sweep at a time. Another process begins anew.
  const sweepPlace: SweepPlace = {};
  async function sweepAll(): Promise<SweptSleepers> {
    const counts = await sweep(deps, sweepPlace);
    if (Object.keys(counts).some((result) => !ROUTINE.has(result))) print({ event: "swept", ...counts });
    // An error of the function, which the alarm counts. The lines before it say why.
    if (counts.failed) throw new Error(`sleepers left to the next sweep: ${counts.failed}`);
    return counts;
  }
  return ((event) => (event?.Records ? wakeThoseOf(event.Records, deps) : sweepAll())) as Agent;
}

/** Returns the table that `env` names, with every operation on it, and the clocks of what is decided on it: the second is the table's. */
function tableOf(env: Environment, clock: Clock) {
  const watcher = answerWatcher(clock);
  const settings = environmentSettings(env, { clock: systemClock, random: randomNumber });
  if (typeof settings === "string") throw new Error(settings);
  const place = {
    calls: builtInCalls({ ...settings, watcher }),
    tableName: required(env, "HOLDFAST_TABLE"),
    region: async () => env["AWS_REGION"],
  };
  return { place, clocks: tableClocks(clock, watcher.time) };
}

/** The time after which a run of the sweep of the table reads no further page. */
const TABLE_SWEEP_MS = 180_000;

/**
 * Creates the sweep of the table that `env` names: it deletes what is over, in place of TTL, and prints the counts of each run. A process goes
 * on where its last run ended.
 * @throws Error naming the missing or invalid variable, when the function starts; a run throws what ended it early
 */
export function composeTableSweep(
  env: Environment,
  { clock = systemClock, print = write }: Pick<AgentParts, "clock" | "print"> = {},
): () => Promise<Swept> {
  const { place, clocks } = tableOf(env, clock);
  const deps = { ...place, clock, clocks: known(clocks), random: randomNumber };
  const sweepPlace: TableSweepPlace = {};
  return async () => {
    const { failure, ...swept } = await sweepTable(deps, { runMs: TABLE_SWEEP_MS }, sweepPlace);
    print({ event: "table-swept", ...swept });
    // An error of the function, which the alarm counts.
    if (failure !== undefined) throw failure as Error;
    return swept;
  };
}

/** Wakes the sleepers of the keys in these records, and returns the records that shall be sent again. */
async function wakeThoseOf(records: readonly DynamoDBRecord[], deps: AgentDeps): Promise<DynamoDBBatchResponse> {
  const failures = await Promise.all(
    records.map(async ({ dynamodb: { Keys = {}, SequenceNumber = "" } = {} }) => {
      const address = lockAddress(Keys[TABLE.partitionKey]?.S ?? "", Keys[TABLE.sortKey]?.S ?? "");
      try {
        if (address) await wakeOffered(address, deps);
        return [];
      } catch (error) {
        deps.onFailure(error);
        return [{ itemIdentifier: SequenceNumber }];
      }
    }),
  );
  return { batchItemFailures: failures.flat() };
}

function failureLine(print: (line: object) => void): AgentDeps["onFailure"] {
  return (error) => print({ event: "failed", error: withoutLeaseIds(String(error)) });
}
