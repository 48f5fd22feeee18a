/** Invalid options are rejected before anything is sent. The error names the option and the rule. */
import { describe, expect, it } from "vitest";
import { type LockClient, createLockClient, InvalidRequestError } from "../../lib/testing.js";
import { type Schema, decode } from "../../lib/contract/decode.js";
import { ListQuery, REQUESTS, RunListQuery } from "../../lib/contract/requests.js";
import { createHarness } from "./harness.js";

const KEY = "ORDER_1231";
/** Options from a program without types. */
type Loose = Record<string, unknown>;
interface LooseClient {
  acquire(key: unknown, options?: Loose): Promise<unknown>;
  tryAcquire(key: unknown, options?: Loose): Promise<unknown>;
  withLock(key: unknown, options: unknown, work?: unknown): Promise<unknown>;
  attach(handle: unknown, options?: Loose): Promise<unknown>;
  inspect(key: unknown): Promise<unknown>;
  list(options?: Loose): Promise<unknown>;
  forceRelease(key: unknown, options: Loose): Promise<unknown>;
  acquireAll(keys: unknown): Promise<unknown>;
  scope(id: unknown): unknown;
  readonly runs: { list(options: Loose): Promise<unknown>; reset(key: unknown, options: Loose): Promise<unknown> };
}
const loosely = (locks: LockClient): LooseClient => locks;

const IN_ITSELF: Loose = {};
IN_ITSELF["self"] = IN_ITSELF;
const BAD_LEASES: readonly (readonly [option: string, value: unknown])[] = [
  ["leaseMs", 999],
  ["leaseMs", 86_400_001],
  ["leaseMs", 1000.5],
  ["leaseMs", "5000"],
  ["leaseMs", Number.NaN],
  ["leaseMs", Number.POSITIVE_INFINITY],
  ["owner", 7],
  ["owner", "x".repeat(257)],
  ["meta", []],
  ["meta", "text"],
  ["meta", { text: "ü".repeat(600) }],
  ["meta", { amount: 1n }],
  ["meta", IN_ITSELF],
  ["meta", new Date(0)],
  ["meta", { toJSON: () => "text" }],
  ["owner", "half \ud83c"],
  ["heartbeat", "no"],
  ["heartbeat", 0],
  ["maxHoldMs", 0],
  ["maxHoldMs", -1],
  ["maxHoldMs", "1h"],
  ["progressMs", 999],
  ["progressMs", "5m"],
  ["progressMs", 29_999],
  ["signal", {}],
  ["signal", "abort"],
  ["leaseMS", 5000],
  ["ttl", 30],
];

