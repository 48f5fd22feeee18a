/**
 * The construct `LockService` (`holdfast/cdk`): one table, three functions, and one HTTP API in front of them. Settings are fixed here if
 * locks would break without them, and each such line says how. No name can collide between deployments: two stages, or two constructs in
 * one stack, never share a table.
 */
import { Names, Stack } from "aws-cdk-lib";
import type { DomainMappingOptions, HttpApi, HttpStage, ThrottleSettings } from "aws-cdk-lib/aws-apigatewayv2";
import type { Dashboard } from "aws-cdk-lib/aws-cloudwatch";
import type { IGrantable } from "aws-cdk-lib/aws-iam";
import { Grant } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { ILogGroup } from "aws-cdk-lib/aws-logs";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import { Construct } from "constructs";
import type { Duty } from "../lambda/routes.js";
import { isServerWait, LIMITS, SERVER_WAIT_RULE } from "../lib/core/limits.js";
import { SHARED_NAMESPACE } from "../lib/service/caller.js";
import { callRight, tableRights } from "./access.js";
import type { JwtOptions } from "./api.js";
import { createApi } from "./api.js";
import type { Functions } from "./functions.js";
import { createFunctions, createPageFunction, keyStatement } from "./functions.js";
import { createMetrics } from "./metrics.js";
import { createMonitoring } from "./monitoring.js";
import type { LockTable } from "./table.js";
import { createTable, unfitness } from "./table.js";

/** Options of a lock service. All are optional. */
export interface LockServiceProps {
  /**
   * An existing table: keys `p` and `k`, both strings, TTL attribute `x`, one Region, no index.
   * @default a new table, on demand, with point-in-time recovery and deletion protection, that outlives the stack
   */
  readonly table?: LockTable | undefined;
  /** The customer's key that encrypts the table. @default the known key of `table`, or DynamoDB's own */
  readonly encryptionKey?: IKey | undefined;
  /** Makes callers send JSON Web Tokens instead of signing with IAM. @default IAM */
  readonly jwt?: JwtOptions | undefined;
  /**
   * Tenants, each with its own namespace: the callers of an AWS account (an issuer), of a role or user (a subject), or with the same value
   * in a token claim (`claim:NAME`). The table records whether it has tenants, and refuses a service with another setting
   * (decision 004). @default none: all callers share one namespace
   */
  readonly tenant?: "account" | "role" | `claim:${string}` | undefined;
  /** The rate limit of each route that doesn't acquire, in requests per second. @default 2 000, bursts of 1 000 */
  readonly throttle?: Required<ThrottleSettings> | undefined;
  /** The rate limit of each route that acquires, in requests per second. @default 1 000, bursts of 500 */
  readonly acquireThrottle?: Required<ThrottleSettings> | undefined;
  /**
   * True to serve the console at `/console`. Its files are open and hold no data; the page asks for a token, and the same authorizer checks
   * it on each look and change (decision 029). It needs `jwt`: a browser can't sign with IAM. @default false
   */
  readonly console?: boolean | undefined;
  /** Your own domain for the API. @default the API's own address */
  readonly domain?: DomainMappingOptions | undefined;
  /**
   * The reserved concurrency of each function, which is also its maximum. Reserving it for `hold` protects holders from a crowd of waiters.
   * @default none: a new account has 10 for all its functions, and AWS refuses to reserve any of them
   */
  readonly reservedConcurrency?: Readonly<Partial<Record<Duty, number>>> | undefined;
  /**
   * The longest time for which the function `acquire` holds a waiting request (`Prefer: wait`), in ms, from 0 to 5 000. The request
   * occupies an execution meanwhile. With 0 it is answered at once with a retry time, which the SDK handles.
   * @default 0, because heartbeats need the same executions; 5 000 if `reservedConcurrency` separates them, by `hold` or `acquire`
   */
  readonly serverWaitMs?: number | undefined;
  /** The memory of each function, in MB, which also determines its share of a CPU (docs/operating.md has what was measured). @default 512 */
  readonly memorySizeMb?: number | undefined;
  /** The topic that the alarms notify. @default none: the alarms only change their state */
  readonly alarmTopic?: ITopic | undefined;
  /** The retention of the logs: the history of holders, and the access log. @default 3 months */
  readonly logRetention?: RetentionDays | undefined;
  /** Separate metrics for keys that begin with one of these prefixes, such as `"ORDER_"`; at most ten. @default none */
  readonly metricPrefixes?: readonly string[] | undefined;
  /** True to trace the functions with X-Ray, which is charged for each trace. @default false */
  readonly tracing?: boolean | undefined;
}

