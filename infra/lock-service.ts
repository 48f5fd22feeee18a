/**
 * The construct: one table, one function, one HTTP API before it. What is fixed here is fixed because
 * a lock breaks without it; each such line says how. The table has no name of its own: CloudFormation
 * makes one, so two stages, or two of these in one stack, never share a table.
 */
import { fileURLToPath } from "node:url";
import { Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import { HttpApi, HttpMethod } from "aws-cdk-lib/aws-apigatewayv2";
import { HttpIamAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import { AttributeType, BillingMode, Table } from "aws-cdk-lib/aws-dynamodb";
import { PolicyDocument, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Architecture, type Function as LambdaFunction, LoggingFormat, Runtime } from "aws-cdk-lib/aws-lambda";
import { LogLevel, NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { methodsOf, PATHS } from "../lambda/routes.js";
import { TABLE } from "../lib/store/table.js";

/** All that the function may do to its table. No Scan, no PutItem, and no DeleteItem: a deleted lock forgets its fencing token. */
const TABLE_ACTIONS = ["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:Query"];

/**
 * Left out of the bundle, which has all the rest of the AWS SDK inside: the ways to credentials that a
 * function never goes, since the environment's come first. The SDK loads each only when it gets to it
 * (docs/decisions/008-credential-providers-left-out-of-the-bundle.md).
 */
const UNREACHABLE_IN_LAMBDA = ["ini", "process", "sso", "web-identity"].map((way) => `@aws-sdk/credential-provider-${way}`);

/** A lock service of its own: callers sign with IAM and send to `url`. */
export class LockService extends Construct {
  /** Where the locks are. */
  readonly table: Table;
  /** The service itself; nothing but the API may invoke it. */
  readonly function: LambdaFunction;
  /** The API; a caller needs `execute-api:Invoke` on it. */
  readonly api: HttpApi;
  /** The base URL, without a slash at the end: what `HOLDFAST_URL` takes. */
  readonly url: string;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    this.table = createTable(this);
    this.function = createFunction(this, this.table);
    this.api = createApi(this, this.function);
    this.url = this.api.apiEndpoint;
  }
}

/**
 * The table. It outlives the stack (RETAIN) and refuses deletion, because every lease and every fencing
 * counter of every caller is in it: a new, empty table would grant what others still hold.
 *
 * A plain `Table`, not `TableV2`, so that adding a replica is no one-line change: a global table settles
 * concurrent writes by "last writer wins", and two regions would both grant the same lock. (Its strongly
 * consistent mode has neither transactions nor TTL.)
 *
 * No stream: nothing reads one, and every heartbeat would be a record in it.
 */
function createTable(scope: Construct): Table {
  return new Table(scope, "Table", {
    partitionKey: { name: TABLE.partitionKey, type: AttributeType.STRING },
    sortKey: { name: TABLE.sortKey, type: AttributeType.STRING },
    timeToLiveAttribute: TABLE.ttlAttribute,
    billingMode: BillingMode.PAY_PER_REQUEST,
    // Safe for locks too: tokens are never below the clock, so they keep rising after a restore.
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN,
  });
}

/** The function. Its AWS SDK is its own, as an ES module: that starts sooner than the runtime's, and is the version that was tested. */
function createFunction(scope: Construct, table: Table): LambdaFunction {
  // The log is the record of who held what and when, so it too outlives the stack.
  const logGroup = new LogGroup(scope, "Log", { retention: RetentionDays.THREE_MONTHS, removalPolicy: RemovalPolicy.RETAIN });
  return new NodejsFunction(scope, "Function", {
    description: "holdfast: lease locks over HTTP",
    runtime: Runtime.NODEJS_24_X,
    architecture: Architecture.ARM_64,
    entry: fromHere("../lambda/main.ts"),
    handler: "handler",
    projectRoot: fromHere(".."),
    depsLockFilePath: fromHere("../package-lock.json"),
    bundling: {
      format: OutputFormat.ESM,
      mainFields: ["module", "main"],
      target: "node24",
      externalModules: UNREACHABLE_IN_LAMBDA,
      minify: true,
      sourceMap: true,
      sourcesContent: false,
      forceDockerBundling: false,
      logLevel: LogLevel.WARNING,
    },
    // A first value, to be measured: memory also buys CPU, and the SDK is most of a request's CPU.
    memorySize: 512,
    // Above the longest wait for a run's outcome and all attempts of a call to the table after it; far below the gateway's 30 s.
    timeout: Duration.seconds(15),
    // Source maps are read only when a stack trace is, so a refusal, which is an exception of the SDK, pays nothing for them.
    environment: { HOLDFAST_TABLE: table.tableName, NODE_OPTIONS: "--enable-source-maps" },
    logGroup,
    // The service writes JSON already: in Lambda's JSON format it would be a string within JSON, whose fields no query finds by itself.
    loggingFormat: LoggingFormat.TEXT,
    role: createRole(scope, table, logGroup),
  });
}

/** The function's role, written out: the grants of the CDK (`grantReadWriteData`, the basic execution role) allow far more. */
function createRole(scope: Construct, table: Table, logGroup: LogGroup): Role {
  const allow = (actions: string[], resource: string) =>
    new PolicyDocument({ statements: [new PolicyStatement({ actions, resources: [resource] })] });
  return new Role(scope, "Role", {
    description: "holdfast: what the lock function may do",
    assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
    inlinePolicies: {
      table: allow(TABLE_ACTIONS, table.tableArn),
      log: allow(["logs:CreateLogStream", "logs:PutLogEvents"], logGroup.logGroupArn),
    },
  });
}

/**
 * The API. IAM on every route without exception, since the caller's identity is what a lease belongs to;
 * so it is the default, which a new route has without asking. No CORS: a browser has no business here.
 *
 * Each path also answers `ANY` and everything else `$default`, so that 405 and 404 come from the service,
 * as problem+json, and not from the gateway.
 */
function createApi(scope: Construct, handler: LambdaFunction): HttpApi {
  // One permission for all routes: one per route would outgrow the function's 20 KB policy.
  const integration = new HttpLambdaIntegration("Integration", handler, { scopePermissionToRoute: false });
  const api = new HttpApi(scope, "Api", {
    apiName: Stack.of(scope).stackName,
    description: "holdfast: lease locks over HTTP",
    defaultAuthorizer: new HttpIamAuthorizer(),
    defaultIntegration: integration,
  });
  for (const path of PATHS) {
    const methods = methodsOf(path).map((method) => HttpMethod[method as keyof typeof HttpMethod]);
    api.addRoutes({ path, methods: [...methods, HttpMethod.ANY], integration });
  }
  // That permission is for `*/*/*`; the gateway calls for an unmatched path as `<stage>/$default`, and would answer 500.
  handler.addPermission("InvokeUnmatched", {
    principal: new ServicePrincipal("apigateway.amazonaws.com"),
    sourceArn: Stack.of(scope).formatArn({ service: "execute-api", resource: api.apiId, resourceName: "*/$default" }),
  });
  return api;
}

/** A path of the repository, wherever `cdk` is started from. */
function fromHere(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
