/**
 * The construct `LockService` (`holdfast/cdk`): one table, three functions, and one HTTP API in front of them, with an agent if asked. Settings are fixed here if
 * locks would break without them, and each such line says how. No name can collide between deployments: two stages, or two constructs in
 * one stack, never share a table.
 */
import { type Duration, Annotations, Names, Stack } from "aws-cdk-lib";
import type { HttpApi, HttpStage } from "aws-cdk-lib/aws-apigatewayv2";
import type { Alarm, Dashboard } from "aws-cdk-lib/aws-cloudwatch";
import { type IGrantable, Grant } from "aws-cdk-lib/aws-iam";
import { TableV2 } from "aws-cdk-lib/aws-dynamodb";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { type ILogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { Duty } from "../lib/contract/routes.js";
import { isKey } from "../lib/core/key.js";
import { LIMITS } from "../lib/core/limits.js";
import { SHARED_NAMESPACE } from "../lib/service/caller.js";
import { type Right, callRight, operatorsRight, tableRights } from "./access.js";
import { createApi } from "./api.js";
import { FunctionUrls } from "./function-url.js";
import { type FunctionOptions, type Functions, createFunctions, createPageFunction, keyStatement, letLogsUse } from "./functions.js";
import { createMetrics } from "./metrics.js";
import { createMonitoring, createTickAlarm } from "./monitoring.js";
import { type LockServiceProps, PROPS, checkNames, checkProps, checkResources } from "./props.js";
import { replicasOf } from "./regions.js";
import { type LockTable, createRegionalTable, createTable, streamOf, unfitnessOf } from "./table.js";
import { createTableSweep } from "./table-sweep.js";
import { createAgent, NO_STREAM_WARNING } from "./waking.js";

/** Takes environment variables, if it has an environment. */
interface Environment {
  addEnvironment?(name: string, value: string): unknown;
}

/** A grantee. Variables are set in its environment, or in that of the function of which it is an alias or a version. */
export type Client = IGrantable & Environment & { readonly lambda?: (IGrantable & Environment) | undefined };

/** The keys that a client may use, and the URL that it calls. */
export interface ClientOptions {
  /** The beginning of its keys. @default none: all keys */
  readonly prefix?: string | undefined;
  /** The API, or a function URL: the same calls without a charge for requests (docs/into-your-account.md compares them). @default "api" */
  readonly via?: "api" | "function-url" | undefined;
}

/** The longest time over which an alarm looks back, in s: 7 days. */
const TICK_MAX_SEC = 604_800;

/** A lock service. Callers sign with IAM, or send a token, and call `url`. */
export class LockService extends Construct {
  /** The table that stores the locks. */
  readonly table: LockTable;
  /** The service's functions, by duty; only the API may invoke them. */
  readonly functions: Functions;
  /** The function that wakes sleepers; undefined without `wake`. */
  readonly agent: LambdaFunction | undefined;
  /** The function that deletes what is over, of a table in several Regions; undefined where TTL does. */
  readonly tableSweep: LambdaFunction | undefined;
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
  readonly #urls: FunctionUrls | undefined;
  readonly #addOperators: () => void;
  #hasOperators = false;
  /** The Regions with a replica of the table, this service's own first; undefined for a table of one Region. */
  readonly #replicas: readonly string[] | undefined;
  /** The URLs of each client, by service. The services of one table share them. */
  #urlsOf = new Map<Environment, Map<LockService, string>>();

  /**
   * Creates the service of another Region on the table of `first`, which has `regions`. Its stack is deployed after that of `first`. A client
   * that both grant has the URLs of both, in the order of the grants: the nearest first.
   * @param props as of the constructor, without `table` and `regions`
   * @throws Error if `first` has no `regions`, or none of their replicas is in the stack's Region
   */
  static inRegion(scope: Construct, id: string, first: LockService, props: Omit<LockServiceProps, "table" | "regions"> = {}): LockService {
    const replicas = first.#replicas;
    if (!replicas) throw new Error("inRegion: the first service must have the option regions: its table is in one Region");
    checkNames(
      "inRegion",
      props,
      PROPS.filter((name) => name !== "table" && name !== "regions"),
    );
    const { region } = Stack.of(scope);
    if (region === replicas[0] || !replicas.includes(region))
      throw new Error(
        `inRegion: the stack is in ${region}; it must be in another Region with a replica of the table: ${replicas.slice(1).join(", ")}`,
      );
    const place = new Construct(scope, `${id}Place`);
    const service = new LockService(scope, id, {
      ...props,
      table: TableV2.fromTableName(place, "Table", first.table.tableName),
      regions: { replicas: replicas.filter((one) => one !== region), witness: first.#props.regions?.witness },
    });
    service.node.addDependency(first.table);
    if (first.#encryptionKey && !props.encryptionKey) Annotations.of(service).addWarningV2("holdfast:inRegion:encryptionKey", NO_KEY);
    // The stream of the first one's replica has every write, and its agent tells in all Regions (decision 117).
    if (first.agent && streamOf(first.table) !== undefined)
      Annotations.of(service).acknowledgeWarning(NO_STREAM_WARNING, "the first service's agent reads the stream");
    service.#urlsOf = first.#urlsOf;
    return service;
  }

  constructor(scope: Construct, id: string, props: LockServiceProps = {}) {
    super(scope, id);
    checkProps(props);
    checkResources(this, props);
    this.#props = props;
    const { logRetention = RetentionDays.THREE_MONTHS, tenant, metricPrefixes = [] } = props;
    const hasAgent = props.wake !== undefined && props.wake !== false;
    const replicas = props.regions && replicasOf(this, props.regions);
    this.#replicas = replicas;
    const table =
      props.table ??
      (replicas ? createRegionalTable(this, replicas, props.regions.witness) : createTable(this, props.encryptionKey, hasAgent));
    const encryptionKey = props.encryptionKey ?? table.encryptionKey;
    this.#encryptionKey = encryptionKey;
    // Validated at synth time, because a replica can be added after this constructor.
    this.node.addValidation({ validate: () => [...unfitnessOf(table, replicas)] });
    for (const prefix of metricPrefixes) this.#warnUnlessParted("metricPrefixes", prefix);
    if (props.encryptionKey) letLogsUse(this, props.encryptionKey);
    const service = serviceName(this);
    const reservedConcurrency = props.reservedConcurrency ?? {};
    const isParted = (reservedConcurrency.hold ?? reservedConcurrency.acquire) !== undefined;
    const serverWaitMs = props.serverWaitMs ?? (isParted ? LIMITS.serverWaitMs : 0);
    const functionOptions: FunctionOptions = {
      table,
      encryptionKey,
      logKey: props.encryptionKey,
      logRetention,
      memorySizeMb: props.memorySizeMb ?? 512,
      tracing: props.tracing ?? false,
      reservedConcurrency,
      hasAgent,
      environment: {
        HOLDFAST_SERVER_WAIT_MS: String(serverWaitMs),
        ...(tenant !== undefined && { HOLDFAST_TENANT: tenant }),
        ...(metricPrefixes.length > 0 && { HOLDFAST_METRIC_PREFIXES: metricPrefixes.join(",") }),
        ...(replicas && { HOLDFAST_REGIONS: replicas.join(",") }),
      },
    };
    const { functions, log } = createFunctions(this, functionOptions);
    const { api, stage, addOperators } = createApi(this, {
      functions,
      page: props.console ? createPageFunction(this, log) : undefined,
      jwt: props.jwt,
      throttle: props.throttle ?? { rateLimit: 2_000, burstLimit: 1_000 },
      acquireThrottle: props.acquireThrottle ?? { rateLimit: 1_000, burstLimit: 500 },
      domain: props.domain,
      logKey: props.encryptionKey,
      logRetention,
    });
    if (props.functionUrl) {
      this.#urls = new FunctionUrls(this, log, functionOptions, props.functionUrl === true ? {} : props.functionUrl);
    }
    this.agent = hasAgent ? createAgent(this, log, functionOptions, props.wake === true ? {} : props.wake) : undefined;
    this.tableSweep = replicas && createTableSweep(this, log, functionOptions);
    this.table = table;
    this.functions = functions;
    this.api = api;
    this.stage = stage;
    this.#addOperators = addOperators;
    this.log = log;
    this.url = props.domain ? stage.domainUrl.replace(/\/$/, "") : api.apiEndpoint;
    // It is written into the table, so that a client with the URLs of several services sees that these use one table.
    if (replicas) for (const one of Object.values(functions)) one.addEnvironment("HOLDFAST_OWN_URL", this.url);
    createMetrics(this, { service, log, hasPrefixes: metricPrefixes.length > 0, isInRegions: replicas !== undefined });
    const [urls, { agent, tableSweep }] = [this.#urls, this];
    this.dashboard = createMonitoring(this, {
      ...{ api, stage, functions, urls, agent, tableSweep, log, service },
      alarmTopic: props.alarmTopic,
    });
  }

  /**
   * Allows `client` to use locks and runs over HTTP, and sets its `HOLDFAST_URL`. With a prefix, it covers only keys that begin with it.
   * That excludes sets, whose keys are in the body, which IAM does not inspect (the SDK then sends each heartbeat separately). With
   * `via: "function-url"`, the URL is a function URL instead of the API's.
   * @throws Error if the service uses tokens or has no function URLs, the prefix is invalid for keys, there is another option, or `client`
   * has another URL already: a function has one `HOLDFAST_URL`.
   */
  grantClient(client: Client, options: ClientOptions = {}): Grant {
    checkNames("grantClient", options, ["prefix", "via"]);
    const { prefix, via = "api" } = options;
    if (via === "api") return this.#grantCalls(client, ["acquire", "hold"], prefix);
    if (via !== ("function-url" as string)) throw new Error(`via: ${JSON.stringify(via)} given; it must be "api" or "function-url"`);
    const { url, rights } = this.#functionUrls().at(prefix);
    if (this.#replicas) Annotations.of(this).addWarningV2("holdfast:grantClient:regions", UNLISTED);
    return this.#grantUrl(client, url, rights, prefix);
  }

  /**
   * Returns the function URL for keys with this prefix, or for all keys: the one that {@link grantClient} sets.
   * @throws Error if the service has no function URLs, or the prefix is invalid for keys.
   */
  functionUrlFor(options: { readonly prefix?: string | undefined } = {}): string {
    checkNames("functionUrlFor", options, ["prefix"]);
    return this.#functionUrls().at(options.prefix).url;
  }

  #functionUrls(): FunctionUrls {
    if (this.#urls) return this.#urls;
    throw new Error("function URL: this service has none; give its property functionUrl");
  }

  /** Allows `client` to break holds, list and reset, in addition to the permissions of {@link grantClient}. */
  grantAdmin(client: Client): Grant {
    return this.#grantCalls(client, ["acquire", "hold", "admin"]);
  }

  /**
   * Allows `client` to look at, break and reset the keys of every tenant, whose namespace it adds to the URL (`holdfast --namespace`). It is
   * no part of {@link grantAdmin}, which is about the client's own tenant.
   * @throws Error if the service has no tenants, or uses tokens, whose `operatorScopes` say who may
   */
  grantOperator(client: Client): Grant {
    if (this.#props.tenant === undefined) throw new Error("grantOperator: this service has no tenants, so grantAdmin is enough");
    this.#checkSigned();
    if (!this.#hasOperators) this.#addOperators();
    this.#hasOperators = true;
    return this.#grantUrl(client, this.url, [operatorsRight(this.api)], undefined);
  }

  /**
   * Allows `client` to use the table directly (`holdfast/dynamodb`) for the keys of one namespace, and sets its `HOLDFAST_TABLE` and
   * `HOLDFAST_NAMESPACE`. Without tenants, that is the common namespace. If accounts are tenants, it is this account's unless another is
   * given. For other tenants it must be given.
   * @throws Error if the namespace is invalid here.
   */
  grantDirect(client: Client, options: { readonly namespace?: string | undefined } = {}): Grant {
    if ("prefix" in options) throw new Error(NO_PREFIX);
    checkNames("grantDirect", options, ["namespace"]);
    const namespace = this.#namespaceOf(options);
    const [items, tenancy] = tableRights(this.#tableArns(), namespace);
    this.#setVariables(client, {
      HOLDFAST_TABLE: this.table.tableName,
      HOLDFAST_NAMESPACE: namespace,
      ...(this.#replicas && { HOLDFAST_REGIONS: this.#replicas.join(",") }),
    });
    if (this.#encryptionKey) client.grantPrincipal.addToPrincipalPolicy(keyStatement(this, this.#encryptionKey));
    return Grant.addToPrincipal({ grantee: client, ...items }).combine(Grant.addToPrincipal({ grantee: client, ...tenancy }));
  }

  /**
   * Creates an alarm for a schedule of which no occurrence was done within a time: nobody called `tick` with this name, or its work failed.
   * It reads the service's log, so it doesn't see callers that use the table directly. Until the first occurrence is done, it is in alarm.
   * @param name the name that callers give to `tick`
   * @param options `within`: longer than the interval and the work together, in whole minutes up to 7 days. `namespace`: the tenant's, as
   * for {@link grantDirect}
   * @throws Error if `name` can't be one, `within` is out of its range, or the namespace is invalid here.
   */
  alarmOnMissedTick(name: string, options: { readonly within: Duration; readonly namespace?: string | undefined }): Alarm {
    const { within } = options;
    if (!isKey(name)) throw new Error(`name: ${JSON.stringify(name)} given; no tick has such a name`);
    const seconds = within.toSeconds();
    if (seconds % 60 !== 0 || seconds < 60 || seconds > TICK_MAX_SEC)
      throw new Error(
        `within: ${within.toHumanString()} given; it must be whole minutes, and at most 7 days, which is as far as CloudWatch looks back`,
      );
    const namespace = this.#namespaceOf(options);
    const schedule = { service: serviceName(this), log: this.log, name, namespace, alarmTopic: this.#props.alarmTopic };
    return createTickAlarm(this, schedule, within);
  }

  /** Returns the ARNs of the table: one for each replica. */
  #tableArns(): string[] {
    const [, ...others] = this.#replicas ?? [];
    const { tableName, tableArn } = this.table;
    const arnIn = (region: string): string =>
      Stack.of(this).formatArn({ service: "dynamodb", region, resource: "table", resourceName: tableName });
    return [tableArn, ...others.map(arnIn)];
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

  /** Warns of a prefix that keys of another kind have too. */
  #warnUnlessParted(option: string, prefix: string): void {
    if (/[^A-Za-z0-9]$/.test(prefix)) return;
    const message = `${option}: "${prefix}" also covers keys such as "${prefix}S_1" and "${prefix}2_1": end it with a separator, as in "${prefix}_"`;
    Annotations.of(this).addWarningV2(`holdfast:${option}:${prefix}`, message);
  }

  #grantCalls(client: Client, duties: readonly Duty[], prefix?: string): Grant {
    this.#checkSigned();
    return this.#grantUrl(client, this.url, [callRight(this.api, duties, prefix)], prefix);
  }

  /** Sets a client's variables, or warns of a function that is another app's. What is no function may have no environment. */
  #setVariables(client: Client, variables: Readonly<Record<string, string>>): void {
    const owner = ownerOf(client);
    for (const [name, value] of Object.entries(variables)) owner.addEnvironment?.(name, value);
    if (owner.addEnvironment || !("functionArn" in owner)) return;
    const names = Object.keys(variables).join(" and ");
    Annotations.of(this).addWarningV2(`holdfast:${names}`, `grant: the function is another app's, so set ${names} where it is made`);
  }

  #checkSigned(): void {
    if (this.#props.jwt) throw new Error("grant: this service takes tokens (jwt), and IAM has nothing to say of its callers");
  }

  #grantUrl(client: Client, url: string, rights: readonly Right[], prefix: string | undefined): Grant {
    const owner = ownerOf(client);
    const urls = this.#urlsOf.get(owner) ?? new Map<LockService, string>();
    const otherUrl = urls.get(this);
    if (owner.addEnvironment && otherUrl !== undefined && otherUrl !== url) {
      throw new Error(
        "grant: this client has another URL of this service already, and a function has one HOLDFAST_URL: grant all its keys by one URL",
      );
    }
    if (prefix !== undefined) this.#warnUnlessParted("prefix", prefix);
    this.#urlsOf.set(owner, urls.set(this, url));
    this.#setVariables(client, { HOLDFAST_URL: [...urls.values()].join(",") });
    return rights.map((right) => Grant.addToPrincipal({ grantee: client, ...right })).reduce((all, one) => all.combine(one));
  }
}

const UNLISTED =
  "grantClient: the table lists no function URLs, so a process that begins while its first Region is silent gets no lock by them: " +
  'grant via: "api" to clients that must begin then';

const NO_KEY =
  "inRegion: the first service knows a customer's key, and one is for a Region: give encryptionKey, the table's key in this Region, or the " +
  "functions may not use the table";

const NO_PREFIX =
  "prefix: is not an option of grantDirect: IAM sees the partition keys of a table, which have the namespace and not the lock's key; " +
  "grantClient takes a prefix, and with tenant, namespaces are kept apart";

/** Returns what has the environment of `client`. */
function ownerOf(client: Client): Environment {
  return client.lambda ?? client;
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
