/**
 * Every state of a key of any kind × every command: what is answered, and who is on the record then. A row
 * has four lines, their columns as named here; `+` says that the record changed.
 */
import { describe, expect, it } from "vitest";
import { OTHER, play, SAME_LEASE, SAME_SCOPE, STATES } from "./kinds-table.js";
import { ID, Key, permits, READER } from "./kinds-key.js";

const LINES = {
  // acquire A | acquire A otherwise | renew A | release A | transfer A to D
  "the lease A": SAME_LEASE.slice(0, 5),
  // A to exclusive | A to shared | check A | break A | break A now
  "its mode, an operator": SAME_LEASE.slice(5),
  // C exclusive | C shared | C 1 of 3 | C 1 of 2
  "a new lease of its scope": SAME_SCOPE,
  // E exclusive | E shared | E 1 of 3 | E 2 of 3 | E 1 of 2
  "a new lease of another": OTHER,
};

// prettier-ignore
const CELLS: Readonly<Record<string, readonly string[]>> = {
  "free": [
    "granted +Ax | granted +Ax | lease-lost: never | never + | lease-lost: never",
    "lease-lost: never | lease-lost: never | lease-lost: never | not-found | not-found",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "free, used as a semaphore before": [
    "granted +Ax | granted +Ax | lease-lost: never | never + | lease-lost: never",
    "lease-lost: never | lease-lost: never | lease-lost: never | other-hold | other-hold",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "A exclusive": [
    "replayed Ax | lease-reused Ax | renewed +Ax | released + | transferred +Dx",
    "replayed Ax | changed +As | checked Ax | breaking +Ax! | broken +",
    "granted +Ax=Cx | granted +Ax=Cx | limit-mismatch Ax | limit-mismatch Ax",
    "locked Ax | locked Ax | limit-mismatch Ax | limit-mismatch Ax | limit-mismatch Ax",
  ],
  "A exclusive, ran out": [
    "lease-over Ax† | lease-over Ax† | lease-lost: expired Ax† | expired + | lease-lost: expired Ax†",
    "lease-lost: expired Ax† | lease-lost: expired Ax† | lease-lost: expired Ax† | breaking +Ax†! | broken +",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
  ],
  "A exclusive, margin over by the later clock alone": [
    "lease-over Ax† | lease-over Ax† | lease-lost: expired Ax† | expired + | lease-lost: expired Ax†",
    "lease-lost: expired Ax† | lease-lost: expired Ax† | lease-lost: expired Ax† | breaking +Ax†! | broken +",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
  ],
  "A exclusive, margin over": [
    "lease-over Ax† | lease-over Ax† | lease-lost: expired Ax† | expired + | lease-lost: expired Ax†",
    "lease-lost: expired Ax† | lease-lost: expired Ax† | lease-lost: expired Ax† | broken + | broken +",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "A exclusive, being broken": [
    "replayed Ax! | lease-reused Ax! | lease-lost: broken Ax! | released + | lease-lost: broken Ax!",
    "lease-lost: broken Ax! | lease-lost: broken Ax! | checked Ax! | breaking Ax! | broken +",
    "locked Ax! | locked Ax! | limit-mismatch Ax! | limit-mismatch Ax!",
    "locked Ax! | locked Ax! | limit-mismatch Ax! | limit-mismatch Ax! | limit-mismatch Ax!",
  ],
  "A shared": [
    "replayed As | lease-reused As | renewed +As | released + | transferred +Ds",
    "changed +Ax | replayed As | checked As | breaking +As! | broken +",
    "locked As | granted +As=Cs | limit-mismatch As | limit-mismatch As",
    "locked As | granted +As Es | limit-mismatch As | limit-mismatch As | limit-mismatch As",
  ],
  "A shared, ran out": [
    "lease-over As† | lease-over As† | lease-lost: expired As† | expired + | lease-lost: expired As†",
    "lease-lost: expired As† | lease-lost: expired As† | lease-lost: expired As† | breaking +As†! | broken +",
    "locked As† | granted +As† Cs | limit-mismatch As† | limit-mismatch As†",
    "locked As† | granted +As† Es | limit-mismatch As† | limit-mismatch As† | limit-mismatch As†",
  ],
  "A shared beside B": [
    "replayed As Bs | lease-reused As Bs | renewed +As Bs | released +Bs | transferred +Bs Ds",
    "locked +As^ Bs | replayed As Bs | checked As Bs | breaking +As! Bs | broken +Bs",
    "locked As Bs | granted +As=Cs Bs | limit-mismatch As Bs | limit-mismatch As Bs",
    "locked As Bs | granted +As Bs Es | limit-mismatch As Bs | limit-mismatch As Bs | limit-mismatch As Bs",
  ],
  "A shared beside B that ran out": [
    "replayed As Bs† | lease-reused As Bs† | renewed +As Bs† | released +Bs† | transferred +Bs† Ds",
    "locked +As^ Bs† | replayed As Bs† | checked As Bs† | breaking +As! Bs† | broken +Bs†",
    "locked As Bs† | granted +As=Cs Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "locked As Bs† | granted +As Bs† Es | limit-mismatch As Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
  ],
  "A shared beside B whose margin is over": [
    "replayed As Bs† | lease-reused As Bs† | renewed +As Bs† | released +Bs† | transferred +Bs† Ds",
    "changed +Ax | replayed As Bs† | checked As Bs† | breaking +As! Bs† | broken +Bs†",
    "locked As Bs† | granted +As=Cs Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "locked As Bs† | granted +As Es | limit-mismatch As Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
  ],
  "A shared, B waits to upgrade": [
    "replayed As Bs^ | lease-reused As Bs^ | renewed +As Bs^ | released +Bs^ | transferred +Bs^ Ds",
    "upgrade-conflict As Bs^ | replayed As Bs^ | checked As Bs^ | breaking +As! Bs^ | broken +Bs^",
    "locked As Bs^ | granted +As=Cs Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^",
    "locked As Bs^ | locked As Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^",
  ],
  "A has 1 of 3": [
    "replayed A1/3 | lease-reused A1/3 | renewed +A1/3 | released + | transferred +D1/3",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | checked A1/3 | breaking +A1/3! | broken +",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | granted +A1/3=C1/3 | limit-mismatch A1/3",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | granted +A1/3 E1/3 | granted +A1/3 E2/3 | limit-mismatch A1/3",
  ],
  "A has 1 of 3, B has 1": [
    "replayed A1/3 B1/3 | lease-reused A1/3 B1/3 | renewed +A1/3 B1/3 | released +B1/3 | transferred +B1/3 D1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | checked A1/3 B1/3 | breaking +A1/3! B1/3 | broken +B1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | granted +A1/3=C1/3 B1/3 | limit-mismatch A1/3 B1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | granted +A1/3 B1/3 E1/3 | locked A1/3 B1/3 | limit-mismatch A1/3 B1/3",
  ],
  "A has 1 of 3, B has 2": [
    "replayed A1/3 B2/3 | lease-reused A1/3 B2/3 | renewed +A1/3 B2/3 | released +B2/3 | transferred +B2/3 D1/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | checked A1/3 B2/3 | breaking +A1/3! B2/3 | broken +B2/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | granted +A1/3=C1/3 B2/3 | limit-mismatch A1/3 B2/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | locked A1/3 B2/3 | locked A1/3 B2/3 | limit-mismatch A1/3 B2/3",
  ],
  "A has 1 of 3, B had 2 and ran out": [
    "replayed A1/3 B2/3† | lease-reused A1/3 B2/3† | renewed +A1/3 B2/3† | released +B2/3† | transferred +B2/3† D1/3",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | checked A1/3 B2/3† | breaking +A1/3! B2/3† | broken +B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3=C1/3 B2/3† | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | locked A1/3 B2/3† | locked A1/3 B2/3† | limit-mismatch A1/3 B2/3†",
  ],
  "A has 1 of 3, B had 2 and its margin is over": [
    "replayed A1/3 B2/3† | lease-reused A1/3 B2/3† | renewed +A1/3 B2/3† | released +B2/3† | transferred +B2/3† D1/3",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | checked A1/3 B2/3† | breaking +A1/3! B2/3† | broken +B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3=C1/3 B2/3† | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3 E1/3 | granted +A1/3 E2/3 | limit-mismatch A1/3 B2/3†",
  ],
  "B nested in A exclusive": [
    "replayed Ax=Bx | lease-reused Ax=Bx | renewed +Ax=Bx | released +Bx | locked Ax=Bx",
    "replayed Ax=Bx | locked Ax=Bx | checked Ax=Bx | breaking +Ax!=Bx! | broken +",
    "granted +Ax=Bx=Cx | granted +Ax=Bx=Cx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx",
    "locked Ax=Bx | locked Ax=Bx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx",
  ],
  "B nested in A exclusive, A hung and ran out": [
    "lease-over Ax†=Bx | lease-over Ax†=Bx | lease-lost: expired Ax†=Bx | expired +Bx | lease-lost: expired Ax†=Bx",
    "lease-lost: expired Ax†=Bx | lease-lost: expired Ax†=Bx | lease-lost: expired Ax†=Bx | breaking +Ax†!=Bx! | broken +",
    "granted +Ax†=Bx=Cx | granted +Ax†=Bx=Cx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx",
    "locked Ax†=Bx | locked Ax†=Bx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx",
  ],
  "B nested in A exclusive, B hung and ran out": [
    "replayed Ax=Bx† | lease-reused Ax=Bx† | renewed +Ax=Bx† | released +Bx† | transferred +Bx† Dx",
    "replayed Ax=Bx† | locked Ax=Bx† | checked Ax=Bx† | breaking +Ax!=Bx†! | broken +",
    "granted +Ax=Bx†=Cx | granted +Ax=Bx†=Cx | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx†",
    "locked Ax=Bx† | locked Ax=Bx† | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx†",
  ],
  "B nested in A shared": [
    "replayed As=Bs | lease-reused As=Bs | renewed +As=Bs | released +Bs | locked As=Bs",
    "locked +As^=Bs | replayed As=Bs | checked As=Bs | breaking +As!=Bs! | broken +",
    "locked As=Bs | granted +As=Bs=Cs | limit-mismatch As=Bs | limit-mismatch As=Bs",
    "locked As=Bs | granted +As=Bs Es | limit-mismatch As=Bs | limit-mismatch As=Bs | limit-mismatch As=Bs",
  ],
  "B nested in A, who has 2 of 3": [
    "replayed A2/3=B2/3 | lease-reused A2/3=B2/3 | renewed +A2/3=B2/3 | released +B2/3 | locked A2/3=B2/3",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | checked A2/3=B2/3 | breaking +A2/3!=B2/3! | broken +",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | granted +A2/3=B2/3=C2/3 | limit-mismatch A2/3=B2/3",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | granted +A2/3=B2/3 E1/3 | locked A2/3=B2/3 | limit-mismatch A2/3=B2/3",
  ],
};

describe("in every state of every kind", () => {
  it("there is a row for each", () => {
    expect(Object.keys(CELLS)).toEqual(STATES.map(({ state }) => state));
  });

  describe.each(STATES)("$state", (state) => {
    it.each(Object.entries(LINES).map(([who, columns], line) => ({ who, columns, line })))("$who", ({ columns, line }) => {
      expect(play(state, columns)).toBe(CELLS[state.state]?.[line]);
    });

    it("a lease that never held is told so, and changes nobody", () => {
      const key = new Key();
      for (const step of state.steps) step(key);
      const { holds } = key;
      const never = { ok: false, code: "lease-lost", reason: "never" };
      expect([key.renew("E"), key.transfer("E", "D"), key.change("E", "exclusive"), key.check("E")]).toMatchObject([
        never,
        never,
        never,
        never,
      ]);
      expect(key.release("E")).toEqual({ ok: true, state: "never" });
      expect(key.holds).toBe(holds);
      expect(key.acquire("E", permits(1))).toMatchObject({ code: "lease-over" });
    });
  });
});

describe("what is told of a lease", () => {
  it("is how many levels its scope has, by their ids: repeats don't count", () => {
    const key = new Key();
    const scope = { scope: "scope S" };
    key.acquire("A", scope);
    for (let times = 0; times < 5; times++) key.acquire("B", scope);
    expect([key.lease("A").holdCount, key.lease("B").holdCount]).toEqual([2, 2]);
    expect(key.acquire("C", { ...scope, leaseMs: 1_000 })).toMatchObject({ lease: { holdCount: 3 } });
    // A hung level lasts as long as it was granted for, whatever becomes of the others.
    key.at(1_000).renew("A", 60_000);
    expect(key.check("C")).toMatchObject({ code: "lease-lost", reason: "expired" });
    expect(key.lease("A").holdCount).toBe(2);
    key.release("B");
    expect([key.lease("A").holdCount, key.holds]).toEqual([1, "Ax=Cx†"]);
  });

  it("is free when the last level is gone, whichever that is", () => {
    for (const order of ["ABC", "CBA", "BCA"]) {
      const key = new Key();
      for (const level of "ABC") key.acquire(level, { scope: "scope S" });
      for (const level of order) {
        expect(key.acquire("E", { params: level })).toMatchObject({ code: "locked" });
        expect(key.release(level)).toMatchObject({ state: "released" });
      }
      expect(key.acquire("F")).toMatchObject({ how: "granted" });
    }
  });

  it("is the floor that a resource compares, to readers and who has permits, never to a writer", () => {
    const key = new Key();
    key.acquire("A");
    expect(key.lease("A")).not.toHaveProperty("fenceFloor");
    const floor = key.tokenOf("A");
    key.release("A");
    key.at(5).acquire("B", READER);
    key.acquire("C", READER);
    expect([key.lease("B").fenceFloor, key.lease("C").fenceFloor]).toEqual([floor, floor]);
    key.release("B");
    key.release("C");
    key.at(6).acquire("D", permits(2));
    expect(key.lease("D").fenceFloor).toBe(floor);
    key.release("D");
    key.at(7).acquire("E");
    expect(key.record?.fenceFloor).toBe(key.tokenOf("E"));
  });

  it("is as many leases as a key takes, and not one more", () => {
    const key = new Key();
    for (let order = 1; order <= 150; order++) key.acquire(String.fromCharCode(64 + order), READER);
    const next = String.fromCharCode(64 + 151);
    expect(key.acquire(next, READER)).toMatchObject({ code: "locked" });
    key.release("A");
    expect(key.acquire(next, READER)).toMatchObject({ how: "granted" });
    expect(Object.keys(key.record?.holds ?? {})).toHaveLength(150);
    expect(key.record?.holds).not.toHaveProperty(ID("A"));
  });
});
