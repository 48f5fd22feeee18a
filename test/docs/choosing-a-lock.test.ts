/** "Choosing a kind of lock": its code is the examples', its figures are the code's, its costs are counted at the engine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import type { Lease, LeaseSet, LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { freshTable } from "../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import { ROOT } from "../tidy/tree.js";
import { describeCalls, describeCosts, describeQuotes } from "./quotes.js";

const PATH = "docs/choosing-a-lock.md";
const PAGE = readFileSync(join(ROOT, PATH), "utf8");
/** The page as one line, regardless of wrapping. */
const TEXT = PAGE.replaceAll(/\s+/g, " ");

describeQuotes(PATH, PAGE);

describe("the page's words", () => describeCalls(PAGE, 5));

describe("the page's figures", () => {
  it.each([
    ["a heartbeat's interval", `one write per heartbeat (every ${renewAfterMs(DEFAULTS.leaseMs) / 1000} s;`],
    ["how many readers there may be", `more than ${LIMITS.leasesMax} readers at once`],
    ["how many permits", `over ${LIMITS.leasesMax} at once`],
    ["how many keys a set may have", `a set of up to ${LIMITS.setKeys} keys`],
    ["how long a scope must be", `${LIMITS.scopeMinChars} characters or more that nobody guesses`],
  ])("say %s as the code has it", (_what, sentence) => {
    expect(TEXT).toContain(sentence);
  });

  it("say how many segments there may be", () => {
    const most = Number(/up to (\d+) segments/.exec(TEXT)?.[1]);
    const locks = createLockClient();
    expect(locks.segments("key", most).keys).toHaveLength(most);
    expect(() => locks.segments("key", most + 1)).toThrow("segments");
  });

  it("say how often a waiter looks", async () => {
    expect(TEXT).toContain("at least one every 3.5 s");
    expect(LIMITS.pollMaxMs).toBe(3500);
  });
});

const BESIDE = "beside others: 1 to acquire (2 if the process has not seen the key lately), 1 to release";

describe("what each kind costs, as the page says it", () => {
  describeCosts(TEXT, [
    ["| 1 to acquire, 1 to release |", "an acquire of a new key", "a release"],
    ["and one per refused `tryAcquire`", "a refusal"],
    ["a level within: 2 to acquire, 1 to release", "a nested level", "a release of an inner level"],
    [`a reader ${BESIDE}`, "a reader that joins one", "a reader that joins one that it has not seen", "a release of one reader of two"],
    [`a permit ${BESIDE}`, "a permit beside another"],
    ["each attempt to change the mode 1", "an upgrade that waits for another reader", "an upgrade", "a downgrade"],
    ["1 to queue, 1 to be granted; polls meanwhile are reads", "an enqueue into a key seen in use", "a claim", "a visit that looks"],
    ["1 for each of the two", "a transfer"],
    ["Changing a hold that this process hasn't seen for 5 s costs one extra read.", "a transfer by a process that didn't see the grant"],
  ]);

  let proxy: FaultProxy;
  let locks: LockClient;
  let another: () => LockClient;
  let cost: (act: () => Promise<unknown>) => Promise<readonly [writeUnits: number, reads: number]>;

  beforeAll(async () => {
    proxy = await startFaultProxy();
    const { place } = await freshTable(proxy.endpoint);
    locks = createTableClient(place);
    another = () => createTableClient(place);
    await locks.withLock("clock", () => null); // A process reads the table's clock once.
    cost = async (act) => {
      proxy.ledger.clear();
      await act();
      return [proxy.ledger.writeUnits, proxy.ledger.requests["GetItem"] ?? 0];
    };
  });
  afterAll(async () => {
    await locks.close();
    await proxy.close();
  });

  it("a set: of each key 2 to acquire and 1 to release, and 1 for its heartbeat", async () => {
    expect(TEXT).toContain("for each key 2 to acquire, as a transaction costs, and 1 to release");
    expect(TEXT).toContain("a set: 1 for each of its keys");
    let set: LeaseSet | undefined;
    expect(await cost(async () => (set = await locks.acquireAll(["a", "b", "c"])))).toEqual([6, 0]);
    expect(await cost(() => set!.renew({ leaseMs: 2 * DEFAULTS.leaseMs }))).toEqual([3, 0]);
    expect(await cost(() => set!.release())).toEqual([3, 0]);
  });

  it("a set that waits looks by reads", async () => {
    expect(TEXT).toContain("waiting polls by reads");
    await using _held = await locks.acquire("d");
    // Closed at the end, which waits for pending requests.
    await using waiting = another();
    await waiting.withLock("clock", () => null);
    proxy.ledger.clear();
    await expect(waiting.acquireAll(["d", "e"], { waitMs: 3000 })).rejects.toThrow(/still held|no answer in time/);
    const { GetItem = 0, TransactWriteItems = 0 } = proxy.ledger.requests;
    // One is the first request. On a busy machine a look may get no answer in time, and then the set is asked for again.
    expect(TransactWriteItems).toBeLessThanOrEqual(2);
    expect(GetItem).toBeGreaterThan(TransactWriteItems);
  });

  it("segments: as a mutex, and a read for each one that is passed because it was seen held", async () => {
    expect(TEXT).toContain("1 to acquire, 1 to release; a read for each held segment that `tryAcquire` passes");
    const hot = locks.segments("hot", 3);
    const leases: (Lease | null)[] = [];
    const acquire = async (): Promise<void> => void leases.push(await hot.acquire());
    expect(await cost(acquire)).toEqual([1, 0]);
    expect(await cost(() => leases[0]!.release())).toEqual([1, 0]);
    for (const segment of hot.keys) leases.push(await locks.acquire(segment));
    expect(await cost(() => hot.tryAcquire())).toEqual([0, hot.keys.length]);
  });
});

it("who stands by to lead asks as often as the page says", async () => {
  const everyMs = renewAfterMs(DEFAULTS.leaseMs);
  expect(TEXT).toContain(`each standby process 1 each ${everyMs / 2 / 1000} to ${everyMs / 1000} s`);
  const leader = createLockClient();
  const { clock, store } = leader;
  await leader.acquire("key");
  let asked = 0;
  void createLockClient({ clock, store, log: () => void asked++ }).elect("key", () => undefined);
  await clock.advance(100 * everyMs);
  expect(asked).toBeGreaterThanOrEqual(100);
  expect(asked).toBeLessThanOrEqual(200);
});
