/** Changes of mode: the only reader becomes the writer, the writer becomes a reader, and a late duplicate doesn't undo either. */
import { describe, expect, it } from "vitest";
import { endLease } from "../../lib/core/lock/tombstones.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { transition } from "../../lib/core/transition.js";
import { LEASE_MS, MARGIN_MS, POLICY } from "../store/fixture.js";
import { ID, IN_S, Key, permits, READER } from "./kinds-key.js";

const TTL_MS = DEFAULTS.waiterTtlMs;
const LONG = { ...READER, leaseMs: 3 * TTL_MS };

/** A key that A and B read for a long time, without a request to upgrade. */
function twoReaders(): Key {
  const key = new Key();
  key.acquire("A", LONG);
  key.acquire("B", LONG);
  return key.at(1);
}

describe("a change of mode", () => {
  it("gives the lease a new token, above every earlier one, and leaves its times as they were", () => {
    const key = new Key();
    key.acquire("A", READER);
    const { fenceFloor: _floor, ...before } = key.lease("A");
    const up = key.change("A", "exclusive");
    expect(up).toMatchObject({
      how: "changed",
      lease: { ...before, mode: "exclusive", fencingToken: before.fencingToken + 1, version: before.version + 1 },
    });
    expect(key.record?.fenceFloor).toBe(before.fencingToken + 1);
    const down = key.at(5).change("A", "shared");
    expect(down).toMatchObject({ lease: { mode: "shared", fencingToken: key.reading.latestMs, fenceFloor: before.fencingToken + 1 } });
    expect(key.record?.holds[ID("A")]?.expiresAtMs).toBe(before.serverTimeMs + LEASE_MS);
  });

  it("sent again is the same lease, whichever token it names, and the record stays as it is", () => {
    const key = new Key();
    key.acquire("A", READER);
    const token = key.tokenOf("A");
    key.change("A", "exclusive", token);
    const { record } = key;
    for (const named of [token, key.tokenOf("A"), 1])
      expect(key.change("A", "exclusive", named)).toMatchObject({ how: "replayed", lease: { fencingToken: token + 1 } });
    expect(key.record).toBe(record);
  });

  it.each(["exclusive", "shared"] as const)("to %s that comes late, after another change, changes nothing", (mode) => {
    const other = mode === "exclusive" ? "shared" : "exclusive";
    const key = new Key();
    key.acquire("A", { mode: other });
    const token = key.tokenOf("A");
    key.change("A", mode, token);
    key.change("A", other);
    const { record } = key;
    expect(key.change("A", mode, token)).toMatchObject({ code: "token-mismatch" });
    expect(key.record).toBe(record);
    // Control: with the lease's present token, the same request changes the mode.
    expect(key.change("A", mode)).toMatchObject({ how: "changed" });
  });

  it("is refused for the first of these reasons that holds", () => {
    const rows: readonly (readonly [reason: string, add: (key: Key) => unknown])[] = [
      ["lease-lost: released", (key) => key.record && (key.record = endLease(key.record, ID("A"), "released", key.reading))],
      ["forbidden", (key) => hold(key, { principal: "Q" })],
      ["lease-lost: broken", (key) => hold(key, { broken: "drain" })],
      ["lease-lost: expired", (key) => hold(key, { expiresAtMs: key.reading.earliestMs })],
      ["limit-mismatch", (key) => key.record && (key.record = { ...key.record, limit: 2 })],
      ["token-mismatch", (key) => hold(key, { fencingToken: 2 })],
      ["upgrade-conflict", (key) => key.change("B", "exclusive")],
      ["locked", () => undefined],
    ];
    for (const [rank, [reason]] of rows.entries()) {
      const key = twoReaders();
      const token = key.tokenOf("A");
      for (const [, add] of rows.slice(rank).reverse()) add(key);
      const answer = key.change("A", "exclusive", token);
      expect(answer.ok ? answer.how : answer.reason ? `${answer.code}: ${answer.reason}` : answer.code).toBe(reason);
    }
  });

  it("of a permit is refused: it has no mode", () => {
    const key = new Key();
    key.acquire("A", permits(1));
    expect(key.change("A", "shared")).toMatchObject({ code: "limit-mismatch" });
    expect(key.change("A", "exclusive")).toMatchObject({ code: "limit-mismatch" });
  });

  it("waits for the other levels of its own scope too", () => {
    const key = new Key();
    key.acquire("A", { ...IN_S, ...READER });
    key.acquire("B", { ...IN_S, ...READER });
    expect(key.change("A", "exclusive")).toMatchObject({ code: "locked" });
    key.release("B");
    expect(key.change("A", "exclusive")).toMatchObject({ how: "changed" });
    key.acquire("C", IN_S);
    expect(key.change("A", "shared")).toMatchObject({ code: "locked" });
    key.release("C");
    expect(key.change("A", "shared")).toMatchObject({ how: "changed" });
  });

  it("lets other readers in once the writer is one of them", () => {
    const key = new Key();
    key.acquire("A");
    expect(key.acquire("B", READER)).toMatchObject({ code: "locked" });
    key.change("A", "shared");
    expect(key.acquire("C", READER)).toMatchObject({ how: "granted" });
    expect(key.holds).toBe("As Cs");
  });

  it("makes whoever a lease was handed to first its principal, as any first request does", () => {
    const key = new Key();
    key.acquire("A", READER);
    key.transfer("A", "B");
    expect(key.change("B", "exclusive", key.tokenOf("B"), "Q")).toMatchObject({ how: "changed" });
    expect(key.record?.holds[ID("B")]?.principal).toBe("Q");
    expect(key.renew("B")).toMatchObject({ code: "forbidden" });
  });
});

