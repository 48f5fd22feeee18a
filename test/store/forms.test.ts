/**
 * The common writes of forms, on the simulation's table. Each must be there, be taken, and leave exactly the record that the core
 * would; and so on a key that has changed in one thing since the process saw it, or be refused.
 */
import { describe, expect, it } from "vitest";
import type { Command, Decision, Touch } from "../../lib/core/commands.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import type { LockRecord, Run } from "../../lib/core/record.js";
import { transition } from "../../lib/core/transition.js";
import { type Item, TOMBSTONE } from "../../lib/store/dynamo/layout.js";
import { FORMAT_VERSION, fromItem, storedIn, toItem, TOMBSTONES } from "../../lib/store/dynamo/item.js";
import type { AttemptOf } from "../../lib/store/dynamo/predicates.js";
import { touchWaiter } from "../../lib/store/dynamo/touch-waiter.js";
import { ALL_STATES, COLUMNS, decisionsIn } from "../core/decisions.js";
import { IN_S, permits } from "../core/kinds-key.js";
import { QueueKey } from "../core/queue-key.js";
import { at, complete, DAY_MS, hold, LEASE_MS as RUN_LEASE_MS, ME, NOW_MS, OTHER, over, record, run, start } from "../core/run-parts.js";
import { LEFT, wholly } from "../../lib/store/dynamo/lists.js";
import { LISTED_MAX } from "../../lib/store/dynamo/crowd-item.js";
import {
  asks,
  COMMON,
  decidedPathOf,
  differencesFor,
  ends,
  expectTold,
  grants,
  later,
  leftAt,
  listed,
  lock,
  pathOf,
  releases,
  take,
  written,
} from "./form-cases.js";
import { leaseId, POLICY } from "./fixture.js";

describe("a common write", () => {
  const names = Object.keys(COMMON);
  it.each(names)("leaves what the core would, or is refused: %s", (name) => {
    const asked = COMMON[name]!;
    const taken = differencesFor(asked).filter(({ item }) => take(asked, pathOf(asked), item) === "written");
    const wanted = TAKEN.filter(([writes]) => writes[names.indexOf(name)] !== ".");
    expect(taken.map(({ name: difference }) => difference)).toEqual(wanted.map(([, difference]) => difference));
  });
});

describe("a write that commutes", () => {
  it.each([
    ...["append", "append behind permits", "join of a reader", "join of permits", "renewal of permits"],
    ...["release of permits", "release of one of many readers", "claim of a reader", "cancel", "cancel behind permits"],
    ...["join behind those who wait", "claim from the only place", "claim from a place behind"],
  ])("is there once the core has decided on the record: %s", (name) => {
    const path = decidedPathOf(COMMON[name]!);
    expect(path).toBeDefined();
    expect(take(COMMON[name]!, path)).toBe("written");
  });

  it("is none by which one who sleeps leaves the queue; control: one who polls", () => {
    const left = (...options: Parameters<typeof asks>): unknown => {
      const asked = lock("the record", grants("B"), asks(...options), later(), releases("A"));
      return [take(asked), transition(asked.before, asked.command, asked.reading, POLICY).commutes];
    };
    expect(left("A", { sleepMs: 60_000 })).toEqual(["none", undefined]);
    expect(left("A")).toEqual(["written", true]);
  });

  it("ends no hold for who would end a wait alone", () => {
    const asked = COMMON["release"]!;
    const onlyWaiting = { ...asked, command: { ...asked.command, onlyWaiting: true } as Command };
    expect(decidedPathOf(asked, 2)?.update).toContain("rl = list_append");
    expect(decidedPathOf(onlyWaiting, 2)).toBeUndefined();
    expect(pathOf(onlyWaiting)).toBeUndefined();
  });

  it("is told as it was written, though the core reads a higher low watermark where leases are listed as ended", () => {
    const asked = COMMON["grant of a used key"]!;
    const above = TOMBSTONE.toItem({ leaseId: leaseId(90), ending: "released" });
    const item = { ...toItem(asked.before!), ...Object.fromEntries(TOMBSTONES.map((name) => [name, above])), ...listed(1) };
    expect(transition(fromItem(item), asked.command, asked.reading, POLICY).answer).toMatchObject({ code: "lease-over" });
    const path = pathOf(asked)!;
    expectTold(asked, path, item, written("locks", item, path, asked.reading)!);
  });

  it("appends a waiter to a key that was not seen", () => {
    const asked = COMMON["append"]!;
    const path = decidedPathOf(asked);
    expect(path).toBeDefined();
    expect(take(asked, path)).toBe("written");
    // Each of these may belong before others, or changes the record's format.
    for (const parts of [{ scope: "s" }, { priority: 1 }, { sleepMs: 60_000 }, { owner: "€".repeat(200) }])
      expect(decidedPathOf({ ...asked, command: { ...asked.command, ...parts } }), JSON.stringify(parts)).toBeUndefined();
  });
});

