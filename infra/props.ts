/** The options of a lock service, and their check when it is synthesized: each error names the option, its rule and what was given. */
import { type IResource, Arn, ArnFormat, Stack, Token } from "aws-cdk-lib";
import type { DomainMappingOptions, ThrottleSettings } from "aws-cdk-lib/aws-apigatewayv2";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { RetentionDays } from "aws-cdk-lib/aws-logs";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import type { Construct } from "constructs";
import type { Duty } from "../lib/contract/routes.js";
import { tenancyFrom } from "../lambda/tenancy.js";
import { isServerWait, SERVER_WAIT_RULE } from "../lib/core/limits.js";
import { type JwtOptions, ADMIN_SCOPE } from "./api.js";
import type { FunctionUrlOptions } from "./function-url.js";
import { warnOfPolicy } from "./policy-warning.js";
import type { RegionsOptions } from "./regions.js";
import type { LockTable } from "./table.js";
import type { WakeOptions } from "./waking.js";

/** Options of a lock service. All are optional. */
export interface LockServiceProps {
  /**
   * An existing table of the stack's account and Region: keys `p` and `k`, both strings, TTL attribute `x`, no replica, no index. With
   * `regions`, one that is strongly consistent in these, without TTL.
   * @default a new table, on demand, with point-in-time recovery and deletion protection, that outlives the stack
   */
  readonly table?: LockTable | undefined;
  /**
   * The other Regions of the table: `{ replicas: ["us-east-2"], witness: "us-west-2" }`, or two replicas. The table is then a global one with
   * multi-Region strong consistency, swept once an hour in place of TTL, and sets of keys are acquired in parts (decision 106). The other Region's
   * service is made by `LockService.inRegion`. AWS lets none of the Regions be changed later. @default none: a table of one Region
   */
  readonly regions?: RegionsOptions | undefined;
  /**
   * The customer's key that encrypts the table and both logs, of the stack's account and Region, and no alias of it. Its policy must let
   * CloudWatch Logs use it, which is added to a key of this app. @default the known key of `table` for the table, and AWS's own for the logs
   */
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
  /**
   * True for a second door: `grantClient(fn, { via: "function-url" })` gives a client a function URL, which has no charge of its own, instead
   * of the API's. It has no throttle but its function's reserved concurrency, no access log, and serves neither operators nor tokens
   * (decision 063). @default false
   */
  readonly functionUrl?: boolean | FunctionUrlOptions | undefined;
  /** Your own domain for the API. @default the API's own address */
  readonly domain?: DomainMappingOptions | undefined;
  /**
   * The reserved concurrency of each function, which is also its maximum. Reserving it for `hold` protects holders from a crowd of waiters.
   * @default none: a new account has 10 for all its functions, and AWS refuses to reserve any of them
   */
  readonly reservedConcurrency?: Readonly<Partial<Record<Duty, number>>> | undefined;
  /**
   * The longest time for which a start of a run, or a look that waits for a change, is held (`Prefer: wait`), in ms, from 0 to 5 000. The
   * request occupies an execution meanwhile. With 0 it is answered at once. An acquire always is: the SDK comes back for it.
   * @default 0, because heartbeats need the same executions; 5 000 if `reservedConcurrency` separates them, by `hold` or `acquire`
   */
  readonly serverWaitMs?: number | undefined;
  /**
   * True for an agent that wakes waiters that sleep: tasks of Step Functions, and with `functions` callbacks of durable functions. With
   * `functions` and `stateMachines`, it also renews leases that are tied to executions of these (decision 051). It sweeps
   * once a minute, and reads the table's stream to be faster. A table of your own needs a stream with new images for that (decision 046).
   * @default false: requests to wait asleep are refused
   */
  readonly wake?: boolean | WakeOptions | undefined;
  /** The memory of each function, in MB, which also determines its share of a CPU (docs/costs.md has what was measured). @default 512 */
  readonly memorySizeMb?: number | undefined;
  /** The topic that the alarms notify, in the stack's Region. @default none: the alarms only change their state */
  readonly alarmTopic?: ITopic | undefined;
  /** The retention of the logs: the history of holders, and the access log. @default 3 months */
  readonly logRetention?: RetentionDays | undefined;
  /** Separate metrics for keys that begin with one of these prefixes, such as `"ORDER_"`; at most ten. @default none */
  readonly metricPrefixes?: readonly string[] | undefined;
  /** True to trace the functions with X-Ray, which is charged for each trace. @default false */
  readonly tracing?: boolean | undefined;
}

const METRIC_PREFIXES_MAX = 10;
const METRIC_PREFIX = /^[A-Za-z0-9._:~-]{1,50}$/;
/** Lambda's limits, in MB. */
const MEMORY_MB = { min: 128, max: 10_240 };

