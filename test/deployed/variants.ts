/**
 * The stacks of the run, a row for each: the options of its lock service, and who calls it. Those with doors in `conforms` are asked the whole
 * conformance by all their callers.
 */
import { join } from "node:path";
import { CfnOutput, Duration, RemovalPolicy, type Stack } from "aws-cdk-lib";
import { OAuthScope, ResourceServerScope, UserPool } from "aws-cdk-lib/aws-cognito";
import { type IVpc, SubnetType, Vpc } from "aws-cdk-lib/aws-ec2";
import { AccountRootPrincipal, PolicyStatement, Role } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Code, Function, type FunctionProps, Runtime } from "aws-cdk-lib/aws-lambda";
import { Topic } from "aws-cdk-lib/aws-sns";
import { SqsSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Queue } from "aws-cdk-lib/aws-sqs";
import {
  Choice,
  Condition,
  DefinitionBody,
  Fail,
  type IChainable,
  Pass,
  StateMachine,
  Wait,
  WaitTime,
} from "aws-cdk-lib/aws-stepfunctions";
import { LockService } from "../../infra/lock-service.js";
import { LockedSection, type SectionLock } from "../../infra/step-functions.js";
import type { LockServiceProps } from "../../infra/props.js";
import { RUN_DIRECTORY } from "./emulator.js";

/** The bundle of functions.ts. */
export const FUNCTIONS_DIRECTORY = join(RUN_DIRECTORY, "functions");

/** The prefixes of clients that may use no other keys: each has a role and a function URL. */
export const PREFIXES = ["ORDER_", "ORDER_1:", "REFUND_", "a.b~"] as const;
/** The one of the client whose rights are tested most. */
export const CLIENT_PREFIX = PREFIXES[0];
/** A rate that a busy machine exceeds too. */
export const THROTTLE = { rateLimit: 3, burstLimit: 5 };
/** The functions' reserved concurrency, in the stack that has some. */
export const RESERVED = { acquire: 20, hold: 21, admin: 5 };

/** The durable functions, whose names are those of their handlers. */
const DURABLE = ["locked", "once"] as const;
const DURABLE_CONFIG = { durableConfig: { executionTimeout: Duration.days(2), retentionPeriod: Duration.days(14) } };
/** The state machines: one whose section waits asleep, one that asks once, and one whose lease is tied to its execution. */
const MACHINES = {
  waits: { leaseMs: 900_000, waitMs: 3_600_000 },
  asks: { leaseMs: 60_000, waitMs: 0 },
  tied: { leaseMs: 180_000, waitMs: 3_600_000, tied: true },
} as const;

/** A stack of the run. */
export interface Variant {
  /** The callers: roles that sign, or clients of a user pool that send tokens. */
  readonly callers: "iam" | "tokens";
  /** The doors by which it runs the conformance. */
  readonly conforms: readonly ("api" | "function-url")[];
  readonly props: (stack: Stack) => LockServiceProps;
  /** Creates other resources beside the service. */
  readonly beside?: (stack: Stack, locks: LockService) => void;
}

/** The stacks by their names. */
export const VARIANTS: Readonly<Record<string, Variant>> = {
  iam: {
    callers: "iam",
    conforms: ["api", "function-url"],
    props: () => ({ functionUrl: { reservedConcurrency: 60 } }),
    beside(stack, locks) {
      for (const prefix of PREFIXES.slice(1)) locks.grantClient(roleOf(stack, roleOfPrefix(prefix)), { prefix, via: "function-url" });
      locks.grantDirect(roleOf(stack, "direct"));
      roleOf(stack, "forger");
      const byUrl = functionOf(stack, "byUrl", { handler: "index.checkout" });
      locks.grantClient(byUrl, { prefix: CLIENT_PREFIX, via: "function-url" });
      new CfnOutput(stack, "byUrlName", { value: byUrl.functionName });
      const checkout = functionOf(stack, "checkout");
      locks.grantClient(checkout, { prefix: CLIENT_PREFIX });
      new CfnOutput(stack, "checkoutName", { value: checkout.functionName });
    },
  },
  // Its functions' roles are changed by a test, and its acquire function is broken by another.
  changed: { callers: "iam", conforms: [], props: () => ({ functionUrl: { reservedConcurrency: 20 } }) },
  // The role of its agent is changed by a test, so that its sweeps fail.
  agent: { callers: "iam", conforms: [], props: () => ({ wake: true }) },
  "tenant-role": { callers: "iam", conforms: ["api"], props: () => ({ tenant: "role", functionUrl: { reservedConcurrency: 1 } }) },
  "tenant-account": {
    callers: "iam",
    conforms: [],
    props: () => ({ tenant: "account", throttle: THROTTLE, acquireThrottle: THROTTLE }),
  },
  sleepers: {
    callers: "iam",
    conforms: [],
    props(stack) {
      const functions = DURABLE.map((id) => functionOf(stack, id, DURABLE_CONFIG));
      return { wake: { functions, stateMachines: [StateMachine.fromStateMachineName(stack, "Known", "tied")] } };
    },
    beside(stack, locks) {
      for (const id of DURABLE) {
        const durable = stack.node.findChild(id) as Function;
        locks.grantClient(durable);
        new CfnOutput(stack, `${id}Name`, { value: durable.functionName });
      }
      for (const [name, options] of Object.entries(MACHINES)) {
        const section = new LockedSection(stack, name, {
          service: locks,
          key: "{% $states.input.key %}",
          work: (lock) => workOf(stack, name, lock),
          ...options,
        });
        const machine = new StateMachine(stack, `${name}Machine`, {
          stateMachineName: name,
          definitionBody: DefinitionBody.fromChainable(section),
        });
        new CfnOutput(stack, `${name}Arn`, { value: machine.stateMachineArn });
      }
    },
  },
  "tenant-claim": { callers: "tokens", conforms: [], props: (stack) => ({ jwt: userPool(stack), tenant: "claim:client_id" }) },
  tokens: { callers: "tokens", conforms: ["api"], props: (stack) => ({ jwt: userPool(stack), console: true }) },
  all: {
    callers: "iam",
    conforms: [],
    props: (stack) => ({
      ...{ alarmTopic: topicWithQueue(stack), reservedConcurrency: RESERVED, metricPrefixes: ["ORDER_"], tracing: true, wake: true },
      functionUrl: true,
      encryptionKey: new Key(stack, "Key", { removalPolicy: RemovalPolicy.DESTROY }),
    }),
    beside(stack, locks) {
      locks.alarmOnMissedTick("nightly", { within: Duration.hours(25) });
      // As many apps have it: private subnets, which reach AWS through a NAT gateway.
      const vpc = new Vpc(stack, "Vpc", { maxAzs: 1, restrictDefaultSecurityGroup: false }) as IVpc;
      const inside = functionOf(stack, "inside", {
        handler: "index.checkout",
        vpc,
        vpcSubnets: { subnetType: SubnetType.PRIVATE_WITH_EGRESS },
      });
      locks.grantClient(inside, { prefix: CLIENT_PREFIX });
      new CfnOutput(stack, "insideName", { value: inside.functionName });
    },
  },
};