/** A grantee, which can also take environment variables if it has an environment. */
export type Client = IGrantable & {
  addEnvironment?(name: string, value: string): unknown;
};

const METRIC_PREFIXES_MAX = 10;
const METRIC_PREFIX = /^[A-Za-z0-9._:~-]{1,50}$/;

/** A lock service. Callers sign with IAM, or send a token, and call `url`. */
export class LockService extends Construct {
  /** The table that stores the locks. */
  readonly table: LockTable;
  /** The service's functions, by duty; only the API may invoke them. */
  readonly functions: Functions;
  /** The API. A caller needs `execute-api:Invoke` on it, which {@link grantClient} grants. */
  readonly api: HttpApi;
  /** The API's only stage. */
  readonly stage: HttpStage;
  /** The log of all grants, releases and refusals. */
  readonly log: ILogGroup;
  /** The CloudWatch dashboard. */
  readonly dashboard: Dashboard;
  /** The base URL, without a trailing slash, for `HOLDFAST_URL`. */
  readonly url: string;
  readonly #props: LockServiceProps;
  readonly #encryptionKey: IKey | undefined;

  constructor(scope: Construct, id: string, props: LockServiceProps = {}) {
    super(scope, id);
    checkProps(props);
    this.#props = props;
    const { logRetention = RetentionDays.THREE_MONTHS, tenant, metricPrefixes = [] } = props;
    const table = props.table ?? createTable(this, props.encryptionKey);
    const encryptionKey = props.encryptionKey ?? table.encryptionKey;
    this.#encryptionKey = encryptionKey;
    // Validated at synth time, because a replica can be added after this constructor.
    this.node.addValidation({ validate: () => unfitness(table) });
    const service = serviceName(this);
    const reservedConcurrency = props.reservedConcurrency ?? {};
    const isParted = (reservedConcurrency.hold ?? reservedConcurrency.acquire) !== undefined;
    const serverWaitMs = props.serverWaitMs ?? (isParted ? LIMITS.serverWaitMs : 0);
    const { functions, log } = createFunctions(this, {
      table,
      encryptionKey,
      logRetention,
      memorySizeMb: props.memorySizeMb ?? 512,
      tracing: props.tracing ?? false,
      reservedConcurrency,
      environment: {
        HOLDFAST_SERVER_WAIT_MS: String(serverWaitMs),
        ...(tenant !== undefined && { HOLDFAST_TENANT: tenant }),
        ...(metricPrefixes.length > 0 && { HOLDFAST_METRIC_PREFIXES: metricPrefixes.join(",") }),
      },
    });
    const { api, stage } = createApi(this, {
      functions,
      page: props.console ? createPageFunction(this, log) : undefined,
      jwt: props.jwt,
      throttle: props.throttle ?? { rateLimit: 2_000, burstLimit: 1_000 },
      acquireThrottle: props.acquireThrottle ?? { rateLimit: 1_000, burstLimit: 500 },
      domain: props.domain,
      logRetention,
    });
    this.table = table;
    this.functions = functions;
    this.api = api;
    this.stage = stage;
    this.log = log;
    this.url = props.domain ? stage.domainUrl.replace(/\/$/, "") : api.apiEndpoint;
    createMetrics(this, { service, log, hasPrefixes: metricPrefixes.length > 0 });
    this.dashboard = createMonitoring(this, { api, stage, functions, log, service, alarmTopic: props.alarmTopic });
  }

  /**
   * Allows `client` to use locks and runs over HTTP, and sets its `HOLDFAST_URL`. With a prefix, it covers only keys that begin with it.
   * That excludes sets, whose keys are in the body, which IAM does not inspect (the SDK then sends each heartbeat separately).
   * @throws Error if the service uses tokens, or the prefix is invalid for keys.
   */
  grantClient(client: Client, { prefix }: { readonly prefix?: string | undefined } = {}): Grant {
    return this.#grantCalls(client, ["acquire", "hold"], prefix);
  }

  /** Allows `client` to break holds, list and reset, in addition to the permissions of {@link grantClient}. */
  grantAdmin(client: Client): Grant {
    return this.#grantCalls(client, ["acquire", "hold", "admin"]);
  }

