/**
 * `holdfast/dynamodb`: the same client directly on the table. The service runs in this process, with the same core and the same store, and
 * saves one network hop. IAM conditions on the table's leading keys then protect the table. With a `url` the client has two ways, and can
 * use the table only while the service can't be reached (client/wire/failover.ts).
 */
import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { type ClientOptions, checkClient } from "./client/calls/client-options.js";
import { type Checks, ms, must, ofType, unchecked } from "./client/wire/checks.js";
import type { LockClient } from "./client/calls/lock-client.js";
import { createClient } from "./client/client.js";
import { environment, fromEnvironment, optionOrVariable } from "./client/wire/environment.js";
import { InvalidRequestError } from "./client/wire/errors.js";
import { systemRuntime } from "./client/runtime.js";
import { emitQuietly } from "./client/wire/events.js";
import { failover } from "./client/wire/failover.js";
import { serviceAt } from "./client/wire/doors.js";
import { callersOf } from "./client/wire/http.js";
import { type HttpOptions, checkUrl, HTTP_OPTIONS, urlsOf } from "./client/wire/http-options.js";
import { type Way, checkVia } from "./client/wire/ways.js";
import type { Via } from "./core/api/locks.js";
import { DEFAULTS, RETENTION_MIN_MS } from "./core/limits.js";
import { given } from "./core/members.js";
import { type PolicyOptions, createPolicy } from "./core/policy.js";
import { randomNumber } from "./core/random.js";
import { systemClock } from "./core/time.js";
import { NAMESPACE, SHARED_NAMESPACE } from "./service/caller.js";
import { tableClocks } from "./service/clocks.js";
import { lockService } from "./service/service.js";
import { type Log, NO_LOG } from "./service/log.js";
import { createDynamoStore } from "./store/dynamo/dynamo-store.js";
import { FORMAT_VERSION } from "./store/dynamo/item.js";
import type { TableLocation } from "./store/dynamo/sdk-access.js";
import { tableAccess } from "./store/dynamo/table-access.js";

export * from "./index.js";
export type { LogLine } from "./service/log.js";
export type { PolicyOptions } from "./core/policy.js";

/**
 * Options of a client directly on the table. `tableName` defaults to the environment variable `HOLDFAST_TABLE`. Those of the client over
 * HTTP are for `via`.
 */
export interface DynamoClientOptions extends ClientOptions, PolicyOptions, Omit<HttpOptions, "url"> {
  readonly tableName?: string | undefined;
  /**
   * The way of requests: `"table"` goes straight to it; `"service"` goes over HTTP to `url`, as the client of `holdfast` does; `"auto"` goes
   * over HTTP, and straight to the table while the service can't be reached. Both ways use the same leases, under the principal that the
   * service gives this caller. `use()` changes it, and `health()` shows it.
   * @default "table"
   */
  readonly via?: Via | undefined;
  /**
   * The service's URL, or those of several services of one table, the nearest first. With `via: "table"`, give it for a later
   * `use("service")`. @default HOLDFAST_URL, in which commas separate several, unless `via` is `"table"`
   */
  readonly url?: string | readonly string[] | undefined;
  /**
   * The tenant's namespace, for a table that has tenants. Clients of different namespaces never contend. On a table without tenants, all
   * callers share the namespace `"default"`, and any other namespace is refused.
   * @default HOLDFAST_NAMESPACE, else "default"; the service's for this caller if it was asked first
   */
  readonly namespace?: string | undefined;
  /**
   * A DynamoDB client of your own. Every request goes through it, with its middleware (such as tracing), time-outs and retries. Without
   * one, requests bypass the SDK for 0.6 of its CPU, and have three attempts of at most 2 s each. @default none
   */
  readonly client?: DynamoDBClient | undefined;
  /** The table's Region. Not with `client` or `regions`. @default what the AWS SDK finds: environment, profile */
  readonly region?: string | undefined;
  /**
   * The Regions of a global table with strong consistency, the nearest first; but that of AWS_REGION comes first if it is one of them.
   * Requests go to the first that answers, and leases, places in queues and runs go on through another. Sets are acquired in parts, since such a
   * table has no transactions. Not with `client` or `region`. @default HOLDFAST_REGIONS, separated by commas, if neither is given; else the
   * table is in one Region
   */
  readonly regions?: readonly string[] | undefined;
  /**
   * The URL of DynamoDB, such as a VPC endpoint's or a local engine's. With `regions`, an object with the URL of each. Not with `client`.
   * @default what the AWS SDK finds: AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, profile, else the Region's
   */
  readonly endpoint?: string | Readonly<Record<string, string>> | undefined;
  /**
   * AWS credentials, or the AWS SDK's function that provides them; they are asked for again before they expire. Not with `client`.
   * @default what the AWS SDK finds: environment, profile, SSO, container, instance
   */
  readonly credentials?: DynamoDBClientConfig["credentials"] | undefined;
  /** Receives one line for each change of a key's holders and for each refusal. @default no log */
  readonly log?: Log | undefined;
}

