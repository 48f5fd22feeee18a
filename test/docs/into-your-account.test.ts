/**
 * "Into your AWS account": its tables match the construct. into-your-account.slow.test.ts runs its programs. To accept
 * a change, read the difference and run:
 *
 *     npx vitest run test/docs/into-your-account -u
 */
import ts from "typescript";
import { describe, expect, it } from "vitest";
import type { Tenancy } from "../../lambda/tenancy.js";
import { callerOf } from "../../lambda/caller.js";
import { httpEvent } from "../support/http-event.js";
import { sourcesIn, parse } from "../tidy/tree.js";
import { table } from "./generated.js";
import { expectMade } from "./made-page.js";

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
    text.replaceAll(/\(docs\/costs\.md has what was measured\)/g, "([measured](costs.md#how-much-memory))"),
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
  it("are the construct's options, and the namespaces that callers have", () =>
    expectMade("docs/into-your-account.md", {
      props: optionsTable("infra/props.ts", "LockServiceProps"),
      jwt: optionsTable("infra/api.ts", "JwtOptions"),
      tenants: tenantsTable(),
    }));

  it("have every option, each with a default and a sentence", () => {
    const props = membersOf("infra/props.ts", "LockServiceProps");
    expect(props.length).toBeGreaterThan(8);
    for (const { name, optional, text, fallback } of props) {
      expect([name, optional]).toEqual([name, true]);
      expect([name, text.length > 15, fallback.length > 0]).toEqual([name, true, true]);
    }
  });
});
