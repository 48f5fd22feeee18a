/** Grants: the calls that a policy allows and denies, evaluated on the policy that would be deployed. */
import type { Template } from "aws-cdk-lib/assertions";
import { TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { ArnPrincipal, ManagedPolicy, PermissionsBoundary, Role } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { type IVersion, Alias, Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { Annotations, Stack } from "aws-cdk-lib";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Client, LockService } from "../../infra/lock-service.js";
import { OPERATORS_ROUTE } from "../../lambda/operators.js";
import { dutyOf, ROUTE_KEYS } from "../../lambda/routes.js";
import { itemKey, payloadKey } from "../../lib/store/dynamo/item.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import {
  type Statement,
  all,
  arnLike,
  callOf,
  functionOf,
  grantedStatements,
  mayCall,
  only,
  pathsOf,
  routesOf,
  statementsOf,
} from "./resources.js";
import { newApp, synthesizeOwn, warningsOf } from "./synthesize.js";

const isAdmins = (routeKey: string): boolean => dutyOf(routeKey) === "admin";

/** A stack whose function `Shop` gets grants, and the function's environment. */
function grantTo(grant: (service: LockService, shop: LambdaFunction) => unknown, propsFor: (stack: Stack) => object = () => ({})) {
  const template = synthesizeOwn(propsFor, (service, stack) => {
    const code = Code.fromInline("exports.handler = async () => {}");
    grant(service, new LambdaFunction(stack, "Shop", { runtime: Runtime.NODEJS_24_X, handler: "index.handler", code }));
  });
  const statements = grantedStatements(template).filter(({ Action }) => !String(Action).startsWith("xray"));
  return { template, statements, environment: environmentOf(template) };
}

function environmentOf(template: Template): Record<string, unknown> {
  const shop = Object.entries(template.findResources("AWS::Lambda::Function")).find(([id]) => id.startsWith("Shop"))![1] as {
    Properties: { Environment?: { Variables: Record<string, unknown> } };
  };
  return shop.Properties.Environment?.Variables ?? {};
}

const everything = (): boolean => true;
const nothing = (): boolean => false;
const asClient = (routeKey: string): boolean => !isAdmins(routeKey);
const isOpen = (routeKey: string): boolean => /health|openapi/.test(routeKey);
/** Where its keys are in the body or the query, IAM does not look. */
const hasKeyInPath = (routeKey: string): boolean => asClient(routeKey) && (routeKey.includes("{key}") || isOpen(routeKey));

/** A grant, the service that it is of, and the routes that it opens: for the key ORDER_1231, for other keys, and of a tenant that the path names. */
interface Rights {
  readonly grant: Parameters<typeof grantTo>[0];
  readonly props?: object;
  readonly own: (routeKey: string) => boolean;
  readonly others: (routeKey: string) => boolean;
  readonly tenants: (routeKey: string) => boolean;
}

const RIGHTS: Readonly<Record<string, Rights>> = {
  "a client": { grant: (service, shop) => service.grantClient(shop), own: asClient, others: asClient, tenants: nothing },
  "a client that is on the table too": {
    grant: (service, shop) => (service.grantClient(shop), service.grantDirect(shop)),
    ...{ own: asClient, others: asClient, tenants: nothing },
  },
  "a client of the keys of a prefix": {
    grant: (service, shop) => service.grantClient(shop, { prefix: "ORDER_" }),
    ...{ own: hasKeyInPath, others: isOpen, tenants: nothing },
  },
  "an administrator": { grant: (service, shop) => service.grantAdmin(shop), own: everything, others: everything, tenants: nothing },
  "a tenant's administrator": {
    grant: (service, shop) => service.grantAdmin(shop),
    ...{ props: { tenant: "role" }, own: everything, others: everything, tenants: nothing },
  },
  "an operator of all tenants": {
    grant: (service, shop) => service.grantOperator(shop),
    ...{ props: { tenant: "role" }, own: nothing, others: nothing, tenants: everything },
  },
};