describe("a write on a queue with places that were left", () => {
  /** The caller's write on an item of this queue, as the process saw it. A point is a place that was left, `A` is the caller. */
  const queued = (letters: string, name: "cancel" | "claim from a place behind") => {
    const asked = COMMON[name]!;
    const own = asked.before!.waiters.find(({ leaseId: id }) => id === leaseId(1))!;
    const waiters = Array.from(letters.replaceAll(".", ""), (letter, order) =>
      letter === "A" ? own : { ...own, leaseId: leaseId(40 + order), permits: 1 },
    );
    const item = Array.from(letters).reduce(
      (left, letter, place) => (letter === "." ? leftAt(left, place) : left),
      toItem({ ...asked.before!, waiters }),
    );
    const path = pathOf({ ...asked, seen: storedIn(item) });
    return { outcome: take(asked, path, item), left: written("locks", item, path!, asked.reading)?.["qi"] as readonly string[] };
  };
  const marks = (qi: readonly string[]): string => qi.map((id) => (id === LEFT ? "." : "w")).join("");

  it.each([
    ["cancel", "..AC", "...w"],
    ["cancel", "C.A.", "w..."],
    ["claim from a place behind", "A", ""],
    ["claim from a place behind", "AC", ".w"],
    ["claim from a place behind", "..AC", "...w"],
    ["claim from a place behind", "...AC", "w"],
    ["claim from a place behind", ".A..C", "w"],
    ["claim from a place behind", ".A.", ""],
    ["claim from a place behind", "C...A", "w...."],
    ["claim from a place behind", "...CA", "...w."],
  ] as const)("a %s leaves of %s: %s", (name, letters, wanted) => {
    const { outcome, left } = queued(letters, name);
    expect([outcome, marks(left)]).toEqual(["written", wanted]);
  });
});

describe("a lease that joins where many ended and are listed", () => {
  const asked = COMMON["join of permits"]!;
  const many = { ...toItem(asked.before!), ...listed(LISTED_MAX) };
  const path = pathOf({ ...asked, seen: storedIn(many) })!;

  it("makes tombstones of them, and leaves those that ended since to the next", () => {
    expect(take(asked, path, many)).toBe("written");
    const more = { ...many, ...listed(LISTED_MAX + 1) };
    expect(take(asked, path, more)).toBe("written");
    expect(written("locks", more, path, asked.reading)!["rl"]).toHaveLength(1);
  });

  it("does so from that many on", () => {
    const fewer = { ...many, ...listed(LISTED_MAX - 1) };
    const item = written("locks", fewer, pathOf({ ...asked, seen: storedIn(fewer) })!, asked.reading);
    expect(item!["rl"]).toHaveLength(LISTED_MAX - 1);
  });

  it("is refused once somebody else made tombstones of them", () => {
    expect(take(asked, path, { ...many, rl: (many["rl"] as readonly string[]).slice(1) })).toBe("refused");
    expect(take(asked, path, { ...many, rl: [] })).toBe("refused");
  });
});

