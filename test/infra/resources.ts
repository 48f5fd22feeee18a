/** A template's resources, and evaluation of IAM policies, for tests that read the template to be deployed. */
import type { Template } from "aws-cdk-lib/assertions";
import { expect } from "vitest";

/** A resource of a template. */
export interface Resource {
  // The properties depend on the resource.
  readonly Properties: Readonly<Record<string, any>>; // eslint-disable-line @typescript-eslint/no-explicit-any -- a test reads what was made
  readonly [attribute: string]: unknown;
}

/** A statement of a policy. */
export interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
}

export function all(template: Template, type: string): [logicalId: string, resource: Resource][] {
  return Object.entries(template.findResources(type) as Record<string, Resource>);
}

/** The properties of each route, by its key. */
export function routesOf(template: Template): Readonly<Record<string, Resource["Properties"]>> {
  return Object.fromEntries(
    all(template, "AWS::ApiGatewayV2::Route").map(([, { Properties }]) => [Properties.RouteKey as string, Properties]),
  );
}

export function only(template: Template, type: string): [logicalId: string, resource: Resource] {
  const found = all(template, type);
  expect(found, type).toHaveLength(1);
  return found[0]!;
}

export function functionOf(template: Template, duty: string): [logicalId: string, resource: Resource] {
  const found = all(template, "AWS::Lambda::Function").filter(([id]) => id.toLowerCase().startsWith(`locks${duty}`));
  expect(found, duty).toHaveLength(1);
  return found[0]!;
}

/** The statements of the role's own policies. */
export function statementsOf(role: Resource): Statement[] {
  const policies = (role.Properties["Policies"] ?? []) as { PolicyDocument: { Statement: Statement[] } }[];
  return policies.flatMap((policy) => policy.PolicyDocument.Statement);
}

/** The statements of policies attached to roles: grants. */
export function grantedStatements(template: Template): Statement[] {
  return all(template, "AWS::IAM::Policy").flatMap(
    ([, policy]) => (policy.Properties["PolicyDocument"] as { Statement: Statement[] }).Statement,
  );
}

/** The ends of the API ARNs in a statement: stage, method and path. */
export function pathsOf({ Resource }: Statement): string[] {
  return [Resource].flat().map((arn) => (arn as { "Fn::Join": [string, unknown[]] })["Fn::Join"][1].at(-1) as string);
}

/** IAM's ArnLike within one part of an ARN: `*` matches any characters, including slashes. */
export function arnLike(pattern: string, source: string): boolean {
  const literals = pattern.split("*").map((literal) => literal.replace(/[$.{}/]/g, "\\$&"));
  return new RegExp(`^${literals.join(".*")}$`).test(source);
}

/** The resource of a call to a route for a key, as the gateway names it to IAM. */
export function callOf(routeKey: string, key: string): string {
  const [method, path] = routeKey.split(" ") as [string, string];
  return `/$default/${method}${path.replace("{key}", key).replace("{leaseId}", "0199d3c1-0000-7000-8000-000000000000")}`;
}

/** True if these statements allow a call to a route for a key. */
export function mayCall(statements: readonly Statement[], routeKey: string, key = "ORDER_1231"): boolean {
  return statements.flatMap(pathsOf).some((pattern) => arnLike(pattern, callOf(routeKey, key)));
}
