/**
 * The order service and its locks in one stack: three functions with a role each, which share only the keys of the
 * orders. None may break another's lock, list holders, or lock anything but an order.
 */
import { fileURLToPath } from "node:url";
import { type StackProps, CfnOutput, Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import { HttpApi, HttpMethod } from "aws-cdk-lib/aws-apigatewayv2";
import { HttpJwtAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import { AttributeType, BillingMode, Table } from "aws-cdk-lib/aws-dynamodb";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { type DurableConfig, Architecture, Runtime } from "aws-cdk-lib/aws-lambda";
import { LogLevel, NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { LockService } from "../../infra/index.js";
import { BUYER } from "./buyer.js";
import type { Role } from "./order.js";
import { ORDERS_TABLE } from "./orders-table.js";
import { SELLER } from "./seller.js";

/** The token issuer, and the services that the functions call. */
export interface OrdersProps extends StackProps {
  /** The issuer of the accepted tokens, such as a Cognito user pool. */
  readonly issuer: string;
  /** The audience of the accepted tokens. */
  readonly audience: string;
  readonly providerUrl: string;
  readonly carrierUrl: string;
}

/** The prefix of every key that the service locks or runs: `key("ORDER", …)`. */
const PREFIX = "ORDER_";

/** The functions, and the actions that each may take on the orders' items. Placing an order puts an item. */
const FUNCTIONS: Readonly<Record<Role, { readonly routes: readonly string[]; readonly actions: readonly string[] }>> = {
  buyer: { routes: Object.keys(BUYER), actions: ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"] },
  seller: { routes: Object.keys(SELLER), actions: ["dynamodb:GetItem", "dynamodb:UpdateItem"] },
};

/** A hand-over waits for a day at most, and takes two hours. */
const HAND_OVER: DurableConfig = { executionTimeout: Duration.days(2), retentionPeriod: Duration.days(14) };

/** The order service. */
export class OrdersStack extends Stack {
  constructor(scope: Construct, id: string, { issuer, audience, providerUrl, carrierUrl, ...props }: OrdersProps) {
    super(scope, id, { description: "An order service, and the locks of its orders", ...props });
    const table = createTable(this);
    const environment = { ORDERS_TABLE: table.tableName, PROVIDER_URL: providerUrl, CARRIER_URL: carrierUrl };
    const carrier = createFunction(this, "carrier", environment, HAND_OVER);
    carrier.addToRolePolicy(new PolicyStatement({ actions: ["dynamodb:GetItem", "dynamodb:UpdateItem"], resources: [table.tableArn] }));
    // Its executions wait for an order asleep, and the service's agent wakes them.
    const locks = new LockService(this, "Locks", { wake: { functions: [carrier] } });
    locks.grantClient(carrier, { prefix: PREFIX });
    const api = new HttpApi(this, "Api", {
      defaultAuthorizer: new HttpJwtAuthorizer("People", issuer, { jwtAudience: [audience] }),
    });
    for (const role of ["buyer", "seller"] as const) {
      const { routes, actions } = FUNCTIONS[role];
      const handler = createFunction(this, role, environment);
      handler.addToRolePolicy(new PolicyStatement({ actions: [...actions], resources: [table.tableArn] }));
      const index = `${table.tableArn}/index/${ORDERS_TABLE.indexes[role]}`;
      handler.addToRolePolicy(new PolicyStatement({ actions: ["dynamodb:Query"], resources: [index] }));
      locks.grantClient(handler, { prefix: PREFIX });
      const integration = new HttpLambdaIntegration(`${role}Integration`, handler, { scopePermissionToRoute: false });
      for (const [method = "", path = ""] of routes.map((route) => route.split(" "))) {
        api.addRoutes({ path, methods: [HttpMethod[method as keyof typeof HttpMethod]], integration });
      }
    }
    new CfnOutput(this, "Url", { value: api.apiEndpoint, description: "The order service" });
  }
}

function createTable(scope: Construct): Table {
  const keyed = (name: string) => ({ name, type: AttributeType.STRING });
  const { partitionKey, indexes } = ORDERS_TABLE;
  const table = new Table(scope, "Orders", {
    partitionKey: keyed(partitionKey),
    billingMode: BillingMode.PAY_PER_REQUEST,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    removalPolicy: RemovalPolicy.RETAIN,
  });
  for (const [attribute, indexName] of Object.entries(indexes)) {
    table.addGlobalSecondaryIndex({ indexName, partitionKey: keyed(attribute), sortKey: keyed(partitionKey) });
  }
  return table;
}

/** Creates a function, with its own role, for the handler that `main.ts` exports under the role's name. */
function createFunction(
  scope: Construct,
  role: Role | "carrier",
  environment: Readonly<Record<string, string>>,
  durableConfig?: DurableConfig,
): NodejsFunction {
  const name = `${role.charAt(0).toUpperCase()}${role.slice(1)}`;
  return new NodejsFunction(scope, name, {
    ...(durableConfig && { durableConfig }),
    runtime: Runtime.NODEJS_24_X,
    architecture: Architecture.ARM_64,
    entry: fromHere("main.ts"),
    handler: role,
    projectRoot: fromHere("../.."),
    depsLockFilePath: fromHere("../../package-lock.json"),
    bundling: {
      format: OutputFormat.ESM,
      mainFields: ["module", "main"],
      target: "node24",
      externalModules: [],
      minify: true,
      sourceMap: true,
      sourcesContent: false,
      forceDockerBundling: false,
      logLevel: LogLevel.WARNING,
    },
    memorySize: 512,
    // Bounds the wait for a busy order, well below the gateway's 30 s.
    timeout: Duration.seconds(10),
    environment: { ...environment, NODE_OPTIONS: "--enable-source-maps" },
    logGroup: new LogGroup(scope, `${name}Log`, { retention: RetentionDays.ONE_MONTH, removalPolicy: RemovalPolicy.DESTROY }),
  });
}

/** Resolves a path of the repository, regardless of cdk's working directory. */
function fromHere(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