/** Makes the stack of a row, and outputs what its tests need. */
export function make(stack: Stack, { callers, props, beside }: Variant): void {
  const options = props(stack);
  const locks = new LockService(stack, "Locks", options);
  const outputs = {
    ...{ Url: locks.url, TableName: locks.table.tableName, LogGroupName: locks.log.logGroupName },
    ...Object.fromEntries(Object.entries(locks.functions).map(([duty, { functionName }]) => [`${duty}Function`, functionName])),
    ...(locks.agent && { agentFunction: locks.agent.functionName }),
  };
  for (const [name, value] of Object.entries(outputs)) new CfnOutput(stack, name, { value });
  if (callers === "iam") {
    const resources = [locks.api.arnForExecuteApi("*", "/*", "$default")];
    const [first, second, stranger, client] = ["first", "second", "stranger", "client"].map((id) => roleOf(stack, id));
    for (const role of [first!, second!, stranger!]) role.addToPolicy(new PolicyStatement({ actions: ["execute-api:Invoke"], resources }));
    locks.grantAdmin(roleOf(stack, "admin"));
    locks.grantClient(client!, { prefix: CLIENT_PREFIX });
    if (options.functionUrl) {
      for (const role of [first!, second!]) locks.grantClient(role, { via: "function-url" });
      locks.grantClient(client!, { prefix: CLIENT_PREFIX, via: "function-url" });
      new CfnOutput(stack, "AllKeysUrl", { value: locks.functionUrlFor() });
      for (const [at, prefix] of PREFIXES.entries()) new CfnOutput(stack, `PrefixUrl${at}`, { value: locks.functionUrlFor({ prefix }) });
    }
  }
  beside?.(stack, locks);
}

/** A topic whose messages a test finds in a queue. */
function topicWithQueue(stack: Stack): Topic {
  const topic = new Topic(stack, "Topic");
  const queue = new Queue(stack, "Rung");
  topic.addSubscription(new SqsSubscription(queue, { rawMessageDelivery: true }));
  new CfnOutput(stack, "QueueUrl", { value: queue.queueUrl });
  return topic;
}

/** A function of functions.ts, which setup.ts bundles. */
function functionOf(stack: Stack, id: string, more: Partial<FunctionProps> = {}): Function {
  const code = Code.fromAsset(FUNCTIONS_DIRECTORY);
  return new Function(stack, id, { runtime: Runtime.NODEJS_24_X, handler: `index.${id}`, code, timeout: Duration.seconds(30), ...more });
}

/** The work of a section: it waits for the seconds of its input, then fails if its input says so, and returns its fencing token. */
function workOf(stack: Stack, name: string, { fencingToken }: SectionLock): IChainable {
  const work = Wait.jsonata(stack, `${name} work`, { time: WaitTime.seconds("{% $states.input.seconds %}") });
  const end = Pass.jsonata(stack, `${name} end`, { outputs: { fencingToken: `{% ${fencingToken} %}` } });
  const fails = Fail.jsonata(stack, `${name} fails`, { error: "CardDeclined", cause: "a test" });
  return work.next(Choice.jsonata(stack, `${name} how`).when(Condition.jsonata("{% $states.input.fails = true %}"), fails).otherwise(end));
}

/** The role of a client of that prefix, without the stack's name. */
export function roleOfPrefix(prefix: string): string {
  return prefix === CLIENT_PREFIX ? "client" : `client${PREFIXES.indexOf(prefix as never)}`;
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
