/** Mistakes in what keeps a caller of a function URL to its keys, each as an edit of a source, with the test that must find it. */
import type { Edit } from "../support/edited-sources.js";

/** A mistake, and the test that fails with it. */
export interface Mistake {
  readonly name: string;
  readonly edit: Edit;
  /** The file of the test, and the beginning of its name. */
  readonly found: readonly [file: string, test: string];
}

const RULE = "lambda/function-url.ts";
const HANDLER = "lambda/handler.ts";
const CONSTRUCT = "infra/function-url.ts";
const BY_RULE = "test/lambda/function-url.test.ts";
const BY_TEMPLATE = "test/infra/function-url.test.ts";

const row = (name: string, file: string, find: string, replace: string, by: string, test: string): Mistake => ({
  name,
  edit: [find, replace, file],
  found: [by, test],
});

/** The mistakes of the threat model: of the rule, of the mount, and of the grants. */
export const MISTAKES: readonly Mistake[] = [
  row(
    "an unknown alias is for all keys",
    RULE,
    "if (!alias?.startsWith(OF_PREFIX)) return undefined;",
    "if (!alias?.startsWith(OF_PREFIX)) return {};",
    BY_RULE,
    "that the construct doesn't spell serves nothing",
  ),
  row(
    "another spelling of an alias is taken",
    RULE,
    'prefix !== "" && aliasOf({ prefix }) === alias ?',
    'prefix !== "" ?',
    BY_RULE,
    "that the construct doesn't spell serves nothing",
  ),
  row(
    "two prefixes have one alias",
    RULE,
    "replaceAll(/[^A-Za-z0-9-]/g, (char)",
    "replaceAll(/[^A-Za-z0-9_-]/g, (char)",
    BY_RULE,
    "is one that Lambda takes, says the prefix",
  ),
  row(
    "the event's parameters are believed",
    RULE,
    "match && { ...rest, ...match }",
    "match && { ...rest, ...match, ...(event.pathParameters && { pathParameters: event.pathParameters }) }",
    BY_RULE,
    "reads neither the event's route nor its parameters",
  ),
  row(
    "a key needs the prefix anywhere",
    RULE,
    "key?.startsWith(prefix) === true",
    "key?.includes(prefix) === true",
    BY_RULE,
    "grants no other key, however it is spelt",
  ),
  row(
    "a key may have the prefix in another case",
    RULE,
    "key?.startsWith(prefix) === true",
    "key?.toUpperCase().startsWith(prefix) === true",
    BY_RULE,
    "grants no other key, however it is spelt",
  ),
  row(
    "a prefix covers operations without a key",
    RULE,
    "key?.startsWith(prefix) === true",
    "key?.startsWith(prefix) !== false",
    BY_RULE,
    "acquireSet: a client's with its key in the path",
  ),
  row(
    "operators are served",
    RULE,
    'if (DUTIES[operation] === "admin")',
    'if (DUTIES[operation] === "admin" && !key)',
    BY_RULE,
    "break: a client's with its key in the path",
  ),
  row(
    "an environment keeps its first alias",
    HANDLER,
    "return async (received, invocation = {}) => {",
    "let first: Invocation | undefined;\n  return async (received, latest: Invocation = {}) => {\n    const invocation = (first ??= latest);",
    BY_RULE,
    "grants no other key, however it is spelt",
  ),
  row(
    "the event says the mount",
    HANDLER,
    'const grant = mount === "api" ? undefined : grantOf(invocation);',
    'const grant = received.routeKey === "$default" ? grantOf(invocation) : {};',
    BY_RULE,
    "behind the API doesn't serve a function URL's event",
  ),
  row(
    "the mount is forgotten in the construct",
    CONSTRUCT,
    'HOLDFAST_MOUNT: "function-url",',
    "",
    BY_TEMPLATE,
    "are served by one function more",
  ),
  row(
    "clients may invoke by any way",
    CONSTRUCT,
    'right("lambda:InvokeFunction", { Bool: { "lambda:InvokedViaFunctionUrl": "true" } })',
    'right("lambda:InvokeFunction", {})',
    BY_TEMPLATE,
    "let nobody invoke a function with an event of its own",
  ),
  row(
    "a grant is for all aliases",
    CONSTRUCT,
    "resourceArns: [alias.functionArn]",
    "resourceArns: [`${this.#function.functionArn}:*`]",
    BY_TEMPLATE,
    "let OfOrders call the URL of prefix-ORDER_5f",
  ),
];
