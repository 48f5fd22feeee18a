/** The first condition that an acquire meets decides: rows 1, 2, 3, 6 and 9 of lib/core/lock/acquire.ts's list against each other. The scope, the limit and the queue are in kinds.test.ts and queue.test.ts. */
import { describe, expect, it } from "vitest";
import type { Acquire } from "../../lib/core/commands.js";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import type { Hold, LockRecord } from "../../lib/core/record.js";
import { createPolicy } from "../../lib/core/policy.js";
import { transition } from "../../lib/core/transition.js";
import { leaseIdAt } from "../support/lease-ids.js";

const POLICY = createPolicy();
const NOW_MS = Date.UTC(2027, 0, 1);
const MINUTE = 60_000;
const READING = { earliestMs: NOW_MS, latestMs: NOW_MS };
const OTHER = leaseIdAt(NOW_MS - 5000);
const LAPSED = leaseIdAt(NOW_MS - 60_000);

function acquire(leaseId: string, over: Partial<Acquire> = {}): Acquire {
  return {
    type: "acquire",
    key: "k",
    leaseId,
    principal: "me",
    owner: "",
    leaseMs: 30_000,
    mode: "exclusive",
    limit: 1,
    permits: 1,
    priority: 0,
    requestHash: "p",
    ...over,
  };
}

function hold(over: Partial<Hold> = {}): Hold {
  return {
    principal: "me",
    owner: "",
    mode: "exclusive",
    permits: 1,
    fencingToken: 7,
    leaseMs: 30_000,
    grantedAtMs: NOW_MS - 1000,
    expiresAtMs: NOW_MS + 29_000,
    marginMs: 1061,
    requestHash: "p",
    ...over,
  };
}

function record(over: Partial<LockRecord> = {}): LockRecord {
  return { ...EMPTY_RECORD, version: 3, fencingToken: 7, ttlAtSec: 1, ...over };
}

interface Fact {
  readonly fact: string;
  readonly add: (to: LockRecord, me: string) => LockRecord;
  readonly answer: string;
}

/** An id in the record holds, in one way or another. Everything else known about the id is irrelevant. */
const ITS_HOLD: readonly Fact[] = [
  {
    fact: "holds for another principal",
    add: (to, me) => ({ ...to, holds: { [me]: hold({ principal: "someone" }) } }),
    answer: "forbidden",
  },
  { fact: "holds no more", add: (to, me) => ({ ...to, holds: { [me]: hold({ expiresAtMs: NOW_MS }) } }), answer: "lease-over" },
  {
    fact: "holds with other parameters",
    add: (to, me) => ({ ...to, holds: { [me]: hold({ requestHash: "others" }) } }),
    answer: "lease-reused",
  },
  { fact: "holds", add: (to, me) => ({ ...to, holds: { [me]: hold() } }), answer: "replayed" },
];

/** Other conditions that an acquire may meet, in order of precedence. */
const OTHERWISE: readonly Fact[] = [
  { fact: "ended", add: (to, me) => ({ ...to, tombstones: [{ leaseId: me, ending: "released" }] }), answer: "lease-over" },
  { fact: "is at the floor", add: (to, me) => ({ ...to, lowWatermark: me }), answer: "lease-over" },
  {
    fact: "meets another's hold",
    add: (to) => ({ ...to, holds: { ...to.holds, [OTHER]: hold({ principal: "someone" }) } }),
    answer: "locked",
  },
  {
    fact: "meets only leases that ran out, margin included",
    add: (to) => ({ ...to, holds: { ...to.holds, [LAPSED]: hold({ expiresAtMs: NOW_MS - 1061 }) } }),
    answer: "granted",
  },
  { fact: "meets nobody", add: (to) => to, answer: "granted" },
];

function answerOf(before: LockRecord | undefined, command: Acquire): string {
  const { answer } = transition(before, command, READING, POLICY);
  return answer.ok ? ("how" in answer ? answer.how : answer.state) : answer.code;
}

describe("an acquire", () => {
  const me = leaseIdAt(NOW_MS);
  for (const [rank, { fact, add, answer }] of [...ITS_HOLD, ...OTHERWISE].entries()) {
    it(`by an id that ${fact} answers ${answer}`, () => {
      expect(answerOf(add(record(), me), acquire(me))).toBe(answer);
    });
    const weaker = OTHERWISE.slice(Math.max(0, rank - ITS_HOLD.length + 1), -1);
    it.each(weaker.map((other) => ({ ...other, and: other.fact })))("... also when it $and", (other) => {
      expect(answerOf(add(other.add(record(), me), me), acquire(me))).toBe(answer);
    });
  }

  it.each([
    ["over 10 s ahead", NOW_MS + 10_001, "lease-id-time"],
    ["10 s ahead", NOW_MS + 10_000, "granted"],
    ["15 min behind", NOW_MS - 15 * MINUTE, "granted"],
    ["over 15 min behind", NOW_MS - 15 * MINUTE - 1, "lease-id-time"],
  ])("by an id made %s is answered by its time", (_when, madeAtMs, answer) => {
    expect(answerOf(undefined, acquire(leaseIdAt(madeAtMs)))).toBe(answer);
  });

  it("looks at the id's time before it looks at who holds, and only at an id that is new", () => {
    const old = leaseIdAt(NOW_MS - 16 * MINUTE);
    expect(answerOf(record({ holds: { [OTHER]: hold() } }), acquire(old))).toBe("lease-id-time");
    expect(answerOf(record({ holds: { [old]: hold() } }), acquire(old))).toBe("replayed");
  });

  it("grants with a token above every earlier one, though the clock is behind it", () => {
    const { next } = transition(record({ fencingToken: NOW_MS + 99 }), acquire(me), READING, POLICY);
    expect(next?.fencingToken).toBe(NOW_MS + 100);
  });

  it("takes over by the earlier clock and grants by the later", () => {
    const lapsed = record({ holds: { [OTHER]: hold({ expiresAtMs: NOW_MS - 1061 }) } });
    const skewed = { earliestMs: NOW_MS - 1, latestMs: NOW_MS + 400 };
    const early = transition(lapsed, acquire(me), skewed, POLICY);
    expect(early.answer).toMatchObject({ ok: false, code: "locked", retryAfterMs: 1 });
    const { next } = transition(lapsed, acquire(me), { ...skewed, earliestMs: NOW_MS }, POLICY);
    expect(next?.holds[me]?.expiresAtMs).toBe(NOW_MS + 400 + 30_000);
  });
});