const KNOWN: Readonly<Record<keyof Required<LockServiceProps>, true>> = {
  table: true,
  regions: true,
  encryptionKey: true,
  jwt: true,
  tenant: true,
  throttle: true,
  acquireThrottle: true,
  console: true,
  functionUrl: true,
  domain: true,
  reservedConcurrency: true,
  serverWaitMs: true,
  wake: true,
  memorySizeMb: true,
  alarmTopic: true,
  logRetention: true,
  metricPrefixes: true,
  tracing: true,
};

/** The names of all options. */
export const PROPS: readonly string[] = Object.keys(KNOWN);

/** @throws Error naming the option that is unknown, or its value that breaks a rule. */
export function checkProps(props: LockServiceProps): void {
  const { table, encryptionKey, tenant, jwt, console: hasConsole, functionUrl, serverWaitMs, metricPrefixes = [], domain, regions } = props;
  checkNames("LockService", props, PROPS);
  checkMembers(props);
  if (functionUrl && jwt) throw new Error("functionUrl: function URLs check IAM and no tokens, so they can't be had with jwt");
  if (hasConsole && !jwt) throw new Error("console: a browser can't sign with IAM, so it needs jwt; without it, `holdfast ui` signs");
  if (hasConsole && domain?.mappingKey !== undefined) {
    throw new Error("console: its page is at /console of the host, so the domain must have no mappingKey");
  }
  if (serverWaitMs !== undefined && !isServerWait(serverWaitMs))
    throw new Error(`serverWaitMs: ${serverWaitMs} given; ${SERVER_WAIT_RULE}`);
  const isKnownTenant = tenant !== undefined && !Token.isUnresolved(tenant); // Otherwise a parameter of the template.
  if (isKnownTenant && typeof tenancyFrom("tenant", tenant) === "object" && !jwt)
    throw new Error("tenant: a claim is in a token, so it needs jwt");
  if (jwt?.operatorScopes && tenant === undefined) throw new Error("jwt.operatorScopes: operators name a tenant, so it needs tenant");
  const shared = jwt?.operatorScopes?.find((one) => [...(jwt.scopes ?? []), ...(jwt.adminScopes ?? [ADMIN_SCOPE])].includes(one));
  if (shared !== undefined)
    throw new Error(`jwt.operatorScopes: ${JSON.stringify(shared)} is a scope of tenants too, who would reach each other's keys`);
  for (const name of ["audience", "scopes", "adminScopes", "operatorScopes"] as const) {
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
    if (!METRIC_PREFIX.test(prefix)) throw new Error(`metricPrefixes: no key can begin with ${JSON.stringify(prefix)}`);
  }
  if (regions && !table && encryptionKey)
    throw new Error(
      "encryptionKey: a table in several Regions needs a key in each of them, so make the table yourself, and give it as table",
    );
  if (table && encryptionKey && table.encryptionKey && table.encryptionKey.keyArn !== encryptionKey.keyArn) {
    throw new Error("encryptionKey: the table is encrypted with another key");
  }
}

function checkMembers({
  throttle,
  acquireThrottle,
  reservedConcurrency,
  functionUrl,
  wake,
  memorySizeMb,
  jwt,
  regions,
}: LockServiceProps): void {
  if (functionUrl !== undefined && typeof functionUrl !== "boolean") {
    checkNames("functionUrl", functionUrl, ["reservedConcurrency"]);
    if (functionUrl.reservedConcurrency !== undefined)
      checkNumber("functionUrl.reservedConcurrency", functionUrl.reservedConcurrency, { min: 0 });
  }
  for (const [name, rates] of Object.entries({ throttle, acquireThrottle })) {
    if (rates === undefined) continue;
    checkNames(name, rates, ["rateLimit", "burstLimit"]);
    for (const rate of ["rateLimit", "burstLimit"] as const) checkNumber(`${name}.${rate}`, rates[rate]);
  }
  if (reservedConcurrency !== undefined) checkNames("reservedConcurrency", reservedConcurrency, ["acquire", "hold", "admin"]);
  for (const [duty, reserved] of Object.entries(reservedConcurrency ?? {})) checkNumber(`reservedConcurrency.${duty}`, reserved);
  if (wake !== undefined && typeof wake !== "boolean") checkNames("wake", wake, ["functions", "stateMachines"]);
  if (memorySizeMb !== undefined) checkNumber("memorySizeMb", memorySizeMb, MEMORY_MB);
  if (regions !== undefined) {
    checkNames("regions", regions, ["replicas", "witness"]);
    if (!Array.isArray(regions.replicas))
      throw new Error(`regions.replicas: ${JSON.stringify(regions.replicas)} given; it must be a list of Regions`);
  }
  if (jwt !== undefined) checkNames("jwt", jwt, ["issuer", "audience", "scopes", "adminScopes", "operatorScopes"]);
}