describe("a form on a lock", () => {
  it("is none for who was seen to wait behind others", () => {
    expect(pathOf(lock("the record", grants("B"), asks("C"), asks("E"), later(), asks("E")))).toBeUndefined();
  });

  it("claims the offer of who was seen to be the first that waits, however many wait behind it", () => {
    const waits = Array.from("ECDFGHIJ", (letter) => asks(letter));
    const { seen } = lock("the record", grants("B"), ...waits, later(), asks("E"));
    expect(take({ ...lock("the record", grants("B"), ...waits, releases("B"), later(), asks("E")), seen })).toBe("written");
  });

  it("lets a lease of a scope leave others, as lower ids ended", () => {
    const scoped = { ...permits(1), ...IN_S };
    const leaves = lock("the record", ends("VGHIJKLMW"), grants("Y", scoped), grants("X", permits(1)), later(), releases("Y"));
    expect(take(leaves)).toBe("written");
  });

  it.each<[seen: "nothing" | "the record", state: string, commands: readonly string[]]>([
    ["nothing", "free", ["acquire A", "E exclusive", "E shared", "E 2 of 3"]],
    ["nothing", "free, used as a semaphore before", ["E exclusive", "E shared", "E 1 of 3"]],
    ["nothing", "A exclusive", ["renew A", "renew A for more", "release A"]],
    ["the record", "A exclusive", ["renew A", "release A"]],
    ["nothing", "A shared", ["renew A", "release A"]],
    ["nothing", "A has 1 of 3", ["renew A", "release A"]],
    ["the record", "A shared beside B", ["renew A", "release A"]],
    ["the record", "A has 1 of 3, B has 1", ["renew A", "release A"]],
    ["the record", "B nested in A exclusive", ["renew A", "release A"]],
    ["nothing", "A exclusive, B waits", ["renew A", "release A"]],
    ["the record", "A exclusive, B waits", ["renew A", "release A"]],
    ["the record", "A's turn to write", ["acquire A"]],
    ["the record", "A's turn to write, B waits", ["acquire A"]],
  ])("is taken by a process that saw %s, in the state: %s", (seen, name, commands) => {
    const state = ALL_STATES.find((each) => each.state === name)!;
    for (const command of commands) {
      const columns = COLUMNS.filter(([column]) => column === command).slice(0, 1);
      const { before, command: sent, reading } = decisionsIn(state, columns).at(-1)!;
      // As long as a record of this kind is kept in fact, so that no write has to raise it.
      const kept = before && { ...before, ttlAtSec: Math.ceil((reading.latestMs + POLICY.retentionMs) / 1000) };
      const lately = command.startsWith("release") ? kept : before;
      expect(
        take({ kind: "locks", command: sent, before: lately, reading, seen: seen === "nothing" || !lately ? undefined : wholly(lately) }),
        command,
      ).toBe("written");
    }
  });

  it("appends a waiter where the key was seen in use, and none that has a scope, priority or a long name", () => {
    const state = ALL_STATES.find((each) => each.state === "A exclusive")!;
    const waits = COLUMNS.findLast(([column]) => column === "E exclusive")!;
    const { before, command, reading } = decisionsIn(state, [waits]).at(-1)!;
    const kept = { ...before!, ttlAtSec: Math.ceil((reading.latestMs + POLICY.retentionMs) / 1000) };
    const asked = (parts: object) => take({ kind: "locks", before: kept, reading, seen: wholly(kept), command: { ...command, ...parts } });
    expect(asked({})).toBe("written");
    expect(take({ kind: "locks", before: kept, reading, command })).toBe("refused");
    // Each of these may come before others, or make the queue too large: the record decides. So it does of who would be refused.
    for (const parts of [{ scope: "s" }, { priority: 1 }, { owner: "€".repeat(200) }, { limit: 2 }, { wait: false }])
      expect(asked(parts), JSON.stringify(parts)).toBe("none");
    // A waiter that sleeps changes the record's format, and an id whose time is out of bounds can't become a lease.
    expect(asked({ sleepMs: 60_000 })).toBe("none");
    expect(asked({ leaseId: leaseId(9, -16 * 60_000) })).toBe("none");
  });

  it("is none for a renewal with new meta, for clocks that are far apart, and for what operators do", () => {
    const state = ALL_STATES.find((each) => each.state === "A exclusive")!;
    const sent = (name: string) => decisionsIn(state, [COLUMNS.find(([column]) => column === name)!]).at(-1)!;
    const renews = sent("renew A");
    const path = ({ before, command, reading }: typeof renews, apartMs = 0) =>
      take({ kind: "locks", before, command, reading: { ...reading, latestMs: reading.earliestMs + apartMs } });
    expect(path({ ...renews, command: { ...renews.command, meta: {} } as Command })).toBe("none");
    expect(path(sent("release A"), DEFAULTS.clockGuardMs + 1)).toBe("none");
    for (const name of ["transfer A to D", "A to shared", "break A"]) expect(path(sent(name)), name).toBe("none");
  });
});