describe("the calls of the API", () => {
  it.each(Object.entries(RIGHTS))("that %s may make are its own alone", (_who, { grant, props = {}, own, others, tenants }) => {
    const { statements, environment } = grantTo(grant, () => props);
    const calls = statements.filter(({ Action }) => Action === "execute-api:Invoke");
    const openTo = (key: string, below = ""): readonly string[] =>
      ROUTE_KEYS.filter((routeKey) => mayCall(calls, routeKey.replace(" ", ` ${below}`), key));
    expect(openTo("ORDER_1231")).toEqual(ROUTE_KEYS.filter(own));
    for (const key of ["PAYMENT_1231", "ORDER", "XORDER_1231", "order_1231"]) expect(openTo(key), key).toEqual(ROUTE_KEYS.filter(others));
    expect(openTo("ORDER_1231", "/namespaces/acme")).toEqual(ROUTE_KEYS.filter(tenants));
    expect(calls.flatMap(pathsOf).filter((pattern) => !pattern.startsWith("/$default/"))).toEqual([]);
    const isOnTable = statements.some(({ Action }) => [Action].flat().some((action) => action.startsWith("dynamodb:")));
    expect(calls.length < statements.length).toBe(isOnTable);
    expect(Object.keys(environment).toSorted()).toEqual([...(isOnTable ? ["HOLDFAST_NAMESPACE", "HOLDFAST_TABLE"] : []), "HOLDFAST_URL"]);
  });

  it("may be granted to a role without an environment", () => {
    const template = synthesizeOwn(
      () => ({}),
      (service, stack) => service.grantClient(new Role(stack, "Task", { assumedBy: new ArnPrincipal("arn:aws:iam::111122223333:root") })),
    );
    expect(mayCall(grantedStatements(template), "PUT /v1/locks/{key}/leases/{leaseId}")).toBe(true);
  });
});

describe("a client that is an alias or a version of a function", () => {
  const versionOf = (shop: LambdaFunction) => shop.currentVersion as IVersion;
  const aliasOf = (shop: LambdaFunction) => new Alias(shop, "Live", { aliasName: "live", version: versionOf(shop) });
  const both = (service: LockService, client: Client) => (service.grantClient(client), service.grantDirect(client));

  it.each<[what: string, of: (shop: LambdaFunction) => Client]>([
    ["an alias", aliasOf],
    ["a version", versionOf],
  ])("as %s has the rights, and its function the variables", (_what, of) => {
    const { statements, environment } = grantTo((service, shop) => both(service, of(shop)));
    const calls = statements.filter(({ Action }) => Action === "execute-api:Invoke");
    expect(mayCall(calls, "PUT /v1/locks/{key}/leases/{leaseId}")).toBe(true);
    expect(Object.keys(environment).toSorted()).toEqual(["HOLDFAST_NAMESPACE", "HOLDFAST_TABLE", "HOLDFAST_URL"]);
  });

  it("has one URL with its function, which has one HOLDFAST_URL", () => {
    const twoDoors = (service: LockService, shop: LambdaFunction) => {
      service.grantClient(shop);
      service.grantClient(aliasOf(shop), { via: "function-url" });
    };
    expect(() => grantTo(twoDoors, () => ({ functionUrl: { reservedConcurrency: 5 } }))).toThrow(
      "this client has another URL of this service already",
    );
  });

  it("of another app is warned of, since its variables can't be set here", () => {
    const stack = new Stack(newApp(), "shop");
    const arn = "arn:aws:lambda:eu-west-1:111122223333:function:pay";
    both(new LockService(stack, "Locks"), LambdaFunction.fromFunctionAttributes(stack, "Pay", { functionArn: arn, sameEnvironment: true }));
    expect(warningsOf(stack).filter((warning) => warning.startsWith("grant"))).toEqual([
      "grant: the function is another app's, so set HOLDFAST_URL where it is made",
      "grant: the function is another app's, so set HOLDFAST_TABLE and HOLDFAST_NAMESPACE where it is made",
    ]);
  });
});

describe("an operator of all tenants", () => {
  it("has a route that is there for nobody else", () => {
    const tenants = () => ({ tenant: "role" as const });
    const granted = grantTo((service, shop) => (service.grantOperator(shop), service.grantOperator(shop)), tenants).template;
    const admins = grantTo((service, shop) => (service.grantAdmin(shop), service.grantDirect(shop, { namespace: "shop" })), tenants);
    expect(Object.keys(routesOf(granted)).filter((routeKey) => routeKey.includes("namespace"))).toEqual([OPERATORS_ROUTE]);
    expect(routesOf(granted)[OPERATORS_ROUTE]).toMatchObject({ AuthorizationType: "AWS_IAM" });
    expect(Object.keys(routesOf(admins.template))).not.toContain(OPERATORS_ROUTE);
  });

  it("is for a service with tenants, whose callers sign", () => {
    const asking = (props: object) => () =>
      grantTo(
        (service, shop) => service.grantOperator(shop),
        () => props,
      );
    expect(asking({})).toThrow("grantOperator: this service has no tenants");
    expect(asking({ tenant: "account", jwt: { issuer: "https://id.example.com/", audience: ["locks"] } })).toThrow("takes tokens");
  });
});

