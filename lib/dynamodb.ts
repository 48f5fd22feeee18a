/**
 * `holdfast/dynamodb`: the same client directly on the table. The service runs in this process, with the same core and the same store, and
 * saves one network hop. IAM conditions on the table's leading keys then protect the table.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { ClientOptions } from "./client/client-options.js";
import { checkClient } from "./client/client-options.js";
import type { LockClient } from "./client/lock-client.js";
import { createClient } from "./client/client.js";
import { fromEnvironment, givenOrSet } from "./client/environment.js";
import { InvalidRequestError } from "./client/errors.js";
import { systemRuntime, secureRandom } from "./client/runtime.js";
import type { PolicyOptions } from "./core/policy.js";
import { createPolicy } from "./core/policy.js";
import { systemClock } from "./core/time.js";
import { NAMESPACE, SHARED_NAMESPACE } from "./service/caller.js";
import { tableClocks } from "./service/clocks.js";
import { lockService } from "./service/service.js";
import type { Log } from "./service/log.js";
import { NO_LOG } from "./service/log.js";
import { createDynamoStore } from "./store/dynamo/dynamo-store.js";
import type { TransportOption } from "./store/dynamo/choose-transport.js";
import { TABLE_CALLS } from "./store/dynamo/table.js";
import { watchTableClock } from "./store/dynamo/table-clock.js";

export * from "./index.js";
export type { LogLine } from "./service/log.js";
export type { PolicyOptions } from "./core/policy.js";
export type { ChosenTransport, TransportOption } from "./store/dynamo/choose-transport.js";
export { transportOf } from "./store/dynamo/choose-transport.js";

/** Options of a client directly on the table. `tableName` defaults to the environment variable `HOLDFAST_TABLE`. */
export interface DynamoClientOptions extends ClientOptions, PolicyOptions {
  readonly tableName?: string;
  /**
   * The tenant's namespace, for a table that has tenants. Clients of different namespaces never contend. On a table without tenants, all
   * callers share the namespace `"default"`, and any other namespace is refused.
   * @default HOLDFAST_NAMESPACE, else "default"
   */
  readonly namespace?: string;
  /** The DynamoDB client. @default a client for the environment's region and credentials, with bounded attempts */
  readonly client?: DynamoDBClient;
  /**
   * The transport of requests to the table. `"auto"` uses the built-in one, which takes the client's credentials, region, endpoint,
   * connections, time-outs and retries, and a third of the SDK's CPU. If the client carries more than that, such as middleware that
   * traces, requests go through the client. `"sdk"` always uses the client. `transportOf(client)` returns the choice and its reason.
   * @default HOLDFAST_TRANSPORT, else "auto"
   */
  readonly transport?: TransportOption;
  /** Receives one line for each change of a key's holders and for each refusal. @default no log */
  readonly log?: Log;
}

const OPTIONS = ["tableName", "namespace", "client", "transport", "log", "clockErrorMs", "retentionMs"];

/**
 * Creates a client on the table. The client sends nothing until it is asked for a lock.
 * @throws InvalidRequestError if there is no table name or an option does not exist.
 */
export function createLockClient(options: DynamoClientOptions = {}): LockClient {
  checkClient(options, OPTIONS);
  const tableName = givenOrSet("tableName", options.tableName, "HOLDFAST_TABLE");
  const namespace = options.namespace ?? fromEnvironment("HOLDFAST_NAMESPACE") ?? SHARED_NAMESPACE;
  if (!NAMESPACE.test(namespace))
    throw new InvalidRequestError("namespace: must be 1 to 200 characters of A-Z a-z 0-9 . _ : ~ % -", "namespace");
  const transport = options.transport ?? fromEnvironment("HOLDFAST_TRANSPORT") ?? "auto";
  if (!isTransport(transport))
    throw new InvalidRequestError(`transport: must be "auto" or "sdk", not ${JSON.stringify(transport)}`, "transport");
  const client = options.client ?? new DynamoDBClient(TABLE_CALLS);
  const policy = createPolicy({
    ...(options.clockErrorMs !== undefined && { clockErrorMs: options.clockErrorMs }),
    ...(options.retentionMs !== undefined && { retentionMs: options.retentionMs }),
  });
  const clocks = tableClocks(systemClock, watchTableClock(client, systemClock));
  const store = createDynamoStore({ client, transport, tableName, policy, clock: systemClock, random: secureRandom });
  // Every principal of the HTTP API contains a slash, so "direct" differs from all of them in a shared namespace.
  const caller = { principal: "direct", namespace, requestId: "direct" };
  return createClient(
    systemRuntime(lockService({ store, log: options.log ?? NO_LOG, clock: systemClock, exposeCause: true }, caller, clocks)),
    options,
  );
}

function isTransport(value: string): value is TransportOption {
  return value === "auto" || value === "sdk";
}
