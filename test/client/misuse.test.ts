/** Calls in another library's form, or with missing arguments: one clear error that names the mistake, and nothing is sent. */
import { describe, expect, it } from "vitest";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import type { LockClient } from "../../lib/index.js";
import { createLockClient as createHttpClient, fencedWrite, InvalidRequestError, key } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";

/** As JavaScript calls it, where no compiler looks. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
type Untyped = any;
const work = (): void => undefined;

async function thrownBy(task: () => unknown): Promise<unknown> {
  try {
    await task();
  } catch (error) {
    return error;
  }
  return undefined;
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
    ["an invocation without a context", "context", (locks) => locks.forInvocation(undefined)],
    ["an invocation with something else", "context", (locks) => locks.forInvocation({})],
    ["a break without options", "options", (locks) => locks.forceRelease("a")],
    ["a cursor that is a number", "cursor", (locks) => locks.runs.list({ cursor: 5 })],
  ])("%s is refused by the name of %s", async (_said, field, call) => {
    const locks = createLockClient();
    const error = await thrownBy(() => call(locks));
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(new RegExp(`^${field}: `)) });
    expect((await locks.list()).items).toEqual([]);
  });

  it("control: the same calls in the right form are not", async () => {
    const locks: LockClient = createLockClient();
    await (await locks.acquire("a", {})).release();
    await locks.withLock("a", work);
    await (await locks.semaphore("b", { limit: 5 }).acquire()).release();
    await locks.forInvocation({ getRemainingTimeInMillis: () => 5000 }).close();
    await locks.list({ max: 100, prefix: "a" });
  });
});

describe("a client that is made in the wrong form", () => {
  const url = "http://127.0.0.1:8787";
  it.each<[said: string, field: string, options: Untyped]>([
    ["a bare URL", "options", url],
    ["null", "options", null],
    ["a URL object", "url", { url: new URL(url) }],
    ["a URL without its scheme", "url", { url: "localhost:8787" }],
    ["a URL of another scheme", "url", { url: "ftp://localhost" }],
    ["an owner that is a number", "owner", { url, owner: 5 }],
    ["a prefix that no key may begin with", "prefix", { url, prefix: "a b" }],
    ["a prefix that is a number", "prefix", { url, prefix: 5 }],
    ["a listener that is none", "onEvent", { url, onEvent: "x" }],
    ["a signer that is none", "sign", { url, sign: {} }],
    ["a token that is a number", "token", { url, token: 5 }],
    ["a switch that is a word", "closeOnSigterm", { url, closeOnSigterm: "yes" }],
  ])("%s is refused by the name of %s", async (_said, field, options) => {
    const error = await thrownBy(() => createHttpClient(options as never));
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(new RegExp(`^${field}: `)) });
  });
});

describe("straight on the table", () => {
  it.each<[said: string, field: string, options: Untyped]>([
    ["a name that no table has", "tableName", { tableName: "my table" }],
    ["a name that is a number", "tableName", { tableName: 5 }],
    ["a clock error that is text", "clockErrorMs", { tableName: "t", clockErrorMs: "500" }],
    ["a clock error beyond the guard", "clockErrorMs", { tableName: "t", clockErrorMs: 10_000 }],
    ["a retention below an hour", "retentionMs", { tableName: "t", retentionMs: 3_599_999 }],
    ["a log that is none", "log", { tableName: "t", log: "stdout" }],
  ])("%s is refused by the name of %s", async (_said, field, options) => {
    const error = await thrownBy(() => createTableClient(options as never));
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(new RegExp(`^${field}: `)) });
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
    expect(await thrownBy(call)).toMatchObject({ name: "InvalidRequestError", field });
  });
});
