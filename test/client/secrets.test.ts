/**
 * Secrets of a client: its token, signature, headers, scope, handles and lease ids are in none of its errors and events, even if a gateway
 * quotes the request or a user's signer quotes the URL.
 */
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HttpClientOptions, type LockClient, createLockClient } from "../../lib/index.js";
import { refuse } from "../../lib/core/errors.js";
import { toProblem } from "../../lib/contract/problem.js";
import { LEASE_ID } from "../support/lease-ids.js";
import { thrownBy } from "../support/run-gate.js";
import { type Received, type StubServer, startStubServer } from "./transport/stub-server.js";

/** In every secret but the ids. */
const MARK = "unmistakable";
const HANDLE = `hf1/ORDER_1/01a2ce8b-d400-7145-b733-952723412670/30000`;

let stub: StubServer;
beforeAll(async () => void (stub = await startStubServer()));
afterAll(() => stub.close());

const CLIENTS: readonly (readonly [what: string, options: HttpClientOptions])[] = [
  ["a token", { token: `${MARK}-token.part.part` }],
  ["a token that is fetched", { token: async () => `${MARK}-token.part.part` }],
  ["headers", { headers: { "x-api-key": `${MARK}-api-key` } }],
  [
    "a signature",
    { sign: async () => ({ authorization: `AWS4-HMAC-SHA256 Signature=${MARK}`, "x-amz-security-token": `${MARK}-session-token` }) },
  ],
];

const ASKS: readonly (readonly [what: string, ask: (locks: LockClient) => Promise<unknown>])[] = [
  ["an acquire", (locks) => locks.acquire("ORDER_1")],
  ["a try", (locks) => locks.tryAcquire("ORDER_1")],
  ["an acquire in a scope", (locks) => locks.scope(`${MARK}-scope`).tryAcquire("ORDER_1")],
  ["a set", (locks) => locks.tryAcquireAll(["ORDER_1", "ORDER_2"])],
  ["a run", (locks) => locks.runOnce("RUN_1", () => "done")],
  ["an attach", (locks) => locks.attach(HANDLE)],
  ["an inspection", (locks) => locks.inspect("ORDER_1")],
  ["a list", (locks) => locks.list()],
  ["a break", (locks) => locks.forceRelease("ORDER_1", { reason: "stuck", fencingToken: 1 })],
  ["a reset", (locks) => locks.runs.reset("RUN_1", { reason: "stuck" })],
];

/** The request as a talkative gateway quotes it, in one line. */
const quoted = ({ method, url, headers }: Received): string => {
  const credentials = Object.entries(headers).filter(([name]) => /^(?:authorization|x-.*)$/.test(name));
  return `Invalid ${credentials.map(([name, value]) => `${name}: '${String(value)}'`).join(", ")} in ${method} ${url}`;
};

/** Everything that a program might log of the error and the events. */
function saidBy(error: unknown, events: readonly unknown[]): string {
  expect(error).toBeInstanceOf(Error);
  const { message, stack } = error as Error;
  return [message, stack, JSON.stringify(error), inspect(error, { depth: 20, showHidden: true }), inspect(events, { depth: 20 })].join(
    "\n",
  );
}

function expectNoSecret(said: string): void {
  expect(said).not.toContain(MARK);
  expect(said.match(LEASE_ID) ?? []).toEqual([]);
}

describe.each(CLIENTS)("a client with %s", (_what, options) => {
  it.each(ASKS)("has no secret in the error of %s that a gateway refuses, quoting the request", async (_ask, ask) => {
    for (const status of [401, 403, 404, 413]) {
      const events: unknown[] = [];
      stub.answer((request) => ({ status, body: { message: quoted(request) } }));
      const error = await thrownBy(ask(createLockClient({ url: stub.url, onEvent: (event) => events.push(event), ...options })));
      expectNoSecret(saidBy(error, events));
      // The rest of what the gateway said is there.
      expect((error as Error).message).toContain("Invalid ");
    }
    // Control: the requests had the secrets.
    expect(stub.received.map(({ headers }) => JSON.stringify(headers)).join()).toContain(MARK);
  });
});

describe("a client", () => {
  it.each(ASKS)("has no leaseId in the error of %s whose signer quotes the path", async (_ask, ask) => {
    const sign = ({ method, url }: { readonly method: string; readonly url: string }) =>
      Promise.reject(Object.assign(new Error(`can't sign ${method} ${new URL(url).pathname}`), { code: "not-configured" }));
    const error = await thrownBy(ask(createLockClient({ url: stub.url, sign })));
    expectNoSecret(saidBy(error, []));
    expect((error as Error).message).toContain("can't sign ");
  });

  it("hears all of a refusal of the service, also a word that is a header's value", async () => {
    const body = toProblem(refuse("limit-mismatch", { detail: "The key has another limit" }), undefined);
    stub.answer({ status: 409, headers: { "content-type": "application/problem+json" }, body });
    const headers = { "x-first": "limit-mismatch", "x-second": "another limit" };
    const error = await thrownBy(createLockClient({ url: stub.url, headers }).tryAcquire("ORDER_1"));
    expect(error).toMatchObject({ code: "limit-mismatch", message: expect.stringContaining("The key has another limit") });
  });

  it.each<[what: string, make: () => unknown]>([
    ["a URL of another protocol", () => createLockClient({ url: `ftp://user:${MARK}@locks.example.com` })],
    ["a URL with a password", () => createLockClient({ url: `https://user:${MARK}@locks.example.com` })],
    ["a URL that is none", () => createLockClient({ url: `https:://user:${MARK}@locks` })],
    ["a scope that is too short", () => createLockClient({ url: stub.url }).scope(MARK)],
    ["a token of the wrong type", () => createLockClient({ url: stub.url, token: { value: MARK } as unknown as string })],
    ["a handle that is none", () => createLockClient({ url: stub.url }).attach(`${HANDLE}/${MARK}`)],
  ])("has no secret in the refusal of %s", async (_what, make) => {
    expectNoSecret(saidBy(await thrownBy((async () => make())()), []));
  });
});
