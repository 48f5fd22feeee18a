/**
 * The access to DynamoDB, by what is given. A client of the AWS SDK is used as it is: it may trace, sign or send in a way of its own. Without
 * one, requests bypass the SDK for 0.6 of its CPU (docs/decisions/018-requests-past-the-sdk.md). The SDK is loaded with the first request
 * that needs it.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../core/time.js";
import { builtInCalls } from "./built-in-calls.js";
import { type AllCalls, type TableCalls, deferredCalls, madeOnce } from "./calls.js";
import { type Environment, environmentSettings } from "./environment-settings.js";
import type { Sdk, TableLocation } from "./sdk-access.js";
import { type AnswerWatcher, type TableTime, answerWatcher, watchTableClock } from "./table-clock.js";

/** The access to the tables of an account in a region. */
export interface TableAccess {
  readonly calls: TableCalls;
  readonly region: () => Promise<string | undefined>;
  /** Returns the table's present time; undefined before the first answer. */
  readonly time: () => TableTime | undefined;
}

/** The dependencies of an access: the clock that measures the table's time, the jitter of retries, and the environment. */
export interface AccessDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly env: Environment;
}

/** Returns the operations through `client`; without one all of them, past the SDK to the location. */
export function tableCalls(client: undefined, location: TableLocation, deps: AccessDeps, watcher?: AnswerWatcher): AllCalls;
export function tableCalls(
  client: DynamoDBClient | undefined,
  location: TableLocation,
  deps: AccessDeps,
  watcher?: AnswerWatcher,
): TableCalls;
export function tableCalls(
  client: DynamoDBClient | undefined,
  { region, endpoint, credentials }: TableLocation,
  deps: AccessDeps,
  watcher?: AnswerWatcher,
): TableCalls {
  if (client) return deferredCalls(async () => (await sdkFor("a client of it is given")).calls(client));
  const location = { region, endpoint, credentials };
  const watched = watcher && { watcher };
  const settings = environmentSettings(deps.env, deps, location);
  if (typeof settings === "object") return builtInCalls({ ...settings, ...watched });
  const transport = madeOnce(async () => builtInCalls({ ...(await (await sdkFor(settings)).settings(location)), ...watched }));
  const all: AllCalls = {
    ...deferredCalls(transport),
    scan: async (input) => (await transport()).scan(input),
    deleteItem: async (input) => (await transport()).deleteItem(input),
  };
  return all;
}

/** Returns the access through `client`; without one, to the location. */
export function tableAccess(client: DynamoDBClient | undefined, location: TableLocation, deps: AccessDeps): TableAccess {
  if (client) {
    const time = watchTableClock(client, deps.clock);
    return { calls: tableCalls(client, location, deps), region: async () => client.config.region(), time };
  }
  const { region = deps.env["AWS_REGION"], credentials } = location;
  const watcher = answerWatcher(deps.clock);
  return {
    calls: tableCalls(undefined, location, deps, watcher),
    region: async () => region ?? (await sdkFor("no Region is given")).region(credentials),
    time: watcher.time,
  };
}

/** Loads the AWS SDK. @throws Error `SdkNotFoundError` that says why it is needed, if it is not installed */
async function sdkFor(reason: string): Promise<Sdk> {
  const { loadSdk } = await import("./load-sdk.js");
  return loadSdk(reason);
}