describe("a client of the keys of a prefix", () => {
  const { statements } = grantTo((service, shop) => service.grantClient(shop, { prefix: "ORDER_" }));

  it("may send a `:` as it is or encoded", () => {
    const colon = grantTo((service, shop) => service.grantClient(shop, { prefix: "shop:" })).statements;
    expect(mayCall(colon, "GET /v1/locks/{key}", "shop:1")).toBe(true);
    expect(mayCall(colon, "GET /v1/locks/{key}", "shop%3A1")).toBe(true);
  });

  it.each(["", "ORDER_*", "ORDER?", "a/b", "ä", "${aws:username}"])("is not made of the prefix %j", (prefix) => {
    expect(() => grantTo((service, shop) => service.grantClient(shop, { prefix }))).toThrow("prefix: ");
  });

  it("is not made of a misspelt option, which would let it use every key", () => {
    const misspelt: object = { prefx: "ORDER_" };
    const refused = "prefx: is not an option of grantClient; these are: prefix";
    expect(() => grantTo((service, shop) => service.grantClient(shop, misspelt))).toThrow(refused);
    expect(() => grantTo((service, shop) => service.grantDirect(shop, misspelt))).toThrow("prefx: is not an option of grantDirect");
  });

  it("is not made straight on the table, where IAM sees no lock's key", () => {
    const prefixed: object = { prefix: "ORDER_" };
    expect(() => grantTo((service, shop) => service.grantDirect(shop, prefixed))).toThrow("IAM sees the partition keys of a table");
    const partitions = ["ORDER_1", "PAYMENT_1"].map((key) => itemKey({ namespace: "default", kind: "locks", key })[TABLE.partitionKey]);
    for (const partition of partitions) expect(partition).toMatch(/^default\/locks\/\d+$/);
  });

  it("control: a policy with the wildcard at the key's place alone would let through another's key", () => {
    const [own] = statements.flatMap(pathsOf).filter((pattern) => pattern.endsWith("/renew"));
    expect(arnLike(own!.replace("ORDER_*", "*"), callOf("POST /v1/locks/{key}/leases/{leaseId}/renew", "PAYMENT_1"))).toBe(true);
  });
});

describe("a client straight on the table", () => {
  const tenants = () => ({ tenant: "role" as const });
  const { template, statements, environment } = grantTo((service, shop) => service.grantDirect(shop, { namespace: "shop" }), tenants);
  const [statement] = statements as [Statement];
  const { "ForAllValues:StringLike": like } = statement.Condition as Record<string, Record<string, unknown>>;

  it("touches only items of its namespace: locks, runs and payloads, in every shard", () => {
    const patterns = like!["dynamodb:LeadingKeys"] as string[];
    const isOwn = (partition: unknown): boolean => patterns.some((pattern) => arnLike(pattern, String(partition)));
    fc.assert(
      fc.property(
        fc.stringMatching(/^[A-Za-z0-9._:~-]{1,40}$/),
        fc.stringMatching(/^[A-Za-z0-9._:~%-]{1,40}$/),
        fc.constantFrom("locks" as const, "runs" as const),
        (key, other, kind) => {
          const own = { namespace: "shop", kind, key };
          expect(isOwn(itemKey(own)[TABLE.partitionKey])).toBe(true);
          expect(isOwn(payloadKey(own, "d")[TABLE.partitionKey])).toBe(true);
          expect(isOwn(itemKey({ namespace: other, kind, key })[TABLE.partitionKey])).toBe(other === "shop");
        },
      ),
    );
  });

  it("knows the table and the namespace: that of all callers, or where accounts are tenants, the account's", () => {
    expect(environment).toEqual({ HOLDFAST_TABLE: { Ref: only(template, "AWS::DynamoDB::Table")[0] }, HOLDFAST_NAMESPACE: "shop" });
    const shared = grantTo((service, shop) => service.grantDirect(shop));
    expect(shared.environment["HOLDFAST_NAMESPACE"]).toBe("default");
    const ofAccount = grantTo(
      (service, shop) => service.grantDirect(shop),
      () => ({ tenant: "account" }),
    );
    expect(ofAccount.environment["HOLDFAST_NAMESPACE"]).toEqual({ Ref: "AWS::AccountId" });
  });

  it.each<[props: object, namespace: string | undefined, refused: string]>([
    [{}, "shop", 'namespace: "shop" given; this service has no tenants'],
    [{ tenant: "account" }, "default", 'namespace: "default" given; with tenant it must be a tenant\'s own'],
    [{ tenant: "role" }, undefined, 'namespace: none given; with tenant "role" it must be a tenant\'s own'],
  ])("with %j is refused the namespace %s, which can't be right", (props, namespace, refused) => {
    expect(() =>
      grantTo(
        (service, shop) => service.grantDirect(shop, namespace === undefined ? {} : { namespace }),
        () => props,
      ),
    ).toThrow(refused);
  });

  it("may use the table's key, through DynamoDB alone", () => {
    const encrypted = grantTo(
      (service, shop) => service.grantDirect(shop, { namespace: "shop" }),
      (stack) => ({ ...tenants(), encryptionKey: new Key(stack, "Key") }),
    );
    expect(encrypted.statements.map(({ Action }) => [Action].flat()[0]?.split(":")[0]).sort()).toEqual(["dynamodb", "dynamodb", "kms"]);
  });

  it.each(["", "a/b", "shop*", "a b", "a?"])("is not given the namespace %j", (namespace) => {
    expect(() => grantTo((service, shop) => service.grantDirect(shop, { namespace }), tenants)).toThrow("namespace: must be");
  });
});

