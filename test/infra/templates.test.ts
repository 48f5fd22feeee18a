/**
 * The templates that the construct makes: of the stack as it is whole, and of each variant what differs from that. A resource is a few lines,
 * each a property. Tests beside this one hold what is true for every route, role and metric. To accept a change, read the difference and run:
 *
 *     npx vitest run test/infra/templates -u
 */
import { fileURLToPath } from "node:url";
import { type Stack, Duration } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { DomainName } from "aws-cdk-lib/aws-apigatewayv2";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import { TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { Topic } from "aws-cdk-lib/aws-sns";
import { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { expect, it } from "vitest";
import { bundleHosted } from "../../console/bundle.js";
import type { LockService } from "../../infra/lock-service.js";
import type { LockServiceProps } from "../../infra/props.js";

import { HoldfastStack } from "../../infra/stack.js";
import { newApp } from "./synthesize.js";

await bundleHosted(fileURLToPath(new URL("../../infra/console", import.meta.url)));

const jwt = { issuer: "https://id.example.com/", audience: ["locks"], scopes: ["locks:use"] } as const;
const arn = (service: string, rest: string): string => `arn:aws:${service}:eu-west-1:111122223333:${rest}`;
const role = (stack: Stack, id: string): Role => new Role(stack, id, { assumedBy: new AccountRootPrincipal() });
const client = (stack: Stack, id: string): LambdaFunction =>
  new LambdaFunction(stack, id, {
    runtime: Runtime.NODEJS_24_X,
    handler: "index.handler",
    code: Code.fromInline("exports.handler = async () => {}"),
  });

interface Variant {
  /** The stack's Region. @default that of the deployment */
  readonly region?: string;
  readonly props?: (stack: Stack) => LockServiceProps;
  /** Makes grants, and what else is beside the service. */
  readonly beside?: (service: LockService, stack: Stack) => void;
}

const VARIANTS: Readonly<Record<string, Variant>> = {
  tokens: { props: () => ({ jwt: { ...jwt, operatorScopes: ["locks:all-tenants"] }, tenant: "claim:tenant_id" }) },
  console: { props: () => ({ jwt, console: true }) },
  "an agent": {
    props: (stack) => ({
      wake: {
        functions: [LambdaFunction.fromFunctionArn(stack, "Durable", arn("lambda", "function:durable"))],
        stateMachines: [StateMachine.fromStateMachineArn(stack, "Orders", arn("states", "stateMachine:orders"))],
      },
    }),
  },
  "functions with every option": {
    props: () => ({
      ...{ tracing: true, memorySizeMb: 1024, reservedConcurrency: { hold: 50, acquire: 200 }, logRetention: RetentionDays.TWO_YEARS },
      ...{ throttle: { rateLimit: 30, burstLimit: 20 }, acquireThrottle: { rateLimit: 3, burstLimit: 2 }, serverWaitMs: 2000 },
    }),
  },
  "a customer's key": { props: (stack) => ({ encryptionKey: new Key(stack, "Key") }) },
  "alarms that notify": {
    props: (stack) => ({ alarmTopic: new Topic(stack, "Pager"), metricPrefixes: ["ORDER_", "X_"] }),
    beside: (service) => void service.alarmOnMissedTick("report:eu", { within: Duration.hours(25) }),
  },
  "a domain": {
    props(stack) {
      const certificate = Certificate.fromCertificateArn(stack, "Certificate", arn("acm", "certificate/c"));
      return { domain: { domainName: new DomainName(stack, "Domain", { domainName: "locks.example.com", certificate }), mappingKey: "v" } };
    },
  },
  "function URLs": {
    props: (stack) => ({ functionUrl: { reservedConcurrency: 20 }, alarmTopic: new Topic(stack, "Pager") }),
    beside(service, stack) {
      for (const [id, prefix] of [
        ["OfOrders", "ORDER_"],
        ["OfOrdersToo", "ORDER_"],
        ["OfRefunds", "REFUND_"],
      ] as const)
        service.grantClient(role(stack, id), { prefix, via: "function-url" });
      service.grantClient(client(stack, "OfAll"), { via: "function-url" });
    },
  },
  "a table in several Regions": {
    region: "us-east-1",
    props: () => ({ regions: { replicas: ["us-east-2"], witness: "us-west-2" }, wake: true }),
    beside: (service, stack) => void service.grantDirect(client(stack, "Shop")),
  },
  "the table of another Region": {
    region: "us-east-2",
    props: (stack) => ({
      table: TableV2.fromTableName(stack, "First", "locks"),
      regions: { replicas: ["us-east-1"], witness: "us-west-2" },
    }),
  },
  "grants in a service of tenants": {
    props: () => ({ tenant: "account" }),
    beside(service, stack) {
      const shop = client(stack, "Shop");
      service.grantClient(shop, { prefix: "ORDER_" });
      service.grantDirect(shop);
      service.grantOperator(role(stack, "Operator"));
    },
  },
  grants: {
    beside(service, stack) {
      service.grantDirect(client(stack, "Shop"));
      service.grantClient(role(stack, "Client"));
      service.grantAdmin(role(stack, "Admin"));
    },
  },
};

/** The lines of a template: resource and outputs, a property each. The hash of code is left out, because it differs with each change of the code. */
function linesOf({ region, props = () => ({}), beside = () => undefined }: Variant = {}): readonly string[] {
  const app = newApp();
  const stack = new HoldfastStack(app, "holdfast-dev", region === undefined ? {} : { env: { region } }, props);
  beside(stack.service, stack);
  app.synth();
  const { Resources, Outputs } = Template.fromStack(stack).toJSON() as Record<string, Record<string, Record<string, unknown>>>;
  const lines = Object.entries({ ...Resources, ...Outputs }).flatMap(([id, { Metadata: _, Properties, ...attributes }]) =>
    Object.entries({ ...attributes, ...(Properties as object) }).map(([name, value]) => `${id} ${name}: ${JSON.stringify(value)}`),
  );
  return lines.map((line) => line.replaceAll(/[0-9a-f]{64}\.zip/g, "HASH.zip")).toSorted();
}

const PLAIN = linesOf();

function difference(lines: readonly string[]): readonly string[] {
  const [before, after] = [new Set(PLAIN), new Set(lines)];
  const gone = PLAIN.filter((line) => !after.has(line)).map((line) => `- ${line}`);
  const added = lines.filter((line) => !before.has(line)).map((line) => `+ ${line}`);
  return [...gone, ...added].toSorted((one, other) => one.slice(2).localeCompare(other.slice(2)) || other.localeCompare(one));
}

const how = "the template changed: review it, then run npx vitest run test/infra/templates -u";
const fileOf = (name: string): string => `templates/${name.replaceAll(/\W+/g, "-")}.txt`;

it("the stack's template is as it is recorded", async () => {
  await expect(`${PLAIN.join("\n")}\n`, how).toMatchFileSnapshot(fileOf("stack"));
});

it.each(Object.entries(VARIANTS))("the template with %s differs from the stack's as it is recorded", async (name, variant) => {
  await expect(`${difference(linesOf(variant)).join("\n")}\n`, how).toMatchFileSnapshot(fileOf(name));
});

it("with nothing asked for, every option off is the same template", () => {
  expect(difference(linesOf({ props: () => ({ wake: false, console: false, tracing: false }) }))).toEqual([]);
});
