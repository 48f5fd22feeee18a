/**
 * "Into your AWS account": its tables match the construct. into-your-account.slow.test.ts runs its programs. To accept
 * a change, read the difference and run:
 *
 *     npx vitest run test/docs/into-your-account -u
 */
import { join } from "node:path";
import { CfnOutput, Stack } from "aws-cdk-lib";
import { AccountRootPrincipal } from "aws-cdk-lib/aws-iam";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { ADMIN_SCOPE } from "../../infra/api.js";
import { LockService } from "../../infra/lock-service.js";
import { HoldfastStack } from "../../infra/stack.js";
import type { Tenancy } from "../../lambda/tenancy.js";
import { callerOf } from "../../lambda/caller.js";
import { dutyOf, ROUTE_KEYS } from "../../lambda/routes.js";
import { newApp } from "../infra/synthesize.js";
import { DEFAULTS, RETENTION_MIN_MS } from "../../lib/core/limits.js";
import { httpEvent } from "../support/http-event.js";
import { sourcesIn, parse, ROOT } from "../tidy/tree.js";
import { oneLine, readPage, table, withParts } from "./generated.js";

const PATH = "docs/into-your-account.md";
const PAGE = readPage(PATH);
const TEXT = oneLine(PAGE);

/** The members of an interface, with their doc comments. */
function membersOf(
  path: string,
  name: string,
): readonly { readonly name: string; readonly optional: boolean; readonly text: string; readonly fallback: string }[] {
  const [source] = sourcesIn(path);
  const found = parse(source!).statements.find(
    (one): one is ts.InterfaceDeclaration => ts.isInterfaceDeclaration(one) && one.name.text === name,
  );
  return found!.members.map((member) => {
    const [doc] = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc);
    const tag = doc?.tags?.find(({ tagName }) => tagName.text === "default");
    const said = (comment: string | ts.NodeArray<ts.JSDocComment> | undefined): string =>
      (ts.getTextOfJSDocComment(comment) ?? "").replaceAll(/\s+/g, " ");
    return {
      name: member.name!.getText(),
      optional: member.questionToken !== undefined,
      text: said(doc?.comment),
      fallback: said(tag?.comment),
    };
  });
}

function optionsTable(path: string, name: string): string {
  const rows = membersOf(path, name).map(({ name, optional, text, fallback }) => [
    `\`${name}\``,
    text.replaceAll(/\(docs\/operating\.md has what was measured\)/g, "([measured](costs.md#how-much-memory))"),
    optional ? fallback : "none: it must be said",
  ]);
  return table(["", "what for", "default"], rows);
}

const IAM = { iam: { accountId: "111122223333", userId: "AROAEXAMPLE0000000001:session" } };
const JWT = { jwt: { claims: { iss: "https://idp.example.com", sub: "alice", team: "red" } } };

/** The owner of keys, for a role and a subject, with each setting of `tenant`. */
function tenantsTable(): string {
  const namespace = (tenancy: Tenancy | undefined, authorizer: unknown): string =>
    callerOf(httpEvent("GET /v1/health", { authorizer, timeEpoch: 0 }), tenancy)?.namespace ?? "refused: 403";
  const rows = ([undefined, "account", "role", { claim: "team" }] as const).map((tenancy) => [
    tenancy === undefined ? "none" : typeof tenancy === "string" ? `\`${tenancy}\`` : `\`claim:${tenancy.claim}\``,
    ...[IAM, JWT].map((authorizer) => {
      const found = namespace(tenancy, authorizer);
      return found.startsWith("refused") ? "(needs `jwt`)" : `\`${found}\``;
    }),
  ]);
  return table(["`tenant`", "the namespace of a role of account 111122223333", "of a token's `iss`, `sub` and `team`"], rows);
}

describe("the tables", () => {
  it("are the construct's options, and the namespaces that callers have", async () => {
    const parts = {
      props: optionsTable("infra/props.ts", "LockServiceProps"),
      jwt: optionsTable("infra/api.ts", "JwtOptions"),
      tenants: tenantsTable(),
    };
    const how = "the construct changed: read the difference, then run npx vitest run test/docs/into-your-account -u";
    await expect(await withParts(PAGE, parts), how).toMatchFileSnapshot(join(ROOT, PATH));
  });

  it("have every option, each with a default and a sentence", () => {
    const props = membersOf("infra/props.ts", "LockServiceProps");
    expect(props.length).toBeGreaterThan(8);
    for (const { name, optional, text, fallback } of props) {
      expect([name, optional]).toEqual([name, true]);
      expect([name, text.length > 15, fallback.length > 0]).toEqual([name, true, true]);
    }
  });

  it("say no tenant without a token's claim", () => {
    expect(tenantsTable()).toContain("| `claim:team` | (needs `jwt`) | `https%3A%2F%2Fidp.example.com:red` |");
  });
});

