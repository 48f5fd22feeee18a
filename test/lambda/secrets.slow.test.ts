/**
 * Secrets: whatever route is asked, by whomever, and whatever goes wrong, no secret of the request or of the function is printed, and none
 * is answered. Metrics are made from printed lines, so they have none either. The one exception: the answer that a lease is held names its
 * id, to the caller that named it.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compose } from "../../lambda/compose.js";
import type { HttpEvent, HttpResult } from "../../lambda/http.js";
import { type OperationName, type RouteKey, ROUTES } from "../../lib/contract/routes.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { freshTable } from "../support/engine.js";
import { type DynamoRequest, type Fault, type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import { type EventParts, httpEvent } from "../support/http-event.js";
import { ANY_LEASE_ID, leaseIdAt } from "../support/lease-ids.js";
import { FORMAT_VERSION } from "../../lib/store/dynamo/format.js";
import { storedId } from "../../lib/store/dynamo/stored-id.js";
import { replyOf } from "../support/reply.js";
import { type Owned, MATRIX, own } from "./authorization-matrix.js";

/** In every secret but the ids. */
const MARK = "unmistakable";
const HEADERS = {
  authorization: `AWS4-HMAC-SHA256 Credential=AKIA/20270101/us-east-1/execute-api/aws4_request, Signature=${MARK}-signature`,
  "x-amz-security-token": `${MARK}-session-token`,
  "x-api-key": `${MARK}-api-key`,
  cookie: `session=${MARK}-cookie`,
};
/** The role of the function itself. */
const CREDENTIALS = {
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: `${MARK}-secret-access-key`,
  AWS_SESSION_TOKEN: `${MARK}-function-session-token`,
};
const ofRole = (accountId: string, role: string) => ({
  iam: { accountId, userId: `${role}:${MARK}-session`, accessKey: `${MARK}-access-key`, callerId: `${role}:${MARK}-session` },
  jwt: null,
});
const OWNER = ofRole("111122223333", "AROAALICE");
const CALLERS: readonly unknown[] = [
  OWNER,
  ofRole("111122223333", "AROABOB"),
  ofRole("444455556666", "AROAALICE"),
  { jwt: { claims: { iss: "https://id.example.com", sub: "user|7", jti: `${MARK}-token-id` }, scopes: null } },
  null,
];

let proxy: FaultProxy;
beforeAll(async () => void (proxy = await startFaultProxy()));
afterAll(() => proxy.close());

/** A function with its environment, and everything that it printed and answered. */
interface Observed {
  readonly owned: Owned;
  readonly tableName: string;
  readonly printed: string[];
  readonly answers: { readonly event: HttpEvent; readonly result: HttpResult }[];
  ask(routeKey: string, parts: Partial<EventParts>): Promise<ReturnType<typeof replyOf>>;
}

/** Composes a function on a table of its own, in which the owner has leases. `wrap` is for controls. */
async function observed(
  wrap: (handler: Handler, printed: string[]) => Handler = (handler) => handler,
  more: object = {},
): Promise<Observed> {
  const { client, tableName } = await freshTable();
  client.destroy();
  const clock = new VirtualClock();
  const printed: string[] = [];
  const answers: Observed["answers"] = [];
  const env = { ...CREDENTIALS, AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint, HOLDFAST_TABLE: tableName };
  const print = (line: object): void => void printed.push(JSON.stringify(line));
  const handler = wrap(compose({ ...env, ...more, HOLDFAST_TENANT: "account" }, { clock, print }), printed);
  const ask: Observed["ask"] = async (routeKey, parts) => {
    const headers = { ...HEADERS, ...parts.headers };
    const event = httpEvent(routeKey, { timeEpoch: clock.wallMs(), authorizer: OWNER, ...parts, headers });
    const result = await handler(event);
    answers.push({ event, result });
    return replyOf(result);
  };
  return { owned: await own(ask, "ORDER_1", clock.wallMs()), tableName, printed, answers, ask };
}

type Handler = (event: HttpEvent) => Promise<HttpResult>;