const STREAM = "arn:aws:dynamodb:us-east-1:111122223333:table/locks/stream/2026-11-29T00:00:00.000";

describe("a permissions boundary", () => {
  const template = synthesizeOwn(
    (stack) => {
      const arn = "arn:aws:lambda:us-east-1:111122223333:function:pay";
      const functions = [LambdaFunction.fromFunctionArn(stack, "Pay", arn)];
      const stateMachines = [StateMachine.fromStateMachineName(stack, "Machine", "pay")];
      PermissionsBoundary.of(stack).apply(ManagedPolicy.fromManagedPolicyName(stack, "Boundary", "team-boundary"));
      return {
        encryptionKey: new Key(stack, "Key"),
        tracing: true,
        functionUrl: { reservedConcurrency: 5 },
        wake: { functions, stateMachines },
        table: TableV2.fromTableAttributes(stack, "Mine", { tableName: "locks", tableStreamArn: STREAM }),
        regions: { replicas: ["us-east-2"], witness: "us-west-2" },
      };
    },
    (service, stack) => {
      const client = new Role(stack, "Client", { assumedBy: new ArnPrincipal("arn:aws:iam::111122223333:root") });
      service.grantAdmin(client);
      service.grantDirect(client);
      service.grantClient(new Role(stack, "ByUrl", { assumedBy: new ArnPrincipal("arn:aws:iam::111122223333:root") }), {
        via: "function-url",
      });
      Annotations.of(service).acknowledgeWarning("holdfast:grantClient:regions");
    },
    "us-east-1",
  );
  const roles = all(template, "AWS::IAM::Role");
  const actionsOf = (statements: readonly Statement[]) => [...new Set(statements.flatMap(({ Action }) => Action))].toSorted();
  const actionsOfRoles = (isOne: (id: string) => boolean) =>
    actionsOf(roles.filter(([id]) => isOne(id)).flatMap(([, role]) => statementsOf(role)));

  it("is on every role", () => {
    expect(roles.length).toBeGreaterThan(5);
    for (const [id, { Properties }] of roles) expect(Properties, id).toHaveProperty("PermissionsBoundary");
  });

  it("must allow what the page says, and nothing else", () => {
    const isAgent = (id: string): boolean => id.startsWith("LocksAgent");
    const isSweep = (id: string): boolean => id.startsWith("LocksTableSweep");
    const page = readFileSync("docs/into-your-account.md", "utf8");
    const rows = [
      ...page.matchAll(/^\| (the service's functions|the agent, with `wake`|the sweep, with `regions`|clients) +\| (.*?) +\|$/gm),
    ];
    const told = Object.fromEntries(rows.map(([, who, actions]) => [who, [...actions!.matchAll(/`(\S+?)`/g)].map(([, action]) => action)]));
    expect(told).toEqual({
      "the service's functions": actionsOfRoles((id) => !isAgent(id) && !isSweep(id)),
      "the sweep, with `regions`": actionsOfRoles(isSweep),
      "the agent, with `wake`": actionsOfRoles(isAgent),
      clients: actionsOf(grantedStatements(template)),
    });
  });
});

it("gives nothing to callers who bring tokens, for whom IAM has no say", () => {
  const jwt = { issuer: "https://id.example.com/", audience: ["locks"] };
  expect(() =>
    grantTo(
      (service, shop) => service.grantClient(shop),
      () => ({ jwt }),
    ),
  ).toThrow("grant: this service takes tokens");
  expect(
    functionOf(
      synthesizeOwn(() => ({ jwt })),
      "acquire",
    ),
  ).toHaveLength(2);
});