describe("an acquire", () => {
  it.each(BAD_LEASES)("refuses %s: %o", async (option, value) => {
    const { locks, wire } = createHarness();
    for (const asking of [loosely(locks).acquire(KEY, { [option]: value }), loosely(locks).tryAcquire(KEY, { [option]: value })]) {
      const error: unknown = await asking.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(InvalidRequestError);
      expect(error).toMatchObject({ field: option, code: "invalid-request", definite: true, retry: "never" });
      expect((error as Error).message).toMatch(new RegExp(`^${option}: `));
    }
    await expect(loosely(locks).withLock(KEY, { [option]: value }, () => 1)).rejects.toMatchObject({ field: option });
    expect(wire.sent).toEqual([]);
  });

  it.each<[options: Loose, message: string]>([
    [{ leaseMs: 30 }, "leaseMs: 30 given; it is a whole number of ms from 1000 to 86400000"],
    [{ leaseMs: "5000" }, 'leaseMs: "5000" given; it is a whole number of ms from 1000 to 86400000'],
    [{ waitMs: -1 }, "waitMs: -1 given; it is a whole number of ms of at least 0"],
    [{ maxHoldMs: {} }, "maxHoldMs: an object given; it is a whole number of ms of at least 1"],
    [{ progressMs: 0 }, "progressMs: 0 given; it is a whole number of ms of at least 1000"],
    [{ progressMs: 8999, leaseMs: 9000 }, "progressMs: 8999 given; it must be at least the lease of 9000 ms, which needs heartbeats"],
    [{ progressMs: 29_999 }, "progressMs: 29999 given; it must be at least the lease of 30000 ms, which needs heartbeats"],
    [
      { progressMs: 30_000, heartbeat: false },
      "progressMs: 30000 given; it must be at least the lease of 30000 ms, which needs heartbeats",
    ],
    [{ priority: 10 }, "priority: 10 given; it must be a whole number from 0 to 9"],
    [{ limit: 2, permits: 3 }, "permits: 3 given; it must be at most the limit of 2"],
    [{ mode: "read" }, 'mode: "read" given; it must be "exclusive" or "shared"'],
    [{ mode: "x".repeat(1000) }, `mode: "${"x".repeat(80)}…" given; it must be "exclusive" or "shared"`],
    [{ heartbeat: [] }, "heartbeat: a list given; it must be true or false"],
    [{ signal: () => 1 }, "signal: a function given; it must be an AbortSignal"],
    [{ meta: { job: { done: () => 1 } } }, 'meta: must be an object of at most 1024 bytes as JSON: "done" is a function'],
    [{ meta: { kind: Symbol("job") } }, 'meta: must be an object of at most 1024 bytes as JSON: "kind" is a symbol'],
    [{ meta: { amount: 1n } }, "meta: must be an object of at most 1024 bytes as JSON: Do not know how to serialize a BigInt"],
  ])("repeats what was given, and says the rule: %o", async (options, message) => {
    const { locks } = createHarness();
    const error = (await loosely(locks)
      .acquire(KEY, options)
      .catch((reason: unknown) => reason)) as Error;
    expect(error.message).toBe(message);
  });

  it.each<[given: unknown, says: string]>([
    ["orders/12", '"orders/12" given; a key is 1 to 200 characters of A-Z a-z 0-9 . _ : ~ - and not . or ..; key("orders", 12) makes one'],
    ["Köln / 012", 'key("Köln", "012") makes one'],
    ["a b", 'key("a", "b") makes one'],
    ["x".repeat(201), "key(...parts) makes one"],
    ["", '"" given; a key is 1 to 200'],
    [undefined, "undefined given; a key is 1 to 200"],
  ])("of what is no key repeats it, and shows the call that makes one: %j", async (given, says) => {
    const { locks } = createHarness();
    const error = (await loosely(locks)
      .acquire(given)
      .catch((reason: unknown) => reason)) as Error;
    expect(error.message).toMatch(/^key: /);
    expect(error.message).toContain(says);
  });

  it("that asks once doesn't take waitMs: it would be ignored", async () => {
    const { locks } = createHarness();
    await expect(loosely(locks).tryAcquire(KEY, { waitMs: 1000 })).rejects.toThrow(
      "waitMs: is not an option of tryAcquire; these are: leaseMs, owner",
    );
  });

  it.each(["", ".", "..", "a b", "a/b", "ä", "x".repeat(201), undefined, null, 7, {}])("refuses the key %j", async (key) => {
    const { locks, wire } = createHarness();
    for (const asking of [loosely(locks).acquire(key), loosely(locks).tryAcquire(key), loosely(locks).inspect(key)]) {
      await expect(asking).rejects.toMatchObject({ name: "InvalidRequestError", field: "key" });
    }
    expect(wire.sent).toEqual([]);
  });

  it.each([
    { leaseMs: 1000 },
    { leaseMs: 86_400_000 },
    { owner: "" },
    { owner: "x".repeat(256) },
    { meta: { job: 7 } },
    { maxHoldMs: 1 },
    { progressMs: 30_000 },
    { progressMs: 1000, leaseMs: 1000, heartbeat: true },
    { heartbeat: false },
    { leaseMs: undefined },
  ])("takes %j", async (options) => {
    const { locks } = createHarness();
    expect(await loosely(locks).tryAcquire(KEY, options)).not.toBeNull();
  });
});