describe("the grants", () => {
  const rows = PAGE.split("\n").filter((line) => line.startsWith("| `grant"));
  const rowOf = (start: string): readonly string[] =>
    rows
      .find((row) => row.startsWith(`| \`${start}`))!
      .split(" | ")
      .map((cell) => cell.trim());

  it.each<[row: string, grant: (service: LockService, client: Parameters<LockService["grantClient"]>[0]) => unknown]>([
    ["grantClient(fn)", (service, client) => service.grantClient(client)],
    ["grantClient(fn, { prefix })", (service, client) => service.grantClient(client, { prefix: "ORDER_" })],
    ["grantAdmin(fn)", (service, client) => service.grantAdmin(client)],
    ["grantDirect(fn)", (service, client) => service.grantDirect(client)],
  ])("%s sets what the page says", (row, grant) => {
    const set: string[] = [];
    const service = new LockService(new Stack(newApp(), "shop"), "Locks");
    grant(service, { grantPrincipal: new AccountRootPrincipal(), addEnvironment: (name) => set.push(name) });
    expect([...rowOf(row)[3]!.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(set);
  });

  it("by prefix leave out just the paths that the page names", () => {
    const withoutKey = ROUTE_KEYS.filter(
      (routeKey) => dutyOf(routeKey) !== "admin" && !routeKey.includes("{key}") && !/health|openapi/.test(routeKey),
    ).map((routeKey) => routeKey.split(" ")[1]!.replace(/\/\{.*/, ""));
    expect([...rowOf("grantClient(fn, { prefix })")[2]!.matchAll(/`(\/[^`]+)`/g)].map(([, path]) => path)).toEqual([
      ...new Set(withoutKey),
    ]);
  });
});

describe("what the page says of the code", () => {
  it("is so", () => {
    expect(TEXT).toContain(`the scope \`${ADMIN_SCOPE}\`, unless`);
    expect(TEXT).toContain("**Not yet run on AWS.**");
  });

  it("names outputs that the stack has, all but none", () => {
    const stack = new HoldfastStack(newApp(), "holdfast-prod");
    const outputs = stack.node.children.filter((child) => child instanceof CfnOutput).map(({ node }) => node.id);
    const [, named = ""] = /The outputs say where it is: (.*?)\n/.exec(PAGE) ?? [];
    const ids = [...named.matchAll(/`(\w+)`/g)].map(([, id]) => id!);
    expect(ids.length).toBeGreaterThan(3);
    expect(outputs).toEqual(expect.arrayContaining(ids));
    expect(outputs.filter((id) => !ids.includes(id) && !id.endsWith("FunctionArn"))).toEqual([]);
  });

  it("names every variable of the functions that no option sets, with its default", () => {
    const read = new Set(sourcesIn("lambda/compose.ts")[0]!.text.match(/HOLDFAST_\w+/g));
    const set = new Set(
      ["infra/lock-service.ts", "infra/functions.ts", "infra/function-url.ts"].flatMap(
        (path) => sourcesIn(path)[0]!.text.match(/HOLDFAST_\w+/g) ?? [],
      ),
    );
    const rows = [...PAGE.matchAll(/^\| `(HOLDFAST_\w+)` +\| .* \| ([\d,]+)/gm)].map(([, name, figure = ""]) => [
      name,
      Number(figure.replaceAll(",", "")),
    ]);
    expect(rows.map(([name]) => name).toSorted()).toEqual([...read].filter((name) => !set.has(name)).toSorted());
    expect(Object.fromEntries(rows)).toEqual({
      HOLDFAST_LOG_REFUSALS: 1,
      HOLDFAST_RETENTION_MS: DEFAULTS.retentionMs,
      HOLDFAST_CLOCK_ERROR_MS: DEFAULTS.clockErrorMs,
    });
    expect(RETENTION_MIN_MS).toBe(3_600_000);
  });

  it("names every reason for which a table is refused", () => {
    const reasons = sourcesIn("infra/table.ts")[0]!.text.match(
      /last writer wins|neither TTL nor transactions|string keys|TTL attribute|no index/g,
    );
    expect(new Set(reasons)).toEqual(
      new Set(["last writer wins", "neither TTL nor transactions", "string keys", "TTL attribute", "no index"]),
    );
    for (const word of [
      "last writer wins",
      "neither TTL nor transactions",
      "other keys than `p` and `k`",
      "no TTL attribute `x`",
      "an index",
    ])
      expect(TEXT).toContain(word);
  });
});