/** The table, beside its place. */
interface TableOptions {
  readonly tableName: string;
  readonly transactions?: boolean;
  readonly doors?: readonly string[];
}

const checkRegions = must(
  (regions) => Array.isArray(regions) && regions.length > 0 && regions.every((one) => typeof one === "string" && one !== ""),
  "it must be a list of Regions, such as us-east-1",
);

const OPTIONS: Checks<Omit<DynamoClientOptions, keyof ClientOptions>> = {
  tableName: unchecked,
  namespace: unchecked,
  client: ofType("object"),
  region: unchecked,
  regions: checkRegions,
  endpoint: unchecked,
  credentials: unchecked,
  log: ofType("function"),
  via: unchecked,
  clockErrorMs: ms(0, DEFAULTS.clockGuardMs - 1),
  retentionMs: ms(RETENTION_MIN_MS),
  ...HTTP_OPTIONS,
};

/** A wrong name would be refused by DynamoDB as a wrong request, and not as a table that is not there. */
const checkTable = must((name) => typeof name === "string" && /^[\w.:/-]{1,1024}$/.test(name), "it must be a table's name or ARN");

/**
 * Creates a client on the table. The client sends nothing until it is asked for a lock.
 * @throws InvalidRequestError if there is no table name, or an option does not exist or is invalid.
 */
export function createLockClient(options: DynamoClientOptions = {}): LockClient {
  checkClient(options, OPTIONS);
  const tableName = optionOrVariable("tableName", options.tableName, "HOLDFAST_TABLE");
  checkTable("tableName", tableName);
  const namespaceGiven = options.namespace ?? fromEnvironment("HOLDFAST_NAMESPACE");
  const namespace = namespaceGiven ?? SHARED_NAMESPACE;
  if (!NAMESPACE.test(namespace))
    throw new InvalidRequestError("namespace: must be 1 to 200 characters of A-Z a-z 0-9 . _ : ~ % -", "namespace");
  checkLocation(options);
  const { via = "table" } = options;
  checkVia(via);
  const urls = urlsFor(options, via);
  const policy: PolicyOptions = given({ clockErrorMs: options.clockErrorMs, retentionMs: options.retentionMs });
  const { clockErrorMs, retentionMs } = createPolicy(policy);
  const { api, use } = failover({
    via,
    ways: [...urls.map((url) => serviceAt({ ...options, url })), ...tablesOf(options, tableName)],
    clock: systemClock,
    random: randomNumber,
    // Every principal of the HTTP API contains a slash, so "direct" differs from all of them in a shared namespace.
    own: { namespace, principal: "direct", format: FORMAT_VERSION, clockErrorMs, retentionMs },
    configured: [
      "format",
      ...(namespaceGiven === undefined ? [] : (["namespace"] as const)),
      ...(Object.keys(policy) as (keyof PolicyOptions)[]),
    ],
    emit: (event) => void emitQuietly(options.onEvent, event),
  });
  const callers = urls.length > 0 ? callersOf(options) : undefined;
  return createClient({ ...systemRuntime(api), callers, use, ...(via !== "service" && { transport: "dynamodb" as const }) }, options);
}

