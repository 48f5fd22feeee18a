/** Assembles a deployed function from its environment, which the caller passes in. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { isServerWait, LIMITS, SERVER_WAIT_RULE } from "../lib/core/limits.js";
import type { LockPolicy } from "../lib/core/record.js";
import { createPolicy } from "../lib/core/policy.js";
import { randomNumber } from "../lib/core/random.js";
import { systemClock } from "../lib/core/time.js";
import { withoutLeaseIds } from "../lib/service/log.js";
import { tellingConflicts } from "../lib/store/dynamo/conflicts.js";
import { createDynamoStore } from "../lib/store/dynamo/dynamo-store.js";
import { sleeperPutter } from "../lib/store/dynamo/sleeper-store.js";
import { tableCalls } from "../lib/store/dynamo/table-access.js";
import { type HandlerDeps, type Mount, createHandler } from "./handler.js";
import { printed, printedCount } from "./printed.js";
import { type Tenancy, tenancyFrom } from "./tenancy.js";

/** The parts of a function that are not the handler's. */
interface Parts {
  readonly client?: DynamoDBClient;
  readonly print?: (line: object) => void;
}

/** The environment of a function. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Creates a handler for `env`:
 *
 * - `HOLDFAST_TABLE`: the table's name.
 * - `HOLDFAST_TENANT`: `account`, `role` or `claim:NAME`. Without it, all callers share one namespace.
 * - `HOLDFAST_RETENTION_MS` and `HOLDFAST_CLOCK_ERROR_MS`: the lock policy.
 * - `HOLDFAST_LOG_REFUSALS`: the share of refusals that are logged, from 0 to 1. The others are printed only with what metrics count.
 * - `HOLDFAST_SERVER_WAIT_MS`: the longest time for which a waiting request is held.
 * - `HOLDFAST_WAKE`: `1` if an agent wakes the sleepers of the table. Without it, requests to sleep are refused.
 * - `HOLDFAST_METRIC_PREFIXES`: key prefixes, separated by commas, with separate metrics.
 * - `HOLDFAST_OWN_URL`: the URL by which clients reach this service, or several, separated by commas. They are written into the table, and a
 *   client with the URLs of several services sees by them that these use one table.
 * - `HOLDFAST_REGIONS`: the Regions of the table's replicas, separated by commas. Such a table has no transactions, so sets are acquired in parts,
 *   and a line `conflict` tells each write that met one of another Region. Without it, the table is one of one Region.
 * - `HOLDFAST_MOUNT`: `function-url` for the function behind function URLs. Without it, the function is behind the API.
 *
 * `print` receives each printed line, by default the standard output; `log` receives the whole lines instead.
 *
 * @throws Error naming the missing or invalid variable, when the function starts.
 */
export function compose(
  env: Environment,
  { client, store, log, print = write, ...deps }: Partial<HandlerDeps> & Parts = {},
): ReturnType<typeof createHandler> {
  const policy = policyOf(env);
  const tenancy = tenancyOf(env);
  const sampled = number(env, "HOLDFAST_LOG_REFUSALS") ?? 1;
  const prefixes = metricPrefixesOf(env);
  const doors = ownUrlsOf(env);
  const onTable = (): Pick<HandlerDeps, "store" | "sleepers"> => {
    const calls = tableCalls(client, {}, { clock: systemClock, random: randomNumber, env });
    const place = { calls, tableName: required(env, "HOLDFAST_TABLE"), region: async () => env["AWS_REGION"] };
    const sleepers = env["HOLDFAST_WAKE"] === "1" && { sleepers: sleeperPutter(place) };
    const transactions = listIn(env, "HOLDFAST_REGIONS").length === 0;
    const told = transactions ? calls : tellingConflicts(calls, () => print({ event: "conflict" }));
    const deps = { policy, clock: systemClock, random: randomNumber, doors, transactions };
    return { store: createDynamoStore({ ...place, calls: told, ...deps }), ...sleepers };
  };
  return createHandler({
    ...(store ? { store } : onTable()),
    clock: systemClock,
    onFailure: (error, requestId) => {
      const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
      print({ event: "failed", requestId, error: withoutLeaseIds(said) });
    },
    serverWaitMs: serverWaitOf(env),
    mount: mountOf(env),
    ...(tenancy !== undefined && { tenancy }),
    ...deps,
    log: (line) => {
      if (line.event === "refused" && randomNumber() >= sampled) print(printedCount(line, prefixes));
      else if (log) log(line);
      else print(printed(line, prefixes));
    },
  });
}

/** Returns the tenancy that `env` configures; undefined if there is none. @throws Error if it is invalid. */
export function tenancyOf(env: Environment): Tenancy | undefined {
  const value = env["HOLDFAST_TENANT"];
  if (value === undefined || value === "") return undefined;
  return tenancyFrom("HOLDFAST_TENANT", value);
}

/** Returns the key prefixes that `env` gives separate metrics. */
export function metricPrefixesOf(env: Environment): readonly string[] {
  return listIn(env, "HOLDFAST_METRIC_PREFIXES");
}

/** Returns the parts of a variable between its commas; none if it is not set. */
export function listIn(env: Environment, name: string): readonly string[] {
  return (env[name] ?? "").split(",").filter(Boolean);
}

/** Returns the URLs by which clients reach the service. @throws Error naming the variable if one is no URL of http or https */
function ownUrlsOf(env: Environment): readonly string[] {
  const name = "HOLDFAST_OWN_URL";
  const urls = listIn(env, name);
  for (const url of urls) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new Error(`${name}: ${JSON.stringify(url)} is no http URL`);
  }
  return urls;
}

/** Returns what `env` says that the function is mounted behind. @throws Error if it is neither */
function mountOf(env: Environment): Mount {
  const mount = env["HOLDFAST_MOUNT"] ?? "api";
  if (mount === "api" || mount === "function-url") return mount;
  throw new Error(`HOLDFAST_MOUNT: ${JSON.stringify(mount)} is not api or function-url`);
}

function serverWaitOf(env: Environment): number {
  const name = "HOLDFAST_SERVER_WAIT_MS";
  const waitMs = number(env, name) ?? LIMITS.serverWaitMs;
  if (!isServerWait(waitMs)) throw new Error(`${name}: ${waitMs} given; ${SERVER_WAIT_RULE}`);
  return waitMs;
}

/** Returns the lock policy that `env` configures. @throws Error naming the invalid variable. */
export function policyOf(env: Environment): LockPolicy {
  return createPolicy({
    ...optional(env, "HOLDFAST_RETENTION_MS", "retentionMs"),
    ...optional(env, "HOLDFAST_CLOCK_ERROR_MS", "clockErrorMs"),
  });
}

/** Writes a line of pure JSON, which Lambda takes over as it is. It would wrap a line of `console.log` in another object. */
export function write(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Returns the variable. @throws Error naming it if it is not set */
export function required(env: Environment, name: string): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function number(env: Environment, name: string): number | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (!Number.isFinite(Number(value))) throw new Error(`${name}: ${JSON.stringify(value)} is not a number`);
  return Number(value);
}

function optional<K extends string>(env: Environment, name: string, option: K): Partial<Record<K, number>> {
  const value = number(env, name);
  return (value === undefined ? {} : { [option]: value }) as Partial<Record<K, number>>;
}