  /**
   * Allows `client` to use the table directly (`holdfast/dynamodb`) for the keys of one namespace, and sets its `HOLDFAST_TABLE` and
   * `HOLDFAST_NAMESPACE`. Without tenants, that is the common namespace. If accounts are tenants, it is this account's unless another is
   * given. For other tenants it must be given.
   * @throws Error if the namespace is invalid here.
   */
  grantDirect(client: Client, options: { readonly namespace?: string | undefined } = {}): Grant {
    const namespace = this.#namespaceOf(options);
    const [items, tenancy] = tableRights(this.table, namespace);
    client.addEnvironment?.("HOLDFAST_TABLE", this.table.tableName);
    client.addEnvironment?.("HOLDFAST_NAMESPACE", namespace);
    if (this.#encryptionKey) client.grantPrincipal.addToPrincipalPolicy(keyStatement(this, this.#encryptionKey));
    return Grant.addToPrincipal({ grantee: client, ...items }).combine(Grant.addToPrincipal({ grantee: client, ...tenancy }));
  }

  #namespaceOf({ namespace }: { readonly namespace?: string | undefined }): string {
    const { tenant, jwt } = this.#props;
    if (tenant === undefined) {
      if (namespace === undefined || namespace === SHARED_NAMESPACE) return SHARED_NAMESPACE;
      throw new Error(`namespace: ${JSON.stringify(namespace)} given; this service has no tenants, so leave it out, or set tenant`);
    }
    if (namespace === SHARED_NAMESPACE) throw new Error(`namespace: "${SHARED_NAMESPACE}" given; with tenant it must be a tenant's own`);
    if (namespace !== undefined) return namespace;
    if (tenant === "account" && !jwt) return Stack.of(this).account;
    throw new Error(`namespace: none given; with tenant ${JSON.stringify(tenant)} it must be a tenant's own`);
  }

  #grantCalls(client: Client, duties: readonly Duty[], prefix?: string): Grant {
    if (this.#props.jwt) throw new Error("grant: this service takes tokens (jwt), and IAM has nothing to say of its callers");
    const right = callRight(this.api, duties, prefix);
    client.addEnvironment?.("HOLDFAST_URL", this.url);
    return Grant.addToPrincipal({ grantee: client, ...right });
  }
}

/** The special characters allowed in a dashboard's name; alarms and metrics allow more. */
const NAME_CHARACTERS = "_-";
/** The longest name, which leaves room for an alarm's name or the Region within CloudWatch's 255 characters. */
const NAME_MAX_CHARS = 200;

/**
 * Returns the name for this service's metrics, alarms and dashboard: the stack's name, the construct's path and a hash of both, unique in
 * the account.
 */
export function serviceName(scope: Construct): string {
  return Names.uniqueResourceName(scope, { separator: "-", maxLength: NAME_MAX_CHARS, allowedSpecialCharacters: NAME_CHARACTERS });
}

function checkProps(props: LockServiceProps): void {
  const { table, encryptionKey, tenant, jwt, serverWaitMs, metricPrefixes = [], domain } = props;
  if (props.console && !jwt) throw new Error("console: a browser can't sign with IAM, so it needs jwt; without it, `holdfast ui` signs");
  if (props.console && domain?.mappingKey !== undefined) {
    throw new Error("console: its page is at /console of the host, so the domain must have no mappingKey");
  }
  if (serverWaitMs !== undefined && !isServerWait(serverWaitMs))
    throw new Error(`serverWaitMs: ${serverWaitMs} given; ${SERVER_WAIT_RULE}`);
  if (tenant === "claim:") throw new Error('tenant: "claim:" names no claim; it must be claim:NAME');
  if (tenant?.startsWith("claim:") && !jwt) throw new Error("tenant: a claim is in a token, so it needs jwt");
  for (const name of ["audience", "scopes", "adminScopes"] as const) {
    if (jwt?.[name]?.some((entry) => entry !== "") === false) {
      throw new Error(
        `jwt.${name}: ${JSON.stringify(jwt[name])} given; it must name at least one, since an empty list asks for nothing of a token`,
      );
    }
  }
  if (metricPrefixes.length > METRIC_PREFIXES_MAX) {
    throw new Error(`metricPrefixes: at most ${METRIC_PREFIXES_MAX}, since each makes metrics of its own`);
  }
  for (const prefix of metricPrefixes) {
    if (!METRIC_PREFIX.test(prefix)) throw new Error(`metricPrefixes: ${JSON.stringify(prefix)} is how no key begins`);
  }
  if (table && encryptionKey && table.encryptionKey && table.encryptionKey.keyArn !== encryptionKey.keyArn) {
    throw new Error("encryptionKey: the table is encrypted with another key");
  }
}
