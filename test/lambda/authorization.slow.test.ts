/**
 * Every route × every caller, on the composed function and a real table: the answer, and whether the owner's records changed (S15). IAM's
 * part is the policy that would be deployed, evaluated here. Each protection has a control without it, which must find a mistake.
 */
import { type DynamoDBClient, ScanCommand } from "@aws-sdk/client-dynamodb";
import { type IGrantable, ArnPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { afterAll, describe, expect, it } from "vitest";
import type { LockService } from "../../infra/lock-service.js";
import { compose } from "../../lambda/compose.js";
import { matchRoute } from "../../lambda/match-route.js";
import { OPERATORS_ROUTE } from "../../lambda/operators.js";
import type { HttpEvent, HttpResult } from "../../lambda/http.js";
import { type OperationName, type RouteKey, DUTIES, ROUTES } from "../../lib/contract/routes.js";
import { canonicalJson } from "../../lib/core/canonical.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { type Statement, all, mayCall } from "../infra/resources.js";
import { synthesizeOwn } from "../infra/synthesize.js";
import { freshTable } from "../support/engine.js";
import { ALICE, BOB, httpEvent } from "../support/http-event.js";
import { checkReply, replyOf } from "../support/reply.js";
import { type AskAsOwner, type Caller, type Owned, type Row, answerOf, AT_THE_GATEWAY, MATRIX, own } from "./authorization-matrix.js";

type AnyCaller = Caller | "limited" | "nobody" | "of all tenants" | "trespasser";
type Handler = (event: HttpEvent) => Promise<HttpResult>;

/** A role of the owner's name, in another account. */
const OTHER_TENANT = { iam: { accountId: "444455556666", userId: ALICE.iam.userId } };

/** The callers: the authorizer's claims, the rights that IAM gives them, and the tenant that they name in the path. */
const CALLERS: Readonly<Record<AnyCaller, { readonly authorizer: unknown; readonly grant: keyof typeof GRANTS; readonly names?: string }>> =
  {
    owner: { authorizer: ALICE, grant: "Admin" },
    peer: { authorizer: BOB, grant: "Client" },
    operator: { authorizer: BOB, grant: "Admin" },
    tenant: { authorizer: OTHER_TENANT, grant: "Admin" },
    limited: { authorizer: BOB, grant: "Limited" },
    nobody: { authorizer: null, grant: "Admin" },
    "of all tenants": { authorizer: OTHER_TENANT, grant: "Operators", names: ALICE.iam.accountId },
    trespasser: { authorizer: OTHER_TENANT, grant: "Admin", names: ALICE.iam.accountId },
  };

/** The owner's keys begin with ORDER_; `Limited` may use others alone. */
const GRANTS = {
  Admin: (service: LockService, grantee: IGrantable) => service.grantAdmin(grantee),
  Client: (service: LockService, grantee: IGrantable) => service.grantClient(grantee),
  Limited: (service: LockService, grantee: IGrantable) => service.grantClient(grantee, { prefix: "PAYMENT_" }),
  Operators: (service: LockService, grantee: IGrantable) => service.grantOperator(grantee),
};

const template = synthesizeOwn(
  () => ({ tenant: "account" }),
  (service, stack) => {
    for (const [name, grant] of Object.entries(GRANTS)) grant(service, new Role(stack, name, { assumedBy: new ArnPrincipal("*") }));
  },
);

function statementsOf(grant: keyof typeof GRANTS): readonly Statement[] {
  const policies = all(template, "AWS::IAM::Policy").filter(([id]) => id.startsWith(grant));
  expect(policies).toHaveLength(1);
  return policies.flatMap(([, policy]) => (policy.Properties["PolicyDocument"] as { Statement: Statement[] }).Statement);
}

/** The protections that a control takes away. */
interface Protections {
  readonly tenant: string | undefined;
  /** True if IAM's policies are evaluated before the function is called. */
  readonly hasGateway: boolean;
  /** Wraps the function. */
  readonly wrap: (handler: Handler) => Handler;
}

const PROTECTED: Protections = { tenant: "account", hasGateway: true, wrap: (handler) => handler };

/** Forges the principal: takes every caller for the owner. */
const forging = (handler: Handler): Handler => {
  return (event) => handler({ ...event, requestContext: { ...event.requestContext, authorizer: ALICE } });
};

interface Service {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly clock: VirtualClock;
  readonly handler: Handler;
}

const clients: DynamoDBClient[] = [];
afterAll(() => clients.forEach((client) => client.destroy()));

async function serviceWith(tenant: string | undefined): Promise<Service> {
  const { client, tableName, ...table } = await freshTable();
  clients.push(client);
  const clock = new VirtualClock();
  const env = { ...table.env, HOLDFAST_TENANT: tenant };
  return { client, tableName, clock, handler: compose(env, { clock, print: () => undefined }) };
}

/** The items as text: the other tenant's, and all others. */
interface Records {
  readonly theirs: string;
  readonly others: string;
}

async function recordsIn({ client, tableName }: Service): Promise<Records> {
  const { Items = [], LastEvaluatedKey } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }));
  expect(LastEvaluatedKey).toBeUndefined();
  const isTheirs = ({ p }: (typeof Items)[number]): boolean => p?.S?.startsWith(`${OTHER_TENANT.iam.accountId}/`) === true;
  const textOf = (items: typeof Items): string => items.map(canonicalJson).sort().join("\n");
  return { theirs: textOf(Items.filter(isTheirs)), others: textOf(Items.filter((item) => !isTheirs(item))) };
}

