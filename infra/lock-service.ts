/**
 * The construct `LockService` (`holdfast/cdk`): one table, three functions, one HTTP API before them. What
 * is fixed here is fixed because a lock breaks without it; each such line says how. Nothing has a name that
 * two deployments could share: two stages, or two of these in one stack, never meet in a table.
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
import { createFunctions, keyStatement } from "./functions.js";
import { createMonitoring } from "./monitoring.js";
import type { LockTable } from "./table.js";
import { createTable, unfitness } from "./table.js";

/** Options of a lock service. All of them may be left out. */
export interface LockServiceProps {
  /**
   * A table that is there already: keys `p` and `k`, both strings, TTL attribute `x`, one Region, no index.
   * @default a table of its own, on demand, with point-in-time recovery and deletion protection, that outlives the stack
   */
  readonly table?: LockTable;
  /** The customer's key that the table is encrypted with. @default the key that `table` is known to have, or DynamoDB's own */
  readonly encryptionKey?: IKey;
  /** Callers bring JSON Web Tokens instead of signing with IAM. @default IAM */
  readonly jwt?: JwtOptions;
  /**
   * Tenants, each with a namespace of its own, in which alone its callers meet: everybody of an AWS account (an issuer),
   * those of one role or user (one subject), or those whose token says the same in a claim (`claim:NAME`). The table
   * records whether it has tenants, and refuses a service that says otherwise (decision 004). @default none: all callers share one namespace
   */
  readonly tenant?: "account" | "role" | `claim:${string}`;
  /** Requests a second to each route that doesn't acquire. @default 2 000, bursts of 1 000 */
  readonly throttle?: Required<ThrottleSettings>;
  /** Requests a second to each route that acquires. @default 1 000, bursts of 500 */
  readonly acquireThrottle?: Required<ThrottleSettings>;
  /** A domain of your own for the API. @default the API's own address */
  readonly domain?: DomainMappingOptions;
  /**
   * Concurrent executions that are kept for a function, and are its most: `hold` is what keeps a crowd from the
   * holders. @default none: a new account has 10 for all its functions, and AWS refuses to reserve any of them
   */
  readonly reservedConcurrency?: Readonly<Partial<Record<Duty, number>>>;
  /**
   * For how long the function `acquire` may hold a request that waits (`Prefer: wait`), in ms, from 0 to 5 000. The request occupies
   * an execution meanwhile; 0 answers it at once with when to come again, which is what the SDK expects of a service.
   * @default 0, since heartbeats need the same executions; 5 000 where `reservedConcurrency` parts them, by `hold` or `acquire`
   */
  readonly serverWaitMs?: number;
  /** Memory of each function, which also buys its share of a CPU (docs/operating.md has what was measured). @default 512 */
  readonly memorySizeMb?: number;
  /** Told when the service needs somebody. @default nobody: the alarms only show */
  readonly alarmTopic?: ITopic;
  /** For how long the logs are kept: who held what and when, and the access log. @default 3 months */
  readonly logRetention?: RetentionDays;
  /** Metrics are also kept apart for keys that begin with one of these, such as `"ORDER_"`; at most ten. @default none */
  readonly metricPrefixes?: readonly string[];
  /** Whether X-Ray traces the functions. @default true */
  readonly tracing?: boolean;
}

/** Somebody who can be given rights, and where it has an environment, what it needs to know as well. */
export type Client = IGrantable & {
  addEnvironment?(name: string, value: string): unknown;
};

const METRIC_PREFIXES_MAX = 10;
const METRIC_PREFIX = /^[A-Za-z0-9._:~-]{1,50}$/;

/** A lock service of its own: callers sign with IAM, or bring a token, and send to `url`. */
export class LockService extends Construct {
  /** Where the locks are. */
  readonly table: LockTable;
  /** The service itself, by duty; nothing but the API may invoke them. */
  readonly functions: Functions;
  /** The API; a caller needs `execute-api:Invoke` on it, which {@link grantClient} gives. */
  readonly api: HttpApi;
  /** The API's only stage. */
  readonly stage: HttpStage;
  /** Who held what and when. */
  readonly log: ILogGroup;
  /** What there is to see. */
  readonly dashboard: Dashboard;
  /** The base URL, without a slash at the end: what `HOLDFAST_URL` takes. */
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
    // Looked at when all is there: a replica can be added later.
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
      tracing: props.tracing ?? true,
      reservedConcurrency,
      environment: {
        HOLDFAST_SERVICE: service,
        HOLDFAST_SERVER_WAIT_MS: String(serverWaitMs),
        ...(tenant !== undefined && { HOLDFAST_TENANT: tenant }),
        ...(metricPrefixes.length > 0 && { HOLDFAST_METRIC_PREFIXES: metricPrefixes.join(",") }),
      },
    });
    const { api, stage } = createApi(this, {
      functions,
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
    this.dashboard = createMonitoring(this, { api, stage, functions, log, service, alarmTopic: props.alarmTopic });
  }

  /**
   * Lets `client` take locks and runs over HTTP, and sets its `HOLDFAST_URL`. With a prefix: of keys that begin
   * with it alone, which leaves out sets, since their keys are in the body, where IAM does not look (the SDK
   * then sends each heartbeat by itself).
   * @throws Error when the service takes tokens, or no key begins with the prefix.
   */
  grantClient(client: Client, { prefix }: { readonly prefix?: string } = {}): Grant {
    return this.#grantCalls(client, ["acquire", "hold"], prefix);
  }

  /** Lets `client` break holds, list and reset, beside what {@link grantClient} gives. */
  grantAdmin(client: Client): Grant {
    return this.#grantCalls(client, ["acquire", "hold", "admin"]);
  }

  /**
   * Lets `client` straight to the table (`holdfast/dynamodb`), to the keys of one namespace, and sets its
   * `HOLDFAST_TABLE` and `HOLDFAST_NAMESPACE`. Without tenants that is the namespace of all callers; where accounts are
   * tenants, this account's unless another is named; for other tenants it must be named.
   * @throws Error when the namespace can't be right.
   */
  grantDirect(client: Client, options: { readonly namespace?: string } = {}): Grant {
    const namespace = this.#namespaceOf(options);
    const [items, tenancy] = tableRights(this.table, namespace);
    client.addEnvironment?.("HOLDFAST_TABLE", this.table.tableName);
    client.addEnvironment?.("HOLDFAST_NAMESPACE", namespace);
    if (this.#encryptionKey) client.grantPrincipal.addToPrincipalPolicy(keyStatement(this, this.#encryptionKey));
    return Grant.addToPrincipal({ grantee: client, ...items }).combine(Grant.addToPrincipal({ grantee: client, ...tenancy }));
  }

  #namespaceOf({ namespace }: { readonly namespace?: string }): string {
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

/** The characters that a dashboard's name may have beside letters and digits; alarms and metrics allow more. */
const NAME_CHARACTERS = "_-";
/** Leaves room for the name of an alarm or the Region within CloudWatch's 255 characters. */
const NAME_MAX_CHARS = 200;

/** The name of this service's metrics, alarms and dashboard: the stack's name, the construct's path and a hash of both, unique in the account. */
function serviceName(scope: Construct): string {
  return Names.uniqueResourceName(scope, { separator: "-", maxLength: NAME_MAX_CHARS, allowedSpecialCharacters: NAME_CHARACTERS });
}

function checkProps({ table, encryptionKey, tenant, jwt, serverWaitMs, metricPrefixes = [] }: LockServiceProps): void {
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