describe("a keep-alive", () => {
  /** A key with F and G in the queue and B and D in the wait set. The second of each asks again when half of its time is over. */
  const waited = (letter: "D" | "G"): { readonly key: QueueKey; readonly before: LockRecord; readonly touch: Touch } => {
    const key = new QueueKey();
    for (const [held = "", waits = ""] of ["AB", "CD"]) {
      key.acquire(held);
      key.wait(held, waits);
    }
    key.acquire("E");
    for (const each of "FG") key.ask(each);
    const before = key.record!;
    key.at(DEFAULTS.waiterTtlMs / 2).ask(letter);
    return { key, before, touch: key.decision!.touch! };
  };
  const after = (before: Item, touch: Touch, seen = fromItem({ ...before, fv: FORMAT_VERSION })): LockRecord | undefined => {
    const item = written("locks", before, touchWaiter({ decision: { touch } as Decision, seen: wholly(seen) } as AttemptOf), at(1, 1));
    return item && fromItem(item);
  };

  it.each(["D", "G"] as const)("leaves what the core would, at the same version, and is refused once it is written: %s", (letter) => {
    const { key, before, touch } = waited(letter);
    expect(after(toItem(before), touch)).toEqual({ ...key.record, touches: 1 });
    expect(after(toItem(key.record!), touch)).toBeUndefined();
    expect(after({ ...toItem(before), fv: FORMAT_VERSION + 1 }, touch)).toBeUndefined();
  });

  it("is refused if the waiter has left, or another has its place", () => {
    const [queued, member] = [waited("G"), waited("D")];
    const left = { ...queued.before, waiters: queued.before.waiters.slice(0, 1) };
    expect(after(toItem(left), queued.touch, queued.before)).toBeUndefined();
    expect(after(toItem({ ...left, waiters: queued.before.waiters.toReversed() }), queued.touch, queued.before)).toBeUndefined();
    const gone = { ...member.before, waitSet: member.before.waitSet!.slice(0, 1) };
    expect(after(toItem(gone), member.touch, member.before)).toBeUndefined();
  });
});

