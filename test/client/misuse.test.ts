/** Calls in another library's form, or with missing arguments: one clear error that names the mistake, and nothing is sent. */
import { describe, expect, it } from "vitest";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient as createHttpClient, fencedWrite, InvalidRequestError, key } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { thrownBy } from "../support/run-gate.js";

/** As JavaScript calls it, where no compiler looks. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
type Untyped = any;
const work = (): void => undefined;

const thrown = (task: () => unknown): Promise<unknown> => thrownBy((async () => task())());

/** Expects an error that names the field, then the rule. */
function expectRefused(error: unknown, field: string, rule = ""): void {
  expect(error).toBeInstanceOf(InvalidRequestError);
  expect(error).toMatchObject({ field, message: expect.stringMatching(new RegExp(`^${field}: .*${rule}`)) });
}

describe("a call in the wrong form", () => {
  it.each<[said: string, field: string, call: (locks: Untyped) => unknown]>([
    ["a number for options, as in redlock", "options", (locks) => locks.acquire("a", 5000)],
    ["a number between key and function", "options", (locks) => locks.withLock("a", 5000, work)],
    ["null for options", "options", (locks) => locks.withLock("a", null, work)],
    ["a function to acquire", "options", (locks) => locks.acquire("a", work)],
    ["a list to tryAcquire", "options", (locks) => locks.tryAcquire("a", ["b"])],
    ["a number for a run's options", "options", (locks) => locks.runOnce("a", 5, work)],
    ["a number for a set's options", "options", (locks) => locks.acquireAll(["a"], 5)],
    ["a semaphore without a limit", "limit", (locks) => locks.semaphore("a")],
    ["a semaphore with a bare limit", "limit", (locks) => locks.semaphore("a", 5)],
    ["segments without their number", "segments", (locks) => locks.segments("a")],
    ["a scope of 15 characters, of which one takes two units of UTF-16", "scope", (locks) => locks.scope(`${"x".repeat(14)}𝒳`)],
    ["an invocation without a context", "context", (locks) => locks.forInvocation(undefined)],
    ["an invocation with something else", "context", (locks) => locks.forInvocation({})],
    ["a break without options", "options", (locks) => locks.forceRelease("a")],
    ["a cursor that is a number", "cursor", (locks) => locks.runs.list({ cursor: 5 })],
  ])("%s is refused by the name of %s", async (_said, field, call) => {
    const locks = createLockClient();
    expectRefused(await thrown(() => call(locks)), field);
    expect((await locks.list()).items).toEqual([]);
  });

  it("control: the same calls in the right form are not", async () => {
    const locks: LockClient = createLockClient();
    await (await locks.acquire("a", {})).release();
    await locks.withLock("a", work);
    await (await locks.semaphore("b", { limit: 5 }).acquire()).release();
    await locks.forInvocation({ getRemainingTimeInMillis: () => 5000 }).close();
    await locks.list({ max: 100, prefix: "a" });
    expect(locks.scope(`${"x".repeat(15)}𝒳`)).toBeDefined();
  });
});

describe("a client that is made in the wrong form", () => {
  const url = "http://127.0.0.1:8787";
  const http = (options: unknown) => () => createHttpClient(options as never);
  const table = (options: unknown) => () => createTableClient(options as never);
  const onTable = (options: object) => table({ tableName: "locks", ...options });
  it.each<[said: string, field: string, make: () => unknown, rule?: string]>([
    ["a bare URL", "options", http(url)],
    ["null", "options", http(null)],
    ["no URL", "url", http({}), "give createLockClient the option or set HOLDFAST_URL"],
    ["an empty URL", "url", http({ url: "" }), "give createLockClient the option or set HOLDFAST_URL"],
    ["a URL object", "url", http({ url: new URL(url) })],
    ["a text that is no URL", "url", http({ url: "not a url" })],
    ["a URL without its scheme", "url", http({ url: "localhost:8787" })],
    ["a URL of another scheme", "url", http({ url: "ftp://localhost" })],
    ["an option that there isn't", "uri", http({ url, uri: 1 }), "is not an option of createLockClient"],
    ["an owner that is a number", "owner", http({ url, owner: 5 })],
    ["a prefix that no key may begin with", "prefix", http({ url, prefix: "a b" })],
    ["a prefix that leaves no room for a key", "prefix", http({ url, prefix: "p".repeat(101) })],
    ["a prefix that is a number", "prefix", http({ url, prefix: 5 })],
    ["a listener that is none", "onEvent", http({ url, onEvent: "x" })],
    ["a signer that is none", "sign", http({ url, sign: {} })],
    ["a token that is a number", "token", http({ url, token: 5 })],
    ["a switch that is a word", "closeOnSigterm", http({ url, closeOnSigterm: "yes" })],
    ["no table", "tableName", table({}), "give createLockClient the option or set HOLDFAST_TABLE"],
    ["a name that no table has", "tableName", table({ tableName: "my table" })],
    ["a name that is a number", "tableName", table({ tableName: 5 })],
    ["an option that there isn't on a table", "table", onTable({ table: 1 }), "is not an option of createLockClient"],
    ["a namespace that is none", "namespace", onTable({ namespace: "a/b" })],
    ["a clock error that is text", "clockErrorMs", onTable({ clockErrorMs: "500" })],
    ["a clock error beyond the guard", "clockErrorMs", onTable({ clockErrorMs: 10_000 })],
    ["a retention below an hour", "retentionMs", onTable({ retentionMs: 3_599_999 })],
    ["a log that is none", "log", onTable({ log: "stdout" })],
    ["a URL in memory", "url", () => createLockClient({ url } as never), "is not an option of createLockClient"],
  ])("%s is refused by the name of %s", async (_said, field, make, rule = "") => {
    expectRefused(await thrown(make), field, rule);
  });

  it("control: a table by its ARN, with the bounds of the others", () => {
    const tableName = "arn:aws:dynamodb:eu-central-1:111122223333:table/locks";
    expect(() => createTableClient({ tableName, clockErrorMs: 9999, retentionMs: 3_600_000, log: () => undefined })).not.toThrow();
  });
});

describe("a helper in the wrong form", () => {
  it.each<[said: string, field: string, call: () => unknown]>([
    ["a key of a missing id", "key", () => key("ORDER", undefined as Untyped)],
    ["a key of nothing", "key", () => key()],
    ["a fenced write without a token", "fencingToken", () => fencedWrite(undefined as Untyped)],
  ])("%s is refused by the name of %s", async (_said, field, call) => {
    expect(await thrown(call)).toMatchObject({ name: "InvalidRequestError", field });
  });
});
