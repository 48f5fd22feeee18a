/** The construct's function URLs: policies that reach nothing else, and what is refused. The recorded template has aliases and URLs (templates.test.ts). */
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { describe, expect, it } from "vitest";
import { LockService } from "../../infra/lock-service.js";
import type { LockServiceProps } from "../../infra/props.js";
import { HoldfastStack } from "../../infra/stack.js";
import { type Statement, all } from "./resources.js";
import { newApp, warningsOf } from "./synthesize.js";

function stackWith(props: LockServiceProps = { functionUrl: { reservedConcurrency: 20 } }, region?: string) {
  const stack = new Stack(newApp(), "shop", region === undefined ? {} : { env: { account: "111122223333", region } });
  const locks = new LockService(stack, "Locks", props);
  const role = (id: string): Role => new Role(stack, id, { assumedBy: new AccountRootPrincipal() });
  const code = Code.fromInline("exports.handler = async () => {}");
  const client = (id: string) => new LambdaFunction(stack, id, { runtime: Runtime.NODEJS_24_X, handler: "index.handler", code });
  return { stack, locks, role, client };
}

/** The statements of every policy in the template, of roles and of resources. */
function everyStatement(template: Template): Statement[] {
  const policies = all(template, "AWS::IAM::Policy").map(([, { Properties }]) => Properties.PolicyDocument);
  const inline = all(template, "AWS::IAM::Role").flatMap(([, { Properties }]) => Properties.Policies ?? []);
  return [...policies, ...inline.map(({ PolicyDocument }: { PolicyDocument: object }) => PolicyDocument)].flatMap(
    ({ Statement }) => Statement,
  );
}

describe("grants by function URL", () => {
  const { stack, locks, role, client } = stackWith();
  locks.grantClient(role("OfOrders"), { prefix: "ORDER_", via: "function-url" });
  locks.grantClient(role("OfOrdersToo"), { prefix: "ORDER_", via: "function-url" });
  locks.grantClient(role("OfRefunds"), { prefix: "REFUND_", via: "function-url" });
  locks.grantClient(client("OfAll"), { via: "function-url" });
  locks.grantClient(client("ByApi"));
  const template = Template.fromStack(stack);

  it("let nobody invoke a function with an event of its own: no policy has the action without the condition", () => {
    const invoking = everyStatement(template).filter(({ Action }) =>
      [Action].flat().some((one) => /^(?:lambda:(?:Invoke.*|\*)|\*)$/.test(one)),
    );
    expect(invoking).toHaveLength(8);
    for (const { Action, Condition } of invoking) {
      const isByUrl = JSON.stringify(Condition).includes("lambda:InvokedViaFunctionUrl");
      expect(Action === "lambda:InvokeFunctionUrl" || isByUrl, JSON.stringify(Action)).toBe(true);
    }
    // Resource policies are for API Gateway alone.
    for (const [, { Properties }] of all(template, "AWS::Lambda::Permission"))
      expect(Properties.Principal).toBe("apigateway.amazonaws.com");
    expect(Object.values(locks).some((member) => member instanceof LambdaFunction)).toBe(false);
    expect(Object.keys(locks.functions)).toEqual(["acquire", "hold", "admin"]);
  });

  it("have the URL that functionUrlFor gives", () => {
    const [, { Properties }] = all(template, "AWS::Lambda::Function").find(([id]) => id.startsWith("OfAll"))!;
    expect(stack.resolve(locks.functionUrlFor())).toEqual(Properties.Environment.Variables.HOLDFAST_URL);
    expect(stack.resolve(locks.functionUrlFor({ prefix: "ORDER_" }))).not.toEqual(stack.resolve(locks.functionUrlFor()));
  });
});