describe("a form on a run", () => {
  const checkpoint = { digest: "c", bytes: 1, text: "1" };
  const large = { digest: "l", bytes: 5_000, ttlAtSec: 99 };
  const unstored = { digest: "u", bytes: 5_000 };
  const renew = { type: "renew", key: "k", leaseId: ME, principal: "me" } as const;
  const running = (parts: Partial<Run> = {}): LockRecord =>
    record({ holds: { [ME]: hold() }, run: run(parts), ttlAtSec: Math.ceil((NOW_MS + 9 * DAY_MS) / 1000) });

  const RECORDS: Readonly<Record<string, LockRecord | undefined>> = {
    unused: undefined,
    "never run": record({ tombstones: [{ leaseId: OTHER, ending: "cancelled" }], fencingToken: NOW_MS - 7 }),
    running: running(),
    "a later attempt": running({
      attempt: 2,
      takeover: true,
      checkpoint: { ...checkpoint, sequence: 5 },
      outcome: { recordedBy: OTHER, principal: "someone", owner: "", startedAtMs: 1, endedAtMs: 2 },
    }),
    "run by another": record({ holds: { [OTHER]: hold({ principal: "someone" }) }, run: run() }),
    "to be retried": record({ run: run({ state: "retry", checkpoint }) }),
    over: record({ run: over() }),
    "held for days": record({ holds: { [ME]: hold({ grantedAtMs: NOW_MS - 2 * DAY_MS }) }, run: run(), ttlAtSec: 1 }),
  };
  const COMMANDS: Readonly<Record<string, Command>> = {
    start: start(),
    "renew for the default": renew,
    renew: { ...renew, leaseMs: RUN_LEASE_MS },
    "renew with a checkpoint": { ...renew, leaseMs: RUN_LEASE_MS, checkpoint },
    "renew with a large checkpoint": { ...renew, leaseMs: RUN_LEASE_MS, checkpoint: large },
    "renew with a numbered checkpoint": { ...renew, leaseMs: RUN_LEASE_MS, checkpoint: { ...checkpoint, sequence: 6 } },
    "renew with a late checkpoint": { ...renew, leaseMs: RUN_LEASE_MS, checkpoint: { ...checkpoint, sequence: 4 } },
    "renew with a checkpoint that is not stored": { ...renew, checkpoint: unstored },
    "renew with a prolonged checkpoint": { ...renew, prolonged: { digest: "c", ttlAtSec: 5 } },
    "renew with meta": { ...renew, meta: {} },
    release: { ...renew, type: "release" },
    succeed: complete("succeeded"),
    "succeed with a result": complete("succeeded", { payload: { ...checkpoint, digest: "r" } }),
    "succeed with a large result": complete("succeeded", { payload: large }),
    "succeed with a result that is not stored": complete("succeeded", { payload: unstored }),
    "succeed with a result left out": complete("succeeded", { omitted: true }),
    fail: complete("failed", { payload: { ...checkpoint, digest: "e" } }),
    "fail for now": complete("retry"),
    "fail for now, and say why": complete("retry", { payload: { ...checkpoint, digest: "e" } }),
    reset: { type: "reset", key: "k" },
  };

  const ALWAYS_NONE = [
    "renew with a checkpoint that is not stored",
    "renew with a prolonged checkpoint",
    "renew with meta",
    "release",
    "succeed with a result that is not stored",
    "reset",
  ];
  const ENDS = Object.keys(COMMANDS).filter((name) => /^succeed|^fail/.test(name) && !ALWAYS_NONE.includes(name));
  const RENEWS = Object.keys(COMMANDS).filter((name) => name.startsWith("renew") && !ALWAYS_NONE.includes(name));
  const WRITTEN: Readonly<Record<string, readonly string[]>> = {
    unused: ["start"],
    "never run": ["start"],
    running: [...RENEWS, ...ENDS],
    "a later attempt": [...RENEWS.filter((name) => name !== "renew with a late checkpoint"), ...ENDS],
  };

  it.each(Object.keys(RECORDS))("leaves what the core would, or nothing, and is taken where it may be: %s", (name) => {
    const came = Object.entries(COMMANDS).map(([asked, command]) => {
      const outcome = take({ kind: "runs", command, before: RECORDS[name], reading: at(1, 1) });
      return [asked, outcome];
    });
    expect(Object.fromEntries(came)).toEqual(
      Object.fromEntries(
        Object.keys(COMMANDS).map((asked) => [
          asked,
          ALWAYS_NONE.includes(asked) ? "none" : WRITTEN[name]?.includes(asked) ? "written" : "refused",
        ]),
      ),
    );
  });
});

/**
 * The differences with which each common write is still taken. A letter is a write, in the order of {@link COMMON}; a point is one that is
 * refused, and decided after a read.
 */