/** Returns the ways straight to the table: one for each of its Regions, the own Region first. */
function tablesOf({ regions: listed, endpoint, ...options }: DynamoClientOptions, tableName: string): readonly Way[] {
  const isElsewhere = options.client !== undefined || options.region !== undefined;
  const regions = listed ?? (isElsewhere ? undefined : fromEnvironment("HOLDFAST_REGIONS")?.split(","));
  if (!listed && regions) checkRegions("HOLDFAST_REGIONS", regions);
  if (!regions) return [tableAt({ ...options, endpoint: endpoint as string | undefined }, { tableName })];
  const own = fromEnvironment("AWS_REGION");
  const nearest = [...new Set([...regions.filter((region) => region === own), ...regions])];
  const endpointOf = (region: string): string | undefined => (typeof endpoint === "object" ? endpoint[region] : endpoint);
  return nearest.map((region) =>
    tableAt({ ...options, region, endpoint: endpointOf(region) }, { tableName, transactions: false, doors: [region] }),
  );
}

/** Returns the way straight to the table at one place. */
function tableAt(options: Omit<DynamoClientOptions, "endpoint"> & TableLocation, table: TableOptions): Way {
  const { calls, region, time } = tableAccess(options.client, options, { clock: systemClock, random: randomNumber, env: environment() });
  const clocks = tableClocks(systemClock, time);
  return {
    kind: "table",
    door: table.doors?.[0],
    open(identity) {
      const deps = { ...table, calls, region, clock: systemClock, random: randomNumber, policy: createPolicy(identity) };
      const caller = { principal: identity.principal, namespace: identity.namespace, requestId: "direct" };
      const service = { store: createDynamoStore(deps), log: options.log ?? NO_LOG, clock: systemClock, exposeCause: true };
      return lockService(service, caller, clocks);
    },
  };
}

/** Returns the URLs of services; none without one. @throws InvalidRequestError if `via` needs one, or it is invalid */
function urlsFor({ url }: DynamoClientOptions, via: Via): readonly string[] {
  return via === "table" && url === undefined ? [] : urlsOf(url);
}

/** @throws InvalidRequestError naming the option that is invalid, or that a client of the caller's has already */
function checkLocation({ client, region, regions, endpoint, credentials }: DynamoClientOptions): void {
  if (region !== undefined && !(typeof region === "string" && region !== ""))
    throw new InvalidRequestError("region: must be the name of a Region, such as eu-west-1", "region");
  checkEndpoint(endpoint, regions);
  if (credentials !== undefined && !isCredentials(credentials))
    throw new InvalidRequestError("credentials: must have an accessKeyId and a secretAccessKey, or be a function", "credentials");
  const [both] = Object.entries({ region, regions, endpoint, credentials }).find(([, value]) => client && value !== undefined) ?? [];
  if (both !== undefined) throw new InvalidRequestError(`${both}: not with client, which has its own`, both);
  if (region !== undefined && regions !== undefined) throw new InvalidRequestError("region: not with regions", "region");
}

/** @throws InvalidRequestError unless it is a URL, or with `regions` one for each of them */
function checkEndpoint(endpoint: unknown, regions: readonly string[] | undefined): void {
  if (endpoint === undefined) return;
  if (!regions) {
    if (typeof endpoint !== "string") throw new InvalidRequestError("endpoint: must be a string", "endpoint");
    return checkUrl("endpoint", endpoint);
  }
  const names = typeof endpoint === "object" && endpoint !== null ? Object.keys(endpoint) : [];
  if (names.length !== new Set(regions).size || !regions.every((region) => names.includes(region)))
    throw new InvalidRequestError("endpoint: must have the URL of each of the regions, and no other, as { region: url }", "endpoint");
  for (const url of Object.values(endpoint as object)) checkUrl("endpoint", url);
}

function isCredentials(value: unknown): boolean {
  const { accessKeyId, secretAccessKey } = (value ?? {}) as { readonly accessKeyId?: unknown; readonly secretAccessKey?: unknown };
  return typeof value === "function" || [accessKeyId, secretAccessKey].every((part) => typeof part === "string" && part !== "");
}
