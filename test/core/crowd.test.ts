/**
 * Crowds: which decisions commute, so that a store may write them over what other members wrote since. Each has twins that must not: they
 * differ in one fact, and a store would write over a change that they depend on.
 */
import { describe, expect, it } from "vitest";
import { LEASE_MS, START_MS } from "../store/fixture.js";
import { ID, IN_S, permits, READER } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";

/** A key that A and B hold as readers. */
const readers = (): QueueKey => {
  const key = new QueueKey();
  key.acquire("A", READER);
  key.acquire("B", READER);
  return key;
};
/** A key with a reader and a writer that waits behind it. */
const waitedFor = (): QueueKey => {
  const key = readers();
  key.ask("D");
  return key;
};
const renew = (key: QueueKey, more: object = {}) => key.send({ type: "renew", key: "k", leaseId: ID("A"), principal: "P", ...more });
const META = { meta: { step: 1 } } as const;

describe("a renewal commutes", () => {
  it.each([
    ["of a reader beside another", readers, (key: QueueKey) => renew(key)],
    ["of a reader that is waited for", waitedFor, (key: QueueKey) => renew(key)],
    ["of the only holder", () => keyOf("A"), (key: QueueKey) => renew(key)],
    ["for longer than before", readers, (key: QueueKey) => renew(key, { leaseMs: 2 * LEASE_MS })],
  ] as const)("%s", (_which, make, act) => {
    const key = make();
    expect(act(key.at(1))).toMatchObject({ ok: true, how: "renewed" });
    expect(key.decision?.commutes).toBe(true);
  });

  it.each([
    [
      "that would end before the present expiry, and changes nothing",
      readers,
      (key: QueueKey) => renew(key.at(1), { leaseMs: LEASE_MS / 2 }),
    ],
    [
      "whose margin stays that of a longer lease",
      readers,
      (key: QueueKey) => {
        renew(key, { leaseMs: 10 * LEASE_MS });
        renew(key.at(9.5 * LEASE_MS), { leaseMs: LEASE_MS });
      },
    ],
    ["with new meta data", readers, (key: QueueKey) => renew(key.at(1), META)],
    [
      "that takes a dead waiter out of the queue",
      waitedFor,
      (key: QueueKey) => {
        renew(key, { leaseMs: 10 * LEASE_MS });
        renew(key.at(2 * LEASE_MS), { leaseMs: 10 * LEASE_MS });
      },
    ],
    ["of a lease without a principal", () => orphan(readers()), (key: QueueKey) => renew(key.at(1))],
    ["of a run", running, (key: QueueKey) => renew(key.at(1))],
  ] as const)("control: not one %s", (_which, make, act) => {
    const key = make();
    act(key);
    expect(key.decision?.answer).toMatchObject({ ok: true, how: "renewed" });
    expect(key.decision).not.toHaveProperty("commutes");
  });
});

describe("a join commutes", () => {
  it.each([
    ["of a reader", readers, READER],
    ["of a permit that fits", () => keyOf("A", permits(1)), permits(2)],
  ] as const)("%s", (_which, make, options) => {
    const key = make();
    expect(key.acquire("C", options)).toMatchObject({ how: "granted" });
    expect(key.decision?.commutes).toBe(true);
  });

  it.each([
    ["the first grant", () => new QueueKey(), READER],
    ["a hold in a scope", readers, { ...READER, ...IN_S }],
    ["a grant beside an expired lease, which it ends", () => readers().at(2 * LEASE_MS), READER],
    ["a refusal", readers, {}],
    ["a grant before one that waits", waitedForPermits, { ...permits(1), priority: 1 }],
  ] as const)("control: not %s", (_which, make, options) => {
    const key = make();
    key.acquire("C", options);
    expect(key.decision).not.toHaveProperty("commutes");
  });

  it("takes the next token, and the clock's after a minute", () => {
    const key = readers();
    const { fencingToken = 0 } = key.record ?? {};
    expect(key.at(50).acquire("C", READER)).toMatchObject({ lease: { fencingToken: fencingToken + 1 } });
    renew(key, { leaseMs: 100 * LEASE_MS });
    const late = 61_000;
    expect(key.at(late).acquire("E", READER)).toMatchObject({ lease: { fencingToken: START_MS + late } });
  });
});

describe("the arrival of a waiter commutes", () => {
  it.each([
    ["behind readers", readers, {}],
    ["behind another waiter", waitedFor, {}],
    ["behind permits", () => keyOf("A", permits(3)), permits(1)],
    ["while a part of the permits is offered", offered, permits(1)],
  ] as const)("%s", (_which, make, options) => {
    const key = make();
    expect(key.ask("C", options)).toMatchObject({ state: "waiting" });
    expect(key.decision?.commutes).toBe(true);
  });

  it.each([
    ["behind a writer", () => keyOf("A"), {}],
    ["with a priority: others may come to stand before it", readers, { priority: 1 }],
    ["in a scope, which may come to hold the key", readers, IN_S],
  ] as const)("control: not %s", (_which, make, options) => {
    const key = make();
    expect(key.ask("C", options)).toMatchObject({ state: "waiting" });
    expect(key.decision).toHaveProperty("behind");
    expect(key.decision).not.toHaveProperty("commutes");
  });
});