const TAKEN = `
abcde.......................C......................... nothing is stored
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 as it was seen
...............pqrstuvwxyzAB.DEFGHIJKLMN.............. this id holds
.......h.............................................. this id has an offer
.......h.......pqrstuv.xyzAB.DEFG.....MNOPQRS.UVWX.Z0. this id waits
...............pqrstuvw...AB.DEFGHIJKL.N...R.......... this id waits for a condition
abcde..h.......pqrstuvwxyzABCDEFGHIJKLMN...R.........1 the others have left
.....f.h.......pqrstuv.......DEFG..................... the others have left, and another waits
abcde.......................C..............R.........1 nobody holds
.....f................................................ nobody holds, and one waits
.....fg.ijklmno............................RSTUVWXYZ01 another holds
.....fg.ijklmnopqrst...xyzAB.DEFGHIJKLMNOPQRSTUVWXYZ01 another holds too
.....f.....................................R.........1 another alone has an offer
.....fgh.......pqrstuv.xyzAB.DEFG.....MNOPQRS.UVWX.Z01 another waits
.....fgh.......pqrst...xyzAB.DEFG.....MNOPQ........... another waits to read
a..d.f.h.......pqrstuvw...ABCDEFGHIJKL.N...R.........1 another waits for a condition
.....fgh...............xyzABCDEFGHIJKLMNOPQ........... the first who waits was not seen in time
.....fgh.......pqrstuv.xyzAB.DEFG.....MNOPQ........... the first who waits was just seen in time
.......h.......pqrst...xyzAB.DEFG.....MNOPQ..........1 another waits asleep
.....fgh.......pqrstuv.xyzAB.DEFG.....MNOPQ........... another waits, and was seen after the clocks were read
.....fgh.......pqrstuv.xyzAB.DEFG.....MNOPQ..........1 as many wait as may, but one
.......h.......pqrstuv.xyzAB.DEFG.....MNOPQ........... as many wait as may
.......h.......pqrstuv.xyzAB.DEFG.....MNOPQ........... those who wait take all bytes of a queue
.......h.......pqrstuv.xyzAB.DEFG.....MNOPQ........... one who waits has a long name
......g.ij.l.nopqrst...xyzAB.DEFGHIJKLMNOPQRS....X.Z0. as many hold as may, but one
......g........pqrst...xyzAB.DEFGHIJKLMNOPQRS......... as many hold as may
abc.efghijklmnopqrs.uv.....BCDEFGHIJKLMNOPQRSTUVWXYZ01 another has 2 permits
abc.efghij.l.nopqrs.uv.....BCDEFGHIJKLMNOPQRSTUVWXYZ01 another has 3 permits
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the others have as many permits as leave room for this one, and 0
abcdefghij....opqrstuvwxyzABCDEFGHIJKLMNOPQRS....X...1 the others have as many permits as leave room for this one, and 1
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 two holds were measured
abcde..h.......pqrstu.wxyzABCDEFGHIJKLMNOPQRS......... another limit
.....f..ij....o.........................O..RS....X...1 readers hold it
abcdefgh.......pqrstuvwxyzABCDEFGHIJKLMNOPQRS........1 a reader waits to write
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 a reader waited to write
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the record is as large as it may be with this one
abcdef.h.......pqrstuvwxyzABCDEFGHIJKLMN...RS........1 the record is too large for this one
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 readers hold it, and a full queue just fits
abcde.ghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0. readers hold it, and a full queue doesn't fit
.......h.......pqrstuvwxy.AB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 0 others since
.......h.......pqrstuvwxy.AB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 1 others since
.......h.......pqrstuvwxy.AB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 2 others since
.......h.......pqrstuvwxy.AB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 3 others since
.......h.......pqrstuvwxy.AB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 4 others since
.......h.......pqrstuvwxy.AB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 5 others since
.......h.......pqrstuvwxy.AB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 6 others since
.......h.......pqrstuvwx.zAB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and 7 others since
abcdefghijklmnopqrst.....z..CDEFG.....MNOPQRSTUVWXYZ01 the low watermark is below this id
.......h.......pqrst....y....DEFG.....MNOPQRS.UVWX.Z0. the low watermark is this id
.......h.......pqrst....y...CDEFG.....MNOPQRS.UVWX.Z0. the low watermark is above this id
.......h.......pqrst....y...CDEFG.....MNOPQRS.UVWX.Z0. a lower id than the low watermark drops out
.......h.......pqrstuvwxyzABCDEFGHIJKLMNOPQRS.UVWX.Z0. the low watermark itself drops out
.......h.......pqrstuvwx.zABCDEFGHIJKLMNOPQRS.UVWX.Z0. a higher id than the low watermark drops out
abcdefghijklmnopqrstuvwx.zABCDEFGHIJKLMNOPQRSTUVWXYZ01 the highest id that may drops out
.......h.......pqrst....y....DEFG.....MNOPQRS.UVWX.Z0. the highest id that may drops out, below the low watermark
abcdefghijklmnopqrst........CDEFG.....MNOPQRSTUVWXYZ01 an id that is ahead drops out
.......h.......pqrst.........DEFG.....MNOPQRS.UVWX.Z0. an id that is ahead drops out, below a low watermark ahead
abcdefghijklmno.............C...........OPQRSTUVWXYZ01 another's lease
abcdefghijklmno.............C...........OPQRSTUVWXYZ01 the lease ran out
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the lease just lasts
abcdefghijklmno.............C...........OPQRSTUVWXYZ01 the lease is being broken
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the lease ends with its renewal
abcdefghijklmno.....uvwxyzABC....HIJKLMNOPQRSTUVWXYZ01 the lease ends later than its renewal
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the lease has the margin of its renewal
abcdefghijklmno.....uvwxyzABC....HIJKLMNOPQRSTUVWXYZ01 the lease has a greater margin
abcdefghijklmnopqrstuvwxyzABCD..GHIJKLMNOPQRSTUVWXYZ01 the lease has another length
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the lease has meta
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the lease began as long ago as an outcome is kept
abcdefghijklmnopqrstuvwxyzABCDEFG.....MNOPQRSTUVWXYZ01 the lease began longer ago
abcdefghijkl...pqrstuvwxyzABCDEFGHIJKLMNO.QRSTUVWXYZ01 the token is the clock's, and -1
abcdefgh....mnopqrstuvwxyzABCDEFGHIJKLMN.P.RS........1 the token is a minute old, and -1
abcde..hijklmnopqrst........C....HIJKL..OPQ..TUVWXYZ0. garbage collection is as late as it must be, and -1 s
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the checkpoint has this number, and -1
.....fg.ijkl...pqrstuvwxyzAB.DEFGHIJKLMNO.QRSTUVWXYZ01 the token is the clock's, and 0
abcdefghijkl...pqrstuvwxyzABCDEFGHIJKLMNO.QRSTUVWXYZ01 the token is a minute old, and 0
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 garbage collection is as late as it must be, and 0 s
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the checkpoint has this number, and 0
.....fg.ijkl...pqrstuvwxyzAB.DEFGHIJKLMNO.QRSTUVWXYZ01 the token is the clock's, and 1
abcdefghijkl...pqrstuvwxyzABCDEFGHIJKLMNO.QRSTUVWXYZ01 the token is a minute old, and 1
abcdefg.............uvwxyzABCDEFGHIJKLMN...RS........1 garbage collection is as late as it must be, and 1 s
abcdefghijklmnopqrstuvwxyzABCDEF.HIJKLMNOPQRSTUVWXYZ01 the checkpoint has this number, and 1
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 the checkpoint has no number
abcdefghijklmnopqrstuvwxyzAB.DEFGHIJKLMNOPQRSTUVWXYZ01 a run is stored
abcdefg.ijklmnopqrstuvwxyzABCDEFGHIJKLMN...RSTUVWXYZ01 an offer asks for something else
abcdefg.ijklmnopqrstuvwxyzABCDEFGHIJKLMN...RSTUVWXYZ01 the offer was claimed by one who is called as the digest of its principal
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ..T....Y..1 the place is another's
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST....Y..1 the place asks for something else
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ..T....Y..1 the place came by a notify
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ.S......... another stands in the first place
abcdefg.ijklmnopqrstuvwxyzABCDEFGHIJKLMN...RSTUVWXYZ01 another's offer
.......h.......pqrstuvwxyzAB.DEFGHIJKLMNOPQRS.UVWX.Z0. this id ended, and is listed
abcdefghijklmnopqrst........CDEFG.....MNOPQRSTUVWXYZ01 one ended and is listed
.....fgh.......pqrst...xyzAB.DEFG.....MNOPQ..........1 a place was left before all others
.....fgh.......pqrst.v.xyzAB.DEFG.....MNOPQRS.UVWX.Z01 a place was left behind all others
abcdefghijklmnopqrstu.wxyzABCDEFGHIJKLMNOPQ.ST..W.Y.01 the first who waits has left its place
abcdefghijklmnopqrst........CDEFG.....MNOPQRSTUVWXYZ01 many ended and are listed
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 those who were listed are tombstones
...................................................... an older version wrote it
...................................................... it has no format number
...................................................... a newer version wrote it
abcdef.h.......p.r..uv.....BCDEFGHIJKL.....RS........1 all who held left beside the offers
abcdef.h.......pqrstuvw...ABCDEFGHIJKL.N...R.........1 a former version wrote it, and counts no sums
abcdef.h.......pqrstuvwxyzABCDEFGHIJKLMN...RS........1 a former version changed it, and left the sums
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 a crowd left its sums
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 it never had eight tombstones
abcde..hijklmnopqrst.v.xyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 it never had a queue
abcdefgh.......pqrstuvwxyzABCDEFGHIJKLMN...RS........1 it has no f
abcdefghijklmnopqrstuvwx.zABCDEFGHIJKLMNOPQRSTUVWXYZ01 it has no fl
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01 it has no ff
`
  .trim()
  .split("\n")
  .map((row) => [row.slice(0, row.indexOf(" ")), row.slice(row.indexOf(" ") + 1)] as const);
