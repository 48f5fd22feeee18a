/**
 * The stacks of the run, a row for each: the options of its lock service, and who calls it. The rows with `conforms` are asked the whole
 * conformance by all their callers.
 */
import { CfnOutput, Duration, RemovalPolicy, type Stack } from "aws-cdk-lib";
import { OAuthScope, ResourceServerScope, UserPool } from "aws-cdk-lib/aws-cognito";
import { AccountRootPrincipal, PolicyStatement, Role } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Topic } from "aws-cdk-lib/aws-sns";
import { LockService } from "../../infra/lock-service.js";
import type { LockServiceProps } from "../../infra/props.js";

/** The prefix of the client that may use no other keys. */
export const CLIENT_PREFIX = "ORDER_";
/** A rate that the tests of a stage exceed, and that no test of the conformance reaches. */
export const THROTTLE = { rateLimit: 200, burstLimit: 100 };
/** The functions' reserved concurrency, in the stack that has some. */
export const RESERVED = { acquire: 20, hold: 21, admin: 5 };

/** A stack of the run. */
export interface Variant {
  /** The callers: roles that sign, or clients of a user pool that send tokens. */
  readonly callers: "iam" | "tokens";
  /** True if it runs the conformance. */
  readonly conforms: boolean;
  readonly props: (stack: Stack) => LockServiceProps;
  /** Creates other resources beside the service. */
  readonly beside?: (stack: Stack, locks: LockService) => void;
}

/** The stacks by their names. */
export const VARIANTS: Readonly<Record<string, Variant>> = {
  iam: { callers: "iam", conforms: true, props: () => ({}), beside: (stack, locks) => void locks.grantDirect(roleOf(stack, "direct")) },
  "tenant-role": { callers: "iam", conforms: true, props: () => ({ tenant: "role" }) },
  "tenant-account": { callers: "iam", conforms: false, props: () => ({ tenant: "account" }) },
  tokens: { callers: "tokens", conforms: true, props: (stack) => ({ jwt: userPool(stack), console: true }) },
  all: {
    callers: "iam",
    conforms: false,
    props: (stack) => ({
      ...{ alarmTopic: new Topic(stack, "Topic"), reservedConcurrency: RESERVED, metricPrefixes: ["ORDER_"], tracing: true, wake: true },
      encryptionKey: new Key(stack, "Key", { removalPolicy: RemovalPolicy.DESTROY }),
      ...{ throttle: THROTTLE, acquireThrottle: THROTTLE },
    }),
    beside: (_stack, locks) => void locks.alarmOnMissedTick("nightly", { within: Duration.hours(25) }),
  },
};

/** Makes the stack of a row, and outputs what its tests need. */
export function make(stack: Stack, { callers, props, beside }: Variant): void {
  const locks = new LockService(stack, "Locks", props(stack));
  const outputs = {
    ...{ Url: locks.url, TableName: locks.table.tableName, LogGroupName: locks.log.logGroupName },
    ...Object.fromEntries(Object.entries(locks.functions).map(([duty, { functionName }]) => [`${duty}Function`, functionName])),
    ...(locks.agent && { agentFunction: locks.agent.functionName }),
  };
  for (const [name, value] of Object.entries(outputs)) new CfnOutput(stack, name, { value });
  if (callers === "iam") {
    const resources = [locks.api.arnForExecuteApi("*", "/*", "$default")];
    for (const id of ["first", "second", "stranger"])
      roleOf(stack, id).addToPolicy(new PolicyStatement({ actions: ["execute-api:Invoke"], resources }));
    locks.grantAdmin(roleOf(stack, "admin"));
    locks.grantClient(roleOf(stack, "client"), { prefix: CLIENT_PREFIX });
  }
  beside?.(stack, locks);
}

/** A role that the account may assume, with a name by which a test finds it. */
function roleOf(stack: Stack, id: string): Role {
  return new Role(stack, id, { assumedBy: new AccountRootPrincipal(), roleName: `${stack.stackName}-${id}` });
}

/** Makes a user pool with two operators, whose tokens have only the operators' scope, and with a user. */
function userPool(stack: Stack): LockServiceProps["jwt"] {
  const pool = new UserPool(stack, "Pool", { removalPolicy: RemovalPolicy.DESTROY });
  const [admin, use] = ["admin", "use"].map((scopeName) => new ResourceServerScope({ scopeName, scopeDescription: scopeName })) as [
    ResourceServerScope,
    ResourceServerScope,
  ];
  const server = pool.addResourceServer("Server", { identifier: "locks", scopes: [admin, use] });
  pool.addDomain("Domain", { cognitoDomain: { domainPrefix: stack.stackName } });
  const audience = Object.entries({ Operator: admin, Deputy: admin, User: use }).map(([id, scope]) => {
    const scopes = [OAuthScope.resourceServer(server, scope)];
    const client = pool.addClient(id, { generateSecret: true, oAuth: { flows: { clientCredentials: true }, scopes } });
    new CfnOutput(stack, `${id}Id`, { value: client.userPoolClientId });
    return client.userPoolClientId;
  });
  new CfnOutput(stack, "PoolId", { value: pool.userPoolId });
  const issuer = `https://cognito-idp.${stack.region}.amazonaws.com/${pool.userPoolId}`;
  return { issuer, audience, scopes: ["locks/use"], adminScopes: ["locks/admin"] };
}