describe("a claim commutes", () => {
  it.each([
    ["of permits, while others hold the rest", offered, "D", permits(2)],
    ["of a reader, once another has claimed", turnOfReaders, "D", READER],
    ["of an exclusive lease, whoever comes to wait meanwhile", () => turn({}), "B", {}],
  ] as const)("%s", (_which, make, letter, options) => {
    const key = make();
    expect(key.ask(letter, options)).toMatchObject({ how: "granted" });
    expect(key.decision?.commutes).toBe(true);
  });

  it("takes the next token and leaves the floor, whoever claims first", () => {
    const key = turnOfReaders();
    const { fencingToken = 0, fenceFloor } = key.record ?? {};
    expect(key.ask("D", READER)).toMatchObject({ lease: { fencingToken: fencingToken + 1, fenceFloor } });
  });

  it.each([
    ["of the first, whose token is the floor", () => turn(READER), "B", READER],
    ["in a scope, whose leases share their permits", () => offered(IN_S), "D", { ...permits(2), ...IN_S }],
  ] as const)("control: not one %s", (_which, make, letter, options) => {
    const key = make();
    expect(key.ask(letter, options)).toMatchObject({ how: "granted" });
    expect(key.decision).not.toHaveProperty("commutes");
  });
});

describe("a release commutes", () => {
  it.each([
    ["of a lease that leaves others behind", readers],
    ["that somebody waits for, who can't hold beside those who stay", waitedFor],
    ["whose permits somebody waits for", waitedForPermit],
  ] as const)("%s", (_which, make) => {
    const key = make();
    const waiters = key.record?.waiters;
    key.release("A");
    expect(key.decision?.commutes).toBe(true);
    expect(key.record).toMatchObject({ waiters, offers: [] });
  });

  it("and the first who waits then takes what came back, at its next poll", () => {
    const key = waitedForPermit();
    key.release("A");
    expect(key.look("D")).toMatchObject({ state: "waiting", retryAfterMs: 0 });
    expect(key.ask("D", permits(2))).toMatchObject({ how: "granted" });
  });

  it.each([
    ["of the last one", () => keyOf("A", READER)],
    ["of the last one that somebody waits for", waitedForPermits],
    ["of an expired lease", () => readers().at(LEASE_MS + 1)],
    ["by clocks that disagree", () => readers().at(0, 60_000)],
    ["of a lease without a principal", () => orphan(readers())],
    ["of a lease that an operator is ending", breaking],
  ] as const)("control: not one %s", (_which, make) => {
    const key = make();
    expect(key.release("A")).toMatchObject({ ok: true });
    expect(key.decision).not.toHaveProperty("commutes");
  });
});

/** A key with one of three permits held, and a waiter for all three. */
function waitedForPermits(): QueueKey {
  const key = keyOf("A", permits(1));
  key.ask("B", permits(3));
  return key;
}

/** A key with all three permits held, and a waiter for two. */
function waitedForPermit(options: object = {}): QueueKey {
  const key = keyOf("B", permits(1));
  key.acquire("A", permits(2));
  key.ask("D", { ...permits(2), ...options });
  key.ask("E", permits(1));
  return key;
}

/** A key with one of three permits held, and the others offered. */
function offered(options: object = {}): QueueKey {
  const key = waitedForPermit(options);
  key.release("A");
  key.ask("E", permits(1));
  key.release("E");
  return key;
}

/** A key that a writer left, and that is offered to B and D. */
function turn(options: object): QueueKey {
  const key = keyOf("A");
  key.ask("B", options);
  key.ask("D", options);
  key.release("A");
  return key.at(1);
}

/** The same for readers, one of whom has claimed. */
function turnOfReaders(): QueueKey {
  const key = turn(READER);
  key.ask("B", READER);
  return key;
}

/** A key that one lease holds. */
function keyOf(letter: string, options: object = {}): QueueKey {
  const key = new QueueKey();
  key.acquire(letter, options);
  return key;
}

/** The key with A's principal unknown, as after a transfer. */
function orphan(key: QueueKey): QueueKey {
  const { record } = key;
  const hold = record?.holds[ID("A")];
  if (record && hold) key.record = { ...record, holds: { ...record.holds, [ID("A")]: { ...hold, principal: "" } } };
  return key;
}

/** The same, while an operator ends A's lease. */
function breaking(): QueueKey {
  const key = readers();
  key.break("A");
  return key;
}

/** A key under a run, which A holds. */
function running(): QueueKey {
  const key = keyOf("A");
  if (key.record) key.record = { ...key.record, run: { fingerprint: "", attempt: 1, keepMs: 60_000, takeover: false } as never };
  return key;
}