describe("two readers that ask to become the writer", () => {
  it("are told apart: the first waits for the second to go, the second is in its way", () => {
    const key = twoReaders();
    expect(key.change("A", "exclusive")).toMatchObject({ code: "locked", retry: "later" });
    expect(key.change("B", "exclusive")).toMatchObject({ code: "upgrade-conflict", retry: "never" });
    expect(key.change("A", "exclusive")).toMatchObject({ code: "locked" });
    key.release("B");
    expect(key.change("A", "exclusive")).toMatchObject({ how: "changed", lease: { mode: "exclusive" } });
    expect(key.holds).toBe("Ax");
    // Control: if the record forgets the first request, both readers wait for each other.
    const forgetful = twoReaders();
    forgetful.change("A", "exclusive");
    const { upgrading: _first, ...forgotten } = forgetful.record!;
    const command = {
      type: "mode",
      key: "k",
      leaseId: ID("B"),
      principal: "P",
      mode: "exclusive",
      fencingToken: forgetful.tokenOf("B"),
    } as const;
    expect(transition(forgotten, command, forgetful.reading, POLICY).answer).toMatchObject({ code: "locked" });
  });

  it("the first counts as asking until it has not asked for a while, by the clock that is behind", () => {
    const key = twoReaders();
    key.change("A", "exclusive");
    expect(key.at(TTL_MS, 9_000).change("B", "exclusive")).toMatchObject({ code: "upgrade-conflict" });
    // A repeated request keeps the wish to upgrade alive.
    key.change("A", "exclusive");
    expect(key.at(TTL_MS + 9_000 + TTL_MS - 1).change("B", "exclusive")).toMatchObject({ code: "upgrade-conflict" });
    expect(key.at(TTL_MS + 9_000 + TTL_MS).change("B", "exclusive")).toMatchObject({ code: "locked" });
    expect(key.change("A", "exclusive")).toMatchObject({ code: "upgrade-conflict" });
  });

  it("the second may be the first as soon as the first is gone: released, broken, or taken over", () => {
    const gone: readonly ((key: Key) => unknown)[] = [
      (key) => key.release("A"),
      (key) => key.break("A", 0),
      (key) => key.at(LEASE_MS + MARGIN_MS),
    ];
    for (const go of gone) {
      const key = new Key();
      key.acquire("A", READER);
      key.acquire("B", LONG);
      key.acquire("C", LONG);
      key.change("A", "exclusive");
      expect(key.change("B", "exclusive")).toMatchObject({ code: "upgrade-conflict" });
      go(key);
      expect(key.change("B", "exclusive")).toMatchObject({ code: "locked" });
      key.release("C");
      expect(key.change("B", "exclusive")).toMatchObject({ how: "changed" });
      expect(key.holds).toBe("Bx");
    }
  });

  it("keep no reader out once nobody waits any more", () => {
    const key = twoReaders();
    key.change("A", "exclusive");
    expect(key.acquire("C", READER)).toMatchObject({ code: "locked" });
    expect(
      key
        .copy()
        .at(1 + TTL_MS)
        .acquire("C", READER),
    ).toMatchObject({ how: "granted" });
    key.release("A");
    expect(key.acquire("C", READER)).toMatchObject({ how: "granted" });
  });

  it("succeeds past a reader that died, when its margin is over and not before", () => {
    const key = new Key();
    key.acquire("A", LONG);
    key.acquire("B", READER);
    expect(key.at(LEASE_MS + MARGIN_MS - 1, 5_000).change("A", "exclusive")).toMatchObject({ code: "locked", retryAfterMs: 1 });
    expect(key.at(LEASE_MS + MARGIN_MS).change("A", "exclusive")).toMatchObject({ how: "changed" });
    expect(key.record?.tombstones).toEqual([{ leaseId: ID("B"), ending: "taken" }]);
    expect(key.renew("B")).toMatchObject({ code: "lease-lost", reason: "taken" });
  });
});

/** Changes some fields of A's hold. */
function hold(key: Key, change: object): void {
  const { record } = key;
  const mine = record?.holds[ID("A")];
  if (record && mine) key.record = { ...record, holds: { ...record.holds, [ID("A")]: { ...mine, ...change } } };
}