/** The kinds of resources that an app gives: the member that each has, its name, and what gives one that is there already. */
const KINDS = {
  table: ["tableArn", "a table", "Table.fromTableName"],
  encryptionKey: ["keyArn", "a key", "Key.fromKeyArn"],
  alarmTopic: ["topicArn", "a topic", "Topic.fromTopicArn"],
  "wake.functions": ["functionArn", "a function", "Function.fromFunctionArn"],
  "wake.stateMachines": ["stateMachineArn", "a state machine", "StateMachine.fromStateMachineArn"],
} as const;

/**
 * Checks the resources that are given, and warns if the policy of another account's topic must be changed.
 * @throws Error naming one that is no resource of its kind, or of another Region or account than the stack
 */
export function checkResources(scope: Construct, { table, encryptionKey, alarmTopic, wake, regions }: LockServiceProps): void {
  const { functions = [], stateMachines = [] } = typeof wake === "object" ? wake : {};
  const given = { table: [table], encryptionKey: [encryptionKey], alarmTopic: [alarmTopic] };
  const all = { ...given, "wake.functions": functions, "wake.stateMachines": stateMachines };
  // An agent tells and asks in all Regions of the table (decision 117).
  const others = { "wake.functions": regions?.replicas, "wake.stateMachines": regions?.replicas };
  for (const name of Object.keys(KINDS) as (keyof typeof KINDS)[])
    for (const resource of all[name]) if (resource !== undefined) checkResource(scope, name, resource, others[name as keyof typeof others]);
  if (encryptionKey && "aliasName" in encryptionKey)
    throw new Error("encryptionKey: an alias given; it must be the key itself, since IAM's rights are about keys");
}

function checkResource(scope: Construct, name: keyof typeof KINDS, resource: IResource, others: readonly string[] = []): void {
  const [member, kind, maker] = KINDS[name];
  // A caller without types can give anything, such as a name.
  if (typeof resource !== "object" || !(member in resource))
    throw new Error(`${name}: ${JSON.stringify(resource)} given; it must be ${kind}, such as ${maker} gives`);
  const { account, region } = Stack.of(scope);
  const env = placeOf((resource as unknown as Readonly<Record<string, string>>)[member] ?? "", resource);
  if (isOther(env.region, region) && !others.includes(env.region))
    throw new Error(
      `${name}: is in ${env.region}, and the stack in ${region}; it must be in the same Region${others.length > 0 ? ", or in one with a replica" : ""}`,
    );
  if (!isOther(env.account, account)) return;
  if (name !== "alarmTopic")
    throw new Error(`${name}: is of the account ${env.account}, and the stack of ${account}; it must be of the same account`);
  warnOfPolicy(
    scope,
    resource,
    "alarmTopic: the policy of this topic must let CloudWatch publish, or nobody hears of the alarms",
    (place) => ({
      principals: [new ServicePrincipal("cloudwatch.amazonaws.com")],
      actions: ["sns:Publish"],
      resources: [(resource as ITopic).topicArn],
      conditions: { ArnLike: { "aws:SourceArn": `arn:${place.partition}:cloudwatch:${place.region}:${place.account}:alarm:*` } },
    }),
  );
}

/** Returns the place in an ARN. The CDK takes a table that is named by an ARN for one of the stack's own place. */
function placeOf(arn: string, { env }: IResource): Readonly<Record<"region" | "account", string>> {
  if (Token.isUnresolved(arn)) return env;
  const { region = "", account = "" } = Arn.split(arn, ArnFormat.NO_RESOURCE_NAME);
  return { region: region || env.region, account: account || env.account };
}

function isOther(one: string, other: string): boolean {
  return !Token.isUnresolved(one) && !Token.isUnresolved(other) && one !== other;
}

/** A caller without types can give anything. */
function checkNumber(name: string, value: unknown, { min, max }: { readonly min: number; readonly max?: number } = { min: 1 }): void {
  if (Token.isUnresolved(value)) return; // A parameter of the template.
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= (max ?? Infinity)) return;
  const rule = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new Error(`${name}: ${JSON.stringify(value)} given; it must be an integer ${rule}`);
}

/** @throws Error naming an option of `what` that is unknown: a misspelt one must not be ignored. */
export function checkNames(what: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null)
    throw new Error(`${what}: ${JSON.stringify(options)} given; it must be an object of ${known.join(", ")}`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`${unknown}: is not an option of ${what}; these are: ${known.join(", ")}`);
}