describe("other operations", () => {
  it.each([
    ["leaseMs", 999],
    ["leaseMs", 1.5],
    ["ttl", 5000],
    ["meta", { note: "x".repeat(1024) }],
    ["meta", ["a"]],
  ])("renew and detach refuse %s: %j, and the lease is none the worse", async (option, value) => {
    const { locks, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    const loose = lease as unknown as { renew(options: Loose): Promise<void>; detach(options: Loose): Promise<string> };
    await expect(loose.renew({ [option]: value })).rejects.toMatchObject({ field: option });
    await expect(loose.detach({ [option]: value })).rejects.toMatchObject({ field: option });
    expect(lease.state).toBe("held");
    expect(wire.sent).toHaveLength(1);
  });

  it.each([
    ["waitMs", 5],
    ["meta", {}],
    ["maxHoldMs", 0],
    ["progressMs", 29_999],
    ["heartbeat", "yes"],
    ["owner", 7],
    ["leaseMs", 1],
  ])("attach refuses %s: %j", async (option, value) => {
    const { locks, wire } = createHarness();
    const handle = await (await locks.acquire(KEY)).detach();
    const requests = wire.sent.length;
    await expect(loosely(locks).attach(handle, { [option]: value })).rejects.toMatchObject({ name: "InvalidRequestError", field: option });
    expect(wire.sent).toHaveLength(requests);
  });

  it.each([
    "",
    "hf1",
    "hf2/ORDER_1231/01a2ce8b-d400-7145-b733-952723412670/5000",
    "hf1/a b/01a2ce8b-d400-7145-b733-952723412670/5000",
    "hf1/ORDER_1231/not-an-id/5000",
    "hf1/ORDER_1231/01a2ce8b-d400-7145-b733-952723412670/",
    "hf1/ORDER_1231/01a2ce8b-d400-7145-b733-952723412670/-5000",
    "hf1/ORDER_1231/01a2ce8b-d400-7145-b733-952723412670/1e9",
    undefined,
    7,
  ])("attach refuses the handle %j", async (handle) => {
    const { locks, wire } = createHarness();
    await expect(loosely(locks).attach(handle)).rejects.toMatchObject({ name: "InvalidRequestError", field: "handle" });
    expect(wire.sent).toEqual([]);
  });

  it.each([
    ["reason", { reason: "", fencingToken: 1 }],
    ["reason", { fencingToken: 1 }],
    ["reason", { reason: "x".repeat(257), fencingToken: 1 }],
    ["reason", { reason: "half \ud83c", fencingToken: 1 }],
    ["fencingToken", { reason: "stuck" }],
    ["fencingToken", { reason: "stuck", fencingToken: -1 }],
    ["fencingToken", { reason: "stuck", fencingToken: "7" }],
    ["drainMs", { reason: "stuck", fencingToken: 1, drainMs: -1 }],
    ["force", { reason: "stuck", fencingToken: 1, force: true }],
  ])("forceRelease refuses a wrong %s: %j", async (option, options) => {
    const { locks, wire } = createHarness();
    await expect(loosely(locks).forceRelease(KEY, options)).rejects.toMatchObject({ name: "InvalidRequestError", field: option });
    expect(wire.sent).toEqual([]);
  });

  it.each([
    ["max", 0],
    ["max", 101],
    ["limit", 5],
    ["prefix", "a/b"],
    ["prefix", "x".repeat(201)],
    ["cursor", ""],
    ["cursor", "a b"],
    ["owner", 7],
    ["owner", "x".repeat(257)],
  ])("list refuses %s: %j", async (option, value) => {
    const { locks, wire } = createHarness();
    await expect(loosely(locks).list({ [option]: value })).rejects.toMatchObject({ name: "InvalidRequestError", field: option });
    expect(wire.sent).toEqual([]);
  });
});

/** Requests that the service refuses over HTTP are refused in memory as well: a test in memory must not accept them. */
describe("what no message of the API may be", () => {
  const half = "half \ud83c of a pair";
  it.each<[what: string, schema: Schema, message: Loose, ask: (locks: LooseClient) => unknown, field: string]>([
    ["an owner", REQUESTS.AcquireRequest, { owner: half }, (locks) => locks.acquire(KEY, { owner: half }), "owner"],
    ["an owner of a client", REQUESTS.AcquireRequest, { owner: half }, () => createLockClient({ owner: half }), "owner"],
    ["a scope", REQUESTS.AcquireRequest, { scope: half }, (locks) => locks.scope(half), "scope"],
    [
      "a reason",
      REQUESTS.BreakRequest,
      { reason: half, fencingToken: 1 },
      (locks) => locks.forceRelease(KEY, { reason: half, fencingToken: 1 }),
      "reason",
    ],
    ["a run's reason", REQUESTS.ResetRequest, { reason: half }, (locks) => locks.runs.reset(KEY, { reason: half }), "reason"],
    ["a prefix", ListQuery, { prefix: "a b" }, (locks) => locks.list({ prefix: "a b" }), "prefix"],
    ["a prefix of runs", RunListQuery, { prefix: "a/" }, (locks) => locks.runs.list({ prefix: "a/" }), "prefix"],
    ["a cursor", ListQuery, { cursor: "a b" }, (locks) => locks.list({ cursor: "a b" }), "cursor"],
    ["an owner to list", ListQuery, { owner: "x".repeat(257) }, (locks) => locks.list({ owner: "x".repeat(257) }), "owner"],
    [
      "a key's mode in a set",
      REQUESTS.AcquireSetRequest,
      { locks: [{ key: KEY, mode: "read" }] },
      (locks) => locks.acquireAll([{ key: KEY, mode: "read" }]),
      "mode",
    ],
    [
      "a misspelt mode of a key in a set",
      REQUESTS.AcquireSetRequest,
      { locks: [{ key: KEY, mod: "shared" }] },
      (locks) => locks.acquireAll([{ key: KEY, mod: "shared" }]),
      "mod",
    ],
    ["no key in a set", REQUESTS.AcquireSetRequest, { keys: [null] }, (locks) => locks.acquireAll([null]), "key"],
    ["a meta", REQUESTS.AcquireRequest, { meta: "1970-01-01T00:00:00.000Z" }, (locks) => locks.acquire(KEY, { meta: new Date(0) }), "meta"],
  ])("%s is refused by both", async (_what, schema, message, ask, field) => {
    expect(decode(schema, message)).toMatchObject({ ok: false, code: "invalid-request" });
    const locks = createLockClient();
    const error: unknown = await (async () => ask(loosely(locks)))().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "InvalidRequestError", field });
    expect((await locks.list()).items).toEqual([]);
  });

  it("control: a prefix, a cursor and a reason that may be are taken by both", async () => {
    const query = { prefix: ".", cursor: "x".repeat(200), owner: "" };
    expect(decode(ListQuery, query)).toMatchObject({ ok: true });
    expect((await createLockClient().list(query)).items).toEqual([]);
    expect(decode(REQUESTS.ResetRequest, { reason: "\u{1f319}" })).toMatchObject({ ok: true });
    await expect(createLockClient().runs.reset(KEY, { reason: "\u{1f319}" })).rejects.toMatchObject({ code: "not-found" });
  });
});