/** Sends every request of the matrix, with its parts changed by `change`. Returns the statuses of the answers. */
async function askEverything(
  { ask, owned }: Observed,
  authorizer: unknown,
  change: (parts: Partial<EventParts>) => Partial<EventParts> = (parts) => parts,
): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>();
  for (const [name, routeKey] of Object.entries(ROUTES) as [OperationName, RouteKey][])
    for (const { request } of MATRIX[name]) statuses.add((await ask(routeKey, { authorizer, ...change(request(owned)) })).status);
  return statuses;
}

/** The secrets that were printed or answered. */
function leaksOf({ owned, printed, answers }: Observed): readonly string[] {
  const isSecret = (text: string): boolean => text.includes(MARK) || text.includes(owned.scope) || ANY_LEASE_ID.test(text);
  const leaks = printed.filter(isSecret).map((line) => `printed: ${line}`);
  for (const { event, result } of answers) {
    const { headers, text, body } = replyOf(result);
    const { leaseId, ...rest } = (typeof body === "object" ? body : {}) as { readonly leaseId?: string };
    const isOwn = leaseId !== undefined && result.statusCode < 300 && JSON.stringify([event.pathParameters, event.body]).includes(leaseId);
    const said = `${JSON.stringify(headers)} ${isOwn ? JSON.stringify(rest) : text}`;
    if (isSecret(said)) leaks.push(`answered to ${event.routeKey}: ${said}`);
  }
  return leaks;
}

/** A request as AWS quotes it in its message about a wrong signature, with the session token among the headers. */
const canonicalRequest = ({ headers, body }: DynamoRequest): string =>
  Object.entries({ ...headers, body: JSON.stringify(body) })
    .map(([name, value]) => `${name}:${String(value)}`)
    .join("\n");
/** A record in which every number but its format is text: a leaseId, as it is stored. */
const damaged = ({ leaseId }: Owned) => {
  const S = storedId(leaseId);
  return { fv: { N: String(FORMAT_VERSION) }, tn: { S: "shared" }, v: { S }, f: { S }, x: { S }, h: { M: {} } };
};

const FAILURES: readonly (readonly [what: string, fault: (of: Owned) => Fault])[] = [
  [
    "refuses the signature, and quotes the request",
    () => ({
      kind: "answer",
      status: 400,
      errorName: "InvalidSignatureException",
      says: (request) => ({
        message: `The signature does not match.\n\nThe Canonical String for this request should have been\n'${canonicalRequest(request)}'`,
      }),
    }),
  ],
  [
    "refuses the request, and quotes its ids",
    () => ({
      kind: "answer",
      status: 400,
      errorName: "ValidationException",
      says: ({ body }) => ({ message: `Invalid UpdateExpression: ${JSON.stringify(body)}` }),
    }),
  ],
  ["fails", () => ({ kind: "answer", says: (request) => ({ message: `Internal error\n${canonicalRequest(request)}` }) })],
  ["has damaged records", (owned) => ({ kind: "answer", status: 200, says: () => ({ Item: damaged(owned), Items: [damaged(owned)] }) })],
  [
    "has damaged records where a write's condition fails",
    (owned) => ({
      kind: "answer",
      status: 400,
      errorName: "ConditionalCheckFailedException",
      says: () => ({ message: "The conditional request failed", Item: damaged(owned) }),
    }),
  ],
];