it("the stack's outputs have the function URL for all keys beside the API's, if there is one", () => {
  const outputsOf = (props: LockServiceProps) => {
    const stack = new HoldfastStack(newApp(), "shop", {}, () => props);
    return (Template.fromStack(stack).toJSON() as { Outputs: Readonly<Record<string, { Value: unknown }>> }).Outputs;
  };
  const { Url, FunctionUrl } = outputsOf({ functionUrl: { reservedConcurrency: 20 } });
  expect(JSON.stringify(Url)).toContain("ApiEndpoint");
  expect(JSON.stringify(FunctionUrl)).toMatch(/"Fn::GetAtt":\["LocksUrlAliasclients.*","FunctionUrl"\]/);
  expect(outputsOf({})).not.toHaveProperty("FunctionUrl");
});

describe("the property functionUrl", () => {
  it.each<[why: string, props: LockServiceProps, message: string]>([
    [
      "with tokens",
      { functionUrl: true, jwt: { issuer: "https://issuer.example", audience: ["shop"] } },
      "functionUrl: function URLs check IAM",
    ],
    ["with an unknown option", { functionUrl: { reserved: 2 } as object }, "reserved: is not an option of functionUrl"],
    ["with half an execution", { functionUrl: { reservedConcurrency: 0.5 } }, "functionUrl.reservedConcurrency: 0.5 given"],
  ])("is refused %s", (_why, props, message) => {
    expect(() => stackWith(props)).toThrow(message);
  });

  it("may reserve 0, which closes the door", () => {
    const [, { Properties }] = all(
      Template.fromStack(stackWith({ functionUrl: { reservedConcurrency: 0 } }).stack),
      "AWS::Lambda::Function",
    ).find(([id]) => id.startsWith("LocksUrlFunction"))!;
    expect(Properties.ReservedConcurrentExecutions).toBe(0);
  });

  it("warns without reserved concurrency, and in a Region without function URLs; control: neither, no warning", () => {
    const warnings = (props: LockServiceProps, region: string) => warningsOf(stackWith(props, region).stack);
    expect(warnings({ functionUrl: { reservedConcurrency: 5 } }, "eu-west-1")).toEqual([]);
    expect(warnings({ functionUrl: true }, "eu-west-1")).toEqual([expect.stringContaining("without reservedConcurrency")]);
    expect(warnings({ functionUrl: { reservedConcurrency: 5 } }, "eu-south-2")).toEqual([
      expect.stringContaining("eu-south-2 has no function URLs"),
    ]);
  });
});

describe("a grant by function URL is refused", () => {
  it("for a prefix that keys can't have, or that is too long for an alias", () => {
    const { locks, role } = stackWith();
    const to = role("Client");
    expect(() => locks.grantClient(to, { via: "function-url", prefix: "a*" })).toThrow('prefix: no key can begin with "a*"');
    expect(() => locks.grantClient(to, { via: "function-url", prefix: "_".repeat(41) })).toThrow(
      "its alias would have 130 characters, and Lambda allows 128",
    );
    locks.grantClient(to, { via: "function-url", prefix: "_".repeat(40) });
  });

  it("for an unknown way, and without the property", () => {
    const { locks, role } = stackWith({});
    expect(() => locks.grantClient(role("Client"), { via: "url" as "api" })).toThrow(
      'via: "url" given; it must be "api" or "function-url"',
    );
    expect(() => locks.grantClient(role("Other"), { via: "function-url" })).toThrow("give its property functionUrl");
    expect(() => locks.functionUrlFor()).toThrow("give its property functionUrl");
  });

  it("for a function that has another URL; one of the same URL adds up, and a role has no URL to overwrite", () => {
    const { locks, client, role } = stackWith();
    const shop = client("Shop");
    locks.grantClient(shop, { prefix: "ORDER_", via: "function-url" });
    locks.grantClient(shop, { prefix: "ORDER_", via: "function-url" });
    expect(() => locks.grantClient(shop, { prefix: "REFUND_", via: "function-url" })).toThrow("a function has one HOLDFAST_URL");
    expect(() => locks.grantClient(shop)).toThrow("a function has one HOLDFAST_URL");
    const worker = client("Worker");
    locks.grantClient(worker, { prefix: "ORDER_" });
    locks.grantClient(worker, { prefix: "REFUND_" });
    const task = role("Task");
    locks.grantClient(task, { prefix: "ORDER_", via: "function-url" });
    locks.grantClient(task);
  });
});
