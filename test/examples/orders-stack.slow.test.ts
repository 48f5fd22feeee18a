/** The order service as a CDK app: its functions' environment and rights, and a check that their code loads. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { beforeAll, describe, expect, it } from "vitest";
import { BUYER } from "../../examples/orders/buyer.js";
import { SELLER } from "../../examples/orders/seller.js";
import type { Routes } from "../../examples/orders/shop.js";
import { OrdersStack } from "../../examples/orders/stack.js";
import { type Resource, type Statement, all, arnLike, pathsOf } from "../infra/resources.js";
import { newApp } from "../infra/synthesize.js";
import { ROOT } from "../tidy/tree.js";

const PROPS = {
  issuer: "https://issuer.example",
  audience: "orders",
  providerUrl: "https://provider.example",
  carrierUrl: "https://carrier.example",
};

const [LOCKS_API, ORDERS] = [/^LocksApi/, /^Orders/];

type Role = "buyer" | "seller" | "carrier";
const ROLES = ["buyer", "seller", "carrier"] as const;

let template: Template;
let stack: OrdersStack;
let directory: string;

beforeAll(() => {
  const app = newApp();
  stack = new OrdersStack(app, "orders", PROPS);
  directory = app.synth().directory;
  template = Template.fromStack(stack);
});

const idOf = (type: string, name: RegExp): string => all(template, type).find(([id]) => name.test(id))![0];

function functionOf(role: Role): [logicalId: string, resource: Resource] {
  return all(template, "AWS::Lambda::Function").find(([, { Properties }]) => Properties["Handler"] === `index.${role}`)!;
}

/** All statements that the function's role was granted. */
function statementsOf(role: Role): readonly Statement[] {
  const id = functionOf(role)[1].Properties["Role"]["Fn::GetAtt"][0] as string;
  const policies = all(template, "AWS::IAM::Policy").filter(([, { Properties }]) => Properties["Roles"][0].Ref === id);
  return policies.flatMap(([, { Properties }]) => Properties["PolicyDocument"].Statement as Statement[]);
}

/** True if the function may call the lock service with this method and path. */
function mayCall(role: Role, call: string): boolean {
  const invoke = statementsOf(role).filter(({ Action }) => Action === "execute-api:Invoke");
  return invoke.flatMap(pathsOf).some((pattern) => arnLike(pattern, `/$default/${call}`));
}