/** Gives the owner something new. */
function ownNew({ clock, handler }: Service, key: string): Promise<Owned> {
  const ask: AskAsOwner = async (routeKey, parts) => {
    const reply = replyOf(await handler(httpEvent(routeKey, { timeEpoch: clock.wallMs(), ...parts })));
    expect(reply.status).toBeLessThan(300);
    return reply;
  };
  return own(ask, key, clock.wallMs());
}

/** The operations of operators that only look. */
const LOOKS: readonly OperationName[] = ["inspect", "run", "limit", "health"];

/** Returns the event as the gateway passes it on by the route of operators. */
function naming(namespace: string, routeKey: string, event: HttpEvent): HttpEvent {
  const path = (routeKey.split(" /v1/")[1] ?? "").replaceAll(/\{(\w+)\}/g, (_, name: string) => event.pathParameters?.[name] ?? "");
  return { ...event, routeKey: OPERATORS_ROUTE, pathParameters: { namespace, path } };
}

/** The answer that a caller must get. */
function expectedFor(caller: AnyCaller, name: OperationName, row: Row): string {
  if (caller === "nobody") return "403 forbidden";
  if (caller === "trespasser") return AT_THE_GATEWAY;
  if (caller === "of all tenants") return DUTIES[name] === "admin" || LOOKS.includes(name) ? row.operator : "403 forbidden";
  if (caller === "limited") return name === "health" || name === "openapi" ? "200" : AT_THE_GATEWAY;
  return row[caller];
}

/** The rows whose answer to `caller` is not the matrix's. */
async function mistakesFor(caller: AnyCaller, without: Partial<Protections> = {}): Promise<readonly string[]> {
  const { tenant, hasGateway, wrap } = { ...PROTECTED, ...without };
  const service = await serviceWith(tenant);
  const { clock } = service;
  const handler = wrap(service.handler);
  const { authorizer, grant, names } = CALLERS[caller];
  const statements = statementsOf(grant);
  let found: { readonly owned: Owned; readonly before: Records } | undefined;

  async function answerTo(routeKey: string, { request }: Row): Promise<string> {
    const owned = found?.owned ?? (await ownNew(service, `ORDER_${clock.wallMs()}`));
    const before = found?.before ?? (await recordsIn(service));
    // A renewal at the same instant would change nothing.
    await clock.advance(1);
    const parts = request(owned);
    const called = names === undefined ? routeKey : routeKey.replace(" ", ` /namespaces/${names}`);
    if (hasGateway && !mayCall(statements, called, parts.key)) return AT_THE_GATEWAY;
    const event = httpEvent(routeKey, { timeEpoch: clock.wallMs(), authorizer, ...parts });
    const reply = replyOf(await handler(names === undefined ? event : naming(names, routeKey, event)));
    const after = await recordsIn(service);
    checkReply(routeKey, reply, JSON.stringify([event.pathParameters, event.body]));
    // A request that changed something is the last to meet these records.
    found = before.others === after.others && before.theirs === after.theirs ? { owned, before } : undefined;
    return answerOf(reply) + (before.others === after.others ? "" : " → changed");
  }

  const mistakes: string[] = [];
  for (const [name, routeKey] of Object.entries(ROUTES) as [OperationName, RouteKey][])
    for (const row of MATRIX[name]) {
      const answer = await answerTo(routeKey, row);
      const expected = expectedFor(caller, name, row);
      if (answer !== expected) mistakes.push(`${name} ${row.asks}: ${answer}, expected ${expected}`);
    }
  return mistakes;
}

/** The number of rows that a protection decides: those whose answers to these two callers differ. */
function differing(one: AnyCaller, other: AnyCaller): number {
  const rows = (Object.keys(ROUTES) as OperationName[]).flatMap((name) => MATRIX[name].map((row) => [name, row] as const));
  return rows.filter(([name, row]) => expectedFor(one, name, row) !== expectedFor(other, name, row)).length;
}

describe("the matrix", () => {
  it("has every route", () => {
    expect(Object.keys(MATRIX).sort()).toEqual(Object.keys(ROUTES).sort());
    for (const rows of Object.values(MATRIX)) expect(rows).not.toEqual([]);
  });

  it.each(Object.keys(CALLERS) as AnyCaller[])("is true of %s", async (caller) => {
    expect(await mistakesFor(caller)).toEqual([]);
  });
});

describe("control: the matrix finds a service", () => {
  it.each(["operator", "nobody"] as const)("that takes %s for the owner", async (caller) => {
    expect(await mistakesFor(caller, { wrap: forging })).toHaveLength(differing(caller, "owner"));
  });

  it("that puts all tenants into one namespace", async () => {
    expect(await mistakesFor("tenant", { tenant: undefined })).toHaveLength(differing("tenant", "operator"));
  });

  it.each(["peer", "limited"] as const)("that IAM lets %s call", async (caller) => {
    expect(await mistakesFor(caller, { hasGateway: false })).toHaveLength(differing(caller, "operator"));
  });

  it("that IAM lets a tenant's own administrator name another tenant", async () => {
    expect(await mistakesFor("trespasser", { hasGateway: false })).toHaveLength(differing("trespasser", "of all tenants"));
  });

  it("that takes operators of all tenants for a tenant's own", async () => {
    const unnamed =
      (handler: Handler): Handler =>
      (event) =>
        handler({ ...event, ...matchRoute(event.requestContext.http.method, `/v1/${event.pathParameters!["path"]!}`) });
    expect(await mistakesFor("of all tenants", { wrap: unnamed })).not.toEqual([]);
  });
});
