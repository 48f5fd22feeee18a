/**
 * The fast path in every state, on the simulation's table: a write whose condition holds leaves exactly the record that the core would, and
 * any other leaves the item as it was. Beside that, the common cases must have a fast path, and take it.
 */
import { describe, expect, it } from "vitest";
import type { Kind } from "../../lib/core/api/locks.js";
import type { Command } from "../../lib/core/commands.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import type { LockRecord, Run } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { systemClock } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import { isConditionFailed } from "../../lib/store/dynamo/calls.js";
import { fastPath } from "../../lib/store/dynamo/fast-path.js";
import { fromItem, itemKey, toItem } from "../../lib/store/dynamo/item.js";
import type { RecentRecord } from "../../lib/store/dynamo/recent-records.js";
import { NOTHING_SEEN, RecentRecords } from "../../lib/store/dynamo/recent-records.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { ALL_STATES, COLUMNS, decisionsIn } from "../core/decisions.js";
import { at, complete, DAY_MS, hold, LEASE_MS as RUN_LEASE_MS, ME, NOW_MS, OTHER, over, record, run, start } from "../core/run-parts.js";
import { DynamoTable } from "../simulation/dynamo/table.js";
import { leaseId, POLICY } from "./fixture.js";

/** One command on the record of a key. */
interface Asked {
  readonly kind: Kind;
  readonly before: LockRecord | undefined;
  readonly command: Command;
  readonly reading: ClockReading;
  /** The key as the process saw it lately. */
  readonly seen: "nothing" | "the record";
}

/** Sends the fast path of the command. Returns what became of it. @throws an assertion if it left anything but the core's record. */
function take({ kind, before, command, reading, seen }: Asked): "none" | "refused" | "written" {
  const address = { namespace: "n", kind, key: "k" };
  const fast = fastPath(kind, command, reading, POLICY, seen === "nothing" ? NOTHING_SEEN : recentOf(address, before));
  if (!fast) return "none";
  const table = new DynamoTable({ tableName: "t", ...TABLE }, () => reading.latestMs);
  const Key = itemKey(address);
  const put = before && { ...Key, ...toItem(before) };
  if (put) table.put({ TableName: "t", Item: put });
  const stored = (): LockRecord | undefined => {
    const { Item } = table.get({ TableName: "t", Key });
    return Item && fromItem(Item);
  };
  const was = stored();
  try {
    table.update({
      TableName: "t",
      Key,
      ConditionExpression: fast.condition,
      UpdateExpression: fast.update,
      ExpressionAttributeValues: fast.values,
      ...(Object.keys(fast.names).length > 0 && { ExpressionAttributeNames: fast.names }),
    });
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    expect(stored()).toEqual(was);
    return "refused";
  }
  const told = JSON.stringify(command);
  const core = transition(was, command, reading, POLICY);
  // A waiter that is appended leaves it to its first poll to look for leases that ran out.
  const wanted = fast.outcome && was ? fast.outcome(was) : core;
  expect(stored(), told).toEqual(wanted.next);
  const { behind: _appended, ...appending } = core;
  if (core.behind) expect(wanted, told).toEqual(appending);
  return "written";
}

function recentOf(address: Parameters<RecentRecords["of"]>[0], before: LockRecord | undefined): RecentRecord {
  const recent = new RecentRecords(systemClock);
  recent.note(address, before);
  return recent.of(address);
}

const SEEN = ["nothing", "the record"] as const;

describe("a fast path on a lock", () => {
  it.each(ALL_STATES)("leaves what the core would, or nothing: $state", (state) => {
    for (const { command, before, reading } of decisionsIn(state, COLUMNS))
      for (const seen of SEEN) take({ kind: "locks", command, before, reading, seen });
  });

  it.each<[seen: Asked["seen"], state: string, commands: readonly string[]]>([
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
      expect(take({ kind: "locks", command: sent, before: lately, reading, seen }), command).toBe("written");
    }
  });

  it("appends a waiter where the key was seen in use, and none that has a scope, priority or a long name", () => {
    const state = ALL_STATES.find((each) => each.state === "A exclusive")!;
    const waits = COLUMNS.findLast(([column]) => column === "E exclusive")!;
    const { before, command, reading } = decisionsIn(state, [waits]).at(-1)!;
    const kept = { ...before!, ttlAtSec: Math.ceil((reading.latestMs + POLICY.retentionMs) / 1000) };
    const asked = (parts: object, seen: Asked["seen"] = "the record") =>
      take({ kind: "locks", before: kept, reading, seen, command: { ...command, ...parts } });
    expect(asked({})).toBe("written");
    expect(asked({}, "nothing")).toBe("refused");
    // Each of these may come before others, or make the queue too large: it takes the path of a grant, in vain.
    for (const parts of [{ scope: "s" }, { priority: 1 }, { mode: "shared" }, { limit: 2 }, { owner: "o".repeat(200) }])
      expect(asked(parts), JSON.stringify(parts)).toBe("refused");
    // An id whose time is out of bounds can't become a lease.
    expect(asked({ leaseId: leaseId(9, -16 * 60_000) })).toBe("none");
  });

  it("is none for a renewal with new meta, for clocks that are far apart, and for what operators do", () => {
    const state = ALL_STATES.find((each) => each.state === "A exclusive")!;
    const sent = (name: string) => decisionsIn(state, [COLUMNS.find(([column]) => column === name)!]).at(-1)!;
    const renews = sent("renew A");
    const path = ({ before, command, reading }: typeof renews, apartMs = 0) =>
      take({ kind: "locks", before, command, seen: "nothing", reading: { ...reading, latestMs: reading.earliestMs + apartMs } });
    expect(path({ ...renews, command: { ...renews.command, meta: {} } as Command })).toBe("none");
    expect(path(sent("release A"), DEFAULTS.clockGuardMs + 1)).toBe("none");
    for (const name of ["transfer A to D", "A to shared", "break A"]) expect(path(sent(name)), name).toBe("none");
  });
});

describe("a fast path on a run", () => {
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
      outcome: { recordedBy: OTHER, principal: "someone" },
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
      const outcome = take({ kind: "runs", command, before: RECORDS[name], reading: at(1, 1), seen: "nothing" });
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