describe("the stack of the order service", () => {
  it.each(ROLES)("tells the %s's function where the locks and the orders are", (role) => {
    const { Properties } = functionOf(role)[1];
    expect(Properties).toMatchObject({ Runtime: "nodejs24.x", Architectures: ["arm64"] });
    expect(Properties["Environment"].Variables).toEqual({
      HOLDFAST_URL: { "Fn::GetAtt": [idOf("AWS::ApiGatewayV2::Api", LOCKS_API), "ApiEndpoint"] },
      ORDERS_TABLE: { Ref: idOf("AWS::DynamoDB::Table", ORDERS) },
      PROVIDER_URL: PROPS.providerUrl,
      CARRIER_URL: PROPS.carrierUrl,
      NODE_OPTIONS: "--enable-source-maps",
    });
  });

  it("gives each function a role of its own", () => {
    expect(new Set(ROLES.map((role) => JSON.stringify(functionOf(role)[1].Properties["Role"]))).size).toBe(ROLES.length);
  });

  it("has one durable function, whose executions the agent may wake", () => {
    const [id, { Properties }] = functionOf("carrier");
    expect(Properties["DurableConfig"]).toEqual({ ExecutionTimeout: 2 * 86_400, RetentionPeriodInDays: 14 });
    for (const role of ["buyer", "seller"] as const) expect(functionOf(role)[1].Properties).not.toHaveProperty("DurableConfig");
    const told = all(template, "AWS::IAM::Role").filter(([, one]) => JSON.stringify(one).includes("SendDurableExecutionCallbackSuccess"));
    expect(told).toHaveLength(1);
    expect(JSON.stringify(told)).toContain(`"Fn::GetAtt":["${id}","Arn"]`);
  });

  it.each(ROLES)("lets the %s lock and run what begins with ORDER_, and nothing else", (role) => {
    const [order, other] = ["ORDER_lx3k-8f3a", "INVOICE_7"];
    for (const kind of ["locks", "runs"]) {
      for (const call of ["PUT", "DELETE", "GET"].map((method) => `${method}/v1/${kind}/${order}/leases/0199`)) {
        expect(mayCall(role, call), call).toBe(true);
        expect(mayCall(role, call.replace(order, other)), call).toBe(false);
      }
    }
    expect(mayCall(role, `POST/v1/locks/${order}/leases/0199/renew`)).toBe(true);
    expect(mayCall(role, `PUT/v1/runs/${order}/leases/0199/outcome`)).toBe(true);
  });

  it.each([
    ["an operator's call", "POST/v1/locks/ORDER_lx3k-8f3a/break"],
    ["an operator's call", "POST/v1/runs/ORDER_lx3k-8f3a/reset"],
    ["an operator's call", "GET/v1/locks"],
    ["an operator's call", "GET/v1/runs"],
    ["a call with keys in its body", "PUT/v1/lock-sets/0199"],
    ["a call with keys in its body", "POST/v1/renewals"],
  ])("lets neither make %s: %s", (_which, call) => {
    for (const role of ROLES) expect(mayCall(role, call), role).toBe(false);
  });

  it("lets all at the orders, buyer and seller at an index of their own, and none at the table of the locks", () => {
    const arn = { "Fn::GetAtt": [idOf("AWS::DynamoDB::Table", ORDERS), "Arn"] };
    const atTable = (role: Role) => statementsOf(role).filter(({ Action }) => JSON.stringify(Action).includes("dynamodb:"));
    const onIndex = (name: string) => ({
      Effect: "Allow",
      Action: "dynamodb:Query",
      Resource: { "Fn::Join": ["", [arn, `/index/${name}`]] },
    });
    expect(atTable("buyer")).toEqual([
      { Effect: "Allow", Action: ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], Resource: arn },
      onIndex("by-buyer"),
    ]);
    expect(atTable("seller")).toEqual([
      { Effect: "Allow", Action: ["dynamodb:GetItem", "dynamodb:UpdateItem"], Resource: arn },
      onIndex("by-seller"),
    ]);
    expect(atTable("carrier")).toEqual([{ Effect: "Allow", Action: ["dynamodb:GetItem", "dynamodb:UpdateItem"], Resource: arn }]);
    for (const role of ["buyer", "seller"] as const) expect(statementsOf(role)).toHaveLength(3);
  });

  it("has the fifteen routes, each to its function and each behind the issuer's tokens", () => {
    const authorizers = all(template, "AWS::ApiGatewayV2::Authorizer").filter(([, one]) => one.Properties["AuthorizerType"] === "JWT");
    expect(authorizers.map(([, one]) => one.Properties["JwtConfiguration"])).toEqual([
      { Audience: [PROPS.audience], Issuer: PROPS.issuer },
    ]);
    const integrations = new Map(all(template, "AWS::ApiGatewayV2::Integration"));
    const routes = all(template, "AWS::ApiGatewayV2::Route")
      .map(([, { Properties }]) => Properties)
      .filter(({ ApiId }) => ApiId.Ref !== idOf("AWS::ApiGatewayV2::Api", LOCKS_API));
    expect(routes).toHaveLength(15);
    for (const [role, served] of Object.entries({ buyer: BUYER, seller: SELLER }) as ["buyer" | "seller", Routes][]) {
      for (const routeKey of Object.keys(served)) {
        const route = routes.find(({ RouteKey }) => RouteKey === routeKey)!;
        expect(route, routeKey).toMatchObject({ AuthorizationType: "JWT", AuthorizerId: { Ref: authorizers[0]![0] } });
        const target = integrations.get(route["Target"]["Fn::Join"][1][1].Ref as string)!.Properties;
        const IntegrationUri = { "Fn::GetAtt": [functionOf(role)[0], "Arn"] };
        expect(target, routeKey).toMatchObject({ PayloadFormatVersion: "2.0", IntegrationUri });
      }
    }
  });

  it("keeps the orders when it goes, and is made without a warning", () => {
    template.hasResource("AWS::DynamoDB::Table", { DeletionPolicy: "Retain", Properties: { GlobalSecondaryIndexes: Match.anyValue() } });
    expect(Annotations.fromStack(stack).findWarning("*", Match.anyValue())).toEqual([]);
    expect(Annotations.fromStack(stack).findError("*", Match.anyValue())).toEqual([]);
  });

  it("bundles code that loads where there is no node_modules, and answers", () => {
    const assets = readdirSync(directory).filter(
      (file) => file.startsWith("asset.") && readdirSync(join(directory, file)).includes("index.mjs"),
    );
    const program = `
      const [codes, event] = process.argv.slice(1).map((text) => JSON.parse(text));
      for (const code of codes) {
        const { buyer, seller } = await import(code);
        if (!buyer) continue;
        const told = await Promise.all([buyer, seller].map((handler) => handler(event, { getRemainingTimeInMillis: () => 5000 })));
        console.log(told.map(({ statusCode }) => statusCode).join(" "));
      }`;
    const env = {
      AWS_REGION: "us-east-1",
      // The asset of the service's agent asks for them when it is loaded.
      AWS_ACCESS_KEY_ID: "id",
      AWS_SECRET_ACCESS_KEY: "secret",
      HOLDFAST_URL: "https://locks.example",
      HOLDFAST_TABLE: "locks",
      ORDERS_TABLE: "orders",
      PROVIDER_URL: PROPS.providerUrl,
      CARRIER_URL: PROPS.carrierUrl,
    };
    const codes = assets.map((asset) => pathToFileURL(join(directory, asset, "index.mjs")).href);
    const event = { routeKey: "GET /orders", headers: {}, requestContext: {} };
    const args = ["--input-type=module", "-e", program, JSON.stringify(codes), JSON.stringify(event)];
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: directory, env, encoding: "utf8" });
    expect(stdout, stderr).toBe("401 404\n"); // Nobody is signed in, and it is no route of the sellers' function.
  });

  it("says in one line what its app was not given", () => {
    const env = { PATH: process.env["PATH"], CDK_CONTEXT_JSON: JSON.stringify({ issuer: "http://issuer.example" }) };
    const run = spawnSync(process.execPath, ["--import", "tsx", "examples/orders/app.ts"], { cwd: ROOT, env, encoding: "utf8" });
    expect(run).toMatchObject({ status: 1, stderr: "issuer must be given: -c issuer=https://…\n" });
  });
});
