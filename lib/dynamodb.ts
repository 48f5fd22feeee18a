/**
 * `holdfast/dynamodb`: the same client directly on the table. The service runs in this process, with the same core and the same store, and
 * saves one network hop. IAM conditions on the table's leading keys then protect the table. With a `url` the client has two ways, and can
 * use the table only while the service can't be reached (client/transport/failover.ts).
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { ClientOptions } from "./client/client-options.js";
import { checkClient, checkType } from "./client/client-options.js";
import type { LockClient } from "./client/lock-client.js";
import { createClient } from "./client/client.js";
import { fromEnvironment, givenOrSet } from "./client/environment.js";
import { InvalidRequestError } from "./client/errors.js";
import { systemRuntime, secureRandom } from "./client/runtime.js";
import { tellQuietly } from "./client/tell.js";
import { checkVia, failover } from "./client/transport/failover.js";
import type { HttpSettings } from "./client/transport/http-options.js";
import { httpApi } from "./client/transport/http.js";
import { checkHttp, HTTP_OPTIONS } from "./client/transport/http-options.js";
import type { CallerIdentity, Via } from "./core/api/locks.js";
import type { ServiceApi } from "./core/api/runs.js";
import type { PolicyOptions } from "./core/policy.js";
import { createPolicy } from "./core/policy.js";
import { systemClock } from "./core/time.js";
import { NAMESPACE, SHARED_NAMESPACE } from "./service/caller.js";
import { tableClocks } from "./service/clocks.js";
import { lockService } from "./service/service.js";
import type { Log } from "./service/log.js";
import { NO_LOG } from "./service/log.js";
import { createDynamoStore } from "./store/dynamo/dynamo-store.js";
import { FORMAT_VERSION } from "./store/dynamo/item.js";
import type { TransportOption } from "./store/dynamo/choose-transport.js";
import { TABLE_CALLS } from "./store/dynamo/table.js";
import { watchTableClock } from "./store/dynamo/table-clock.js";

export * from "./index.js";
export type { LogLine } from "./service/log.js";
export type { PolicyOptions } from "./core/policy.js";
export type { ChosenTransport, TransportOption } from "./store/dynamo/choose-transport.js";
export { transportOf } from "./store/dynamo/choose-transport.js";

/**
 * Options of a client directly on the table. `tableName` defaults to the environment variable `HOLDFAST_TABLE`. Those of the client over
 * HTTP are for `via`.
 */
export interface DynamoClientOptions extends ClientOptions, PolicyOptions, HttpSettings {
  readonly tableName?: string | undefined;
  /**
   * The way of requests: `"table"` goes straight to it; `"service"` goes over HTTP to `url`, as the client of `holdfast` does; `"auto"` goes
   * over HTTP, and straight to the table while the service can't be reached. Both ways use the same leases, under the principal that the
   * service gives this caller. `use()` changes it, and `health()` shows it.
   * @default "table"
   */
  readonly via?: Via | undefined;
  /** The service's URL. With `via: "table"`, give it for a later `use("service")`. @default HOLDFAST_URL, unless `via` is `"table"` */
  readonly url?: string | undefined;
  /**
   * The tenant's namespace, for a table that has tenants. Clients of different namespaces never contend. On a table without tenants, all
   * callers share the namespace `"default"`, and any other namespace is refused.
   * @default HOLDFAST_NAMESPACE, else "default"; the service's for this caller if it was asked first
   */
  readonly namespace?: string | undefined;
  /** The DynamoDB client. @default a client for the environment's region and credentials, with bounded attempts */
  readonly client?: DynamoDBClient | undefined;
  /**
   * The transport of requests to the table. `"auto"` uses the built-in one, which takes the client's credentials, region, endpoint,
   * connections, time-outs and retries, and a third of the SDK's CPU. If the client carries more than that, such as middleware that
   * traces, requests go through the client. `"sdk"` always uses the client. `transportOf(client)` returns the choice and its reason.
   * @default HOLDFAST_TRANSPORT, else "auto"
   */
  readonly transport?: TransportOption | undefined;
  /** Receives one line for each change of a key's holders and for each refusal. @default no log */
  readonly log?: Log | undefined;
}

const OPTIONS = ["tableName", "namespace", "client", "transport", "log", "clockErrorMs", "retentionMs", "via", ...HTTP_OPTIONS];

/**
 * Creates a client on the table. The client sends nothing until it is asked for a lock.
 * @throws InvalidRequestError if there is no table name or an option does not exist.
 */
export function createLockClient(options: DynamoClientOptions = {}): LockClient {
  checkClient(options, OPTIONS);
  const tableName = givenOrSet("tableName", options.tableName, "HOLDFAST_TABLE");
  const namespaceGiven = options.namespace ?? fromEnvironment("HOLDFAST_NAMESPACE");
  const namespace = namespaceGiven ?? SHARED_NAMESPACE;
  if (!NAMESPACE.test(namespace))
    throw new InvalidRequestError("namespace: must be 1 to 200 characters of A-Z a-z 0-9 . _ : ~ % -", "namespace");
  const transport = options.transport ?? fromEnvironment("HOLDFAST_TRANSPORT") ?? "auto";
  if (!isTransport(transport))
    throw new InvalidRequestError(`transport: must be "auto" or "sdk", not ${JSON.stringify(transport)}`, "transport");
  const { via = "table" } = options;
  checkVia(via);
  const service = serviceOf(options, via);
  const client = options.client ?? new DynamoDBClient(TABLE_CALLS);
  const policy: PolicyOptions = {
    ...(options.clockErrorMs !== undefined && { clockErrorMs: options.clockErrorMs }),
    ...(options.retentionMs !== undefined && { retentionMs: options.retentionMs }),
  };
  const clocks = tableClocks(systemClock, watchTableClock(client, systemClock));
  const { clockErrorMs, retentionMs } = createPolicy(policy);
  const { api, use } = failover({
    ...{ via, service, clock: systemClock, random: secureRandom },
    // Every principal of the HTTP API contains a slash, so "direct" differs from all of them in a shared namespace.
    own: { namespace, principal: "direct", format: FORMAT_VERSION, clockErrorMs, retentionMs },
    configured: [
      "format",
      ...(namespaceGiven === undefined ? [] : (["namespace"] as const)),
      ...(Object.keys(policy) as (keyof PolicyOptions)[]),
    ],
    tell: (event) => void tellQuietly(options.onEvent, event),
    onTable(identity: CallerIdentity) {
      const store = createDynamoStore({
        ...{ client, transport, tableName, clock: systemClock, random: secureRandom },
        policy: createPolicy(identity),
      });
      const caller = { principal: identity.principal, namespace: identity.namespace, requestId: "direct" };
      return lockService({ store, log: options.log ?? NO_LOG, clock: systemClock, exposeCause: true }, caller, clocks);
    },
  });
  return createClient({ ...systemRuntime(api), use, ...(via !== "service" && { transport: "dynamodb" as const }) }, options);
}

/** Returns the operations over HTTP; undefined without a URL. @throws InvalidRequestError if `via` needs one, or it is invalid */
function serviceOf(options: DynamoClientOptions, via: Via): ServiceApi | undefined {
  checkType("url", options.url, "string");
  const url = via === "table" ? options.url : givenOrSet("url", options.url, "HOLDFAST_URL");
  if (url === undefined) return undefined;
  checkHttp(options, url);
  return httpApi({ ...options, url });
}

function isTransport(value: string): value is TransportOption {
  return value === "auto" || value === "sdk";
}