describe("no secret is printed or answered", () => {
  it("when every route is asked by its owner, by others and by nobody", async () => {
    const statuses = new Set<number>();
    const lines = [];
    for (const authorizer of CALLERS) {
      const service = await observed();
      for (const status of await askEverything(service, authorizer)) statuses.add(status);
      expect(leaksOf(service)).toEqual([]);
      lines.push(...service.printed);
    }
    // The walk met grants, refusals of each kind, and lines about them.
    expect([...statuses]).toEqual(expect.arrayContaining([200, 201, 202, 204, 403, 404, 409, 410, 423]));
    for (const event of ["granted", "refused", "ended", "transferred", "breaking", "recorded", "reset"])
      expect(
        lines.some((line) => line.includes(`"event":"${event}"`)),
        event,
      ).toBe(true);
  });

  it.each<[what: string, body: string]>([
    ["is no JSON", `{"scope":"${MARK}`],
    ["has wrong fields", JSON.stringify({ leaseMs: MARK, scope: { [MARK]: MARK }, leaseId: MARK, keys: MARK, fencingToken: MARK })],
  ])("when the body %s", async (_what, body) => {
    const service = await observed();
    const statuses = await askEverything(service, OWNER, (parts) => ({ ...parts, ...("body" in parts && { body }) }));
    expect([...statuses]).toContain(400);
    expect(leaksOf(service)).toEqual([]);
  });

  it.each(FAILURES)("when the table %s", async (_what, faultFor) => {
    const service = await observed();
    const when = ({ body }: DynamoRequest): boolean => JSON.stringify(body).includes(service.tableName);
    const planned = proxy.plan(faultFor(service.owned), { when, times: Number.POSITIVE_INFINITY });
    const statuses = await askEverything(service, OWNER);
    expect(planned.struck).toBeGreaterThan(20);
    expect(Math.max(...statuses)).toBeGreaterThanOrEqual(500);
    expect(leaksOf(service)).toEqual([]);
    // The line still says why.
    expect(service.printed.some((line) => /Exception: |InternalServerError: |damaged attribute/.test(line))).toBe(true);
  });
});

describe("no target of a sleeper is printed or answered", () => {
  const states: readonly (readonly [what: string, fault: ((of: Owned) => Fault) | undefined])[] = [["serves", undefined], ...FAILURES];
  it.each(states)("when the table %s", async (_what, faultFor) => {
    const service = await observed(undefined, { HOLDFAST_WAKE: "1" });
    const isOfThese = (text: string): boolean => text.includes("/sleepers") && text.includes(service.tableName);
    const when = ({ body }: DynamoRequest): boolean => isOfThese(JSON.stringify(body));
    const planned = faultFor && proxy.plan(faultFor(service.owned), { when, times: Number.POSITIVE_INFINITY });
    const token = `${MARK}-task-token`;
    const callbackId = `${MARK}CallbackId`;
    const sleep = (parts: Partial<EventParts>) => {
      const headers = { prefer: "wait=60", ...parts.headers };
      return service.ask(ROUTES.acquire, { key: "ORDER_2", leaseId: leaseIdAt(Date.UTC(2027, 0, 1)), ...parts, headers });
    };
    const asked = [
      await sleep({ headers: { "holdfast-task-token": token } }),
      await sleep({ body: { wake: { callbackId } } }),
      await sleep({ body: { wake: { callbackId: `${MARK}~` } } }),
      await sleep({ headers: { "holdfast-task-token": `${MARK} ` } }),
      await service.ask(ROUTES.inspect, { key: "ORDER_2" }),
    ];
    expect(asked.map(({ status }) => status)).toEqual(expect.arrayContaining([400, 200, ...(faultFor ? [] : [202])]));
    if (planned) expect(planned.struck).toBeGreaterThan(0);
    expect(leaksOf(service)).toEqual([]);
  });
});

describe("control: the scan finds a function", () => {
  it.each<[what: string, part: (event: HttpEvent) => unknown]>([
    ["headers", ({ headers }) => headers],
    ["the caller's claims", ({ requestContext }) => requestContext.authorizer],
    ["paths", ({ pathParameters }) => pathParameters],
    ["bodies", ({ body }) => body],
  ])("that prints %s", async (_what, partOf) => {
    const service = await observed((handler, printed) => (event) => {
      printed.push(JSON.stringify(partOf(event) ?? ""));
      return handler(event);
    });
    expect(leaksOf(service)).not.toEqual([]);
  });

  it("that answers a stranger with the id of the lease", async () => {
    const service = await observed((handler) => async (event) => {
      const result = await handler(event);
      return result.statusCode === 403 ? { ...result, body: JSON.stringify({ leaseId: event.pathParameters?.["leaseId"] }) } : result;
    });
    await askEverything(service, CALLERS[1]);
    expect(leaksOf(service)).not.toEqual([]);
  });
});
