/** Rules that every decision keeps, whatever the state and the command: the record, the answer and the log agree with each other. */
import { describe, expect, it } from "vitest";
import type { LeaseEvent } from "../../lib/core/commands.js";
import { type ErrorCode, ERRORS } from "../../lib/core/errors.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { check } from "../../lib/core/lock/check.js";
import type { Hold, LockRecord } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import { outcomeOf, POLICY } from "../store/fixture.js";
import { type Taken, ALL_STATES, COLUMNS, decisionsIn, keptForLeasesSec } from "./decisions.js";
import { ARRIVING, ASKING, GOING } from "./queue-moves.js";

const SECOND_MS = 1000;

/** The time of a use: by the later clock, unless the clocks are so far apart that only the earlier time is known. */
function usedMs({ earliestMs, latestMs }: ClockReading): number {
  return latestMs - earliestMs > DEFAULTS.clockGuardMs ? earliestMs : latestMs;
}

/** The ids on a record: those that hold, are offered the key, and wait. */
function standingOf(record: LockRecord | undefined): Readonly<Record<string, string>> {
  const { holds = {}, offers = [], waiters = [] } = record ?? {};
  return Object.fromEntries([
    ...Object.keys(holds).map((id) => [id, "holds"]),
    ...offers.map(({ leaseId }) => [leaseId, "is offered"]),
    ...waiters.map(({ leaseId }) => [leaseId, "waits"]),
  ]) as Readonly<Record<string, string>>;
}

const STANDING: Partial<Record<LeaseEvent["event"], string>> = {
  granted: "holds",
  transferred: "holds",
  offered: "is offered",
  queued: "waits",
};

/** The same as {@link standingOf}, from the record before and the log. */
function standingByLog(before: LockRecord | undefined, events: readonly LeaseEvent[]): Readonly<Record<string, string>> {
  const standing = new Map(Object.entries(standingOf(before)));
  for (const { event, leaseId } of events) {
    const now = STANDING[event];
    if (now !== undefined) standing.set(leaseId, now);
    else if (event === "ended" || event === "skipped") standing.delete(leaseId);
  }
  return Object.fromEntries(standing);
}

/** Returns what breaks the rule, if anything does. */
type Rule = (taken: Taken) => unknown;

/** Refusals whose detail tells more than their title. */
const EXPLAINED: ReadonlySet<ErrorCode> = new Set([
  "lease-reused",
  "limit-mismatch",
  "not-found",
  "other-hold",
  "queue-full",
  "upgrade-conflict",
]);

const RULES: Readonly<Record<string, Rule>> = {
  "a refusal that changes nothing is not logged": ({ decision: { answer, next, events } }) =>
    !answer.ok && !next && events.length > 0 ? events : undefined,

  "a refusal that depends on the key says why": ({ command, decision: { answer } }) =>
    !answer.ok && EXPLAINED.has(answer.code) && !["transfer", "wait"].includes(command.type) && answer.detail === ERRORS[answer.code].title
      ? answer
      : undefined,

  "a change raises the version by one, from the later clock if the key was never used": ({ before, reading, decision: { next } }) =>
    !next || next.version === (before?.version ?? reading.latestMs) + 1 ? undefined : next.version,

  "the log tells who holds the key, is offered it and waits for it": ({ before, after, decision: { events } }) => {
    const [there, told] = [standingOf(after), standingByLog(before, events)];
    return Object.keys({ ...there, ...told }).some((id) => there[id] !== told[id]) ? { there, told } : undefined;
  },

  "the log has the owner, the principal and the token of each lease, and how long it held": (taken) => {
    const { before, after, reading, command, decision } = taken;
    return decision.events.find(({ event, leaseId, owner, principal, fencingToken, heldMs }) => {
      const hold: Hold | undefined = event === "ended" ? before?.holds[leaseId] : (after?.holds[leaseId] ?? before?.holds[leaseId]);
      if (!hold) return fencingToken !== undefined && event !== "ended";
      const by = hold.principal === "" && event !== "ended" && "principal" in command ? command.principal : hold.principal;
      const heldUntilMs = (heldMs ?? 0) + hold.grantedAtMs;
      const isTimed = event !== "ended" || heldUntilMs === reading.latestMs || heldUntilMs === usedMs(reading);
      return !(isTimed && owner === hold.owner && principal === by && fencingToken === hold.fencingToken);
    });
  },

  "the record is kept for a retention after the last of its leases, and after its last use": ({ reading, decision: { answer, next } }) => {
    if (!next) return undefined;
    const isUse = !["breaking", "locked", "replayed"].includes(outcomeOf(answer));
    const used = isUse ? Math.ceil((usedMs(reading) + POLICY.retentionMs) / SECOND_MS) : 0;
    const missing = Math.max(used, keptForLeasesSec(next)) - next.ttlAtSec;
    return missing > 0 ? missing : undefined;
  },

  "the record is collected earlier than before only if a grant found it unused": ({ before, after, decision: { answer, next } }) => {
    const isAlone = outcomeOf(answer) === "granted" && Object.keys(standingOf(after)).length === 1;
    return !next || !before || isAlone || next.ttlAtSec >= before.ttlAtSec ? undefined : next.ttlAtSec - before.ttlAtSec;
  },

  "no member of a record, an answer or an event is undefined": ({ decision }) => undefinedIn(decision),

  "a decision that only appends a waiter says so, and no other does": ({ before, command, decision: { next, events, behind } }) => {
    const were = before?.waiters ?? [];
    const appended = next?.waiters.length === were.length + 1 && were.every((waiter, place) => waiter === next.waiters[place]);
    const isOnly = command.type === "acquire" && appended && events.length === 1 && events[0]?.event === "queued";
    return behind === (isOnly ? next.waiters.at(-1) : undefined) ? undefined : { behind, events };
  },

  "the answer shows the lease as a check of it does": ({ after, reading, command, decision: { answer } }) => {
    if (!answer.ok || !("lease" in answer) || !("principal" in command)) return undefined;
    const { leaseId, key } = answer.lease;
    const checked = check(after, { key, leaseId, principal: command.principal }, reading);
    const shown = checked.ok && "lease" in checked ? checked.lease : checked;
    return JSON.stringify(shown) === JSON.stringify(answer.lease) ? undefined : { shown, answered: answer.lease };
  },

  "the answer to a waiter has the place and the times that a poll shows, unless it may acquire at once": (taken) => {
    const { after, reading, command, decision } = taken;
    const { answer } = decision;
    if (command.type !== "acquire" || !answer.ok || !("position" in answer)) return undefined;
    const polled = check(after, command, reading);
    const isNow = polled.ok && "retryAfterMs" in polled && polled.retryAfterMs === 0;
    return isNow || JSON.stringify(polled) === JSON.stringify(answer) ? undefined : { polled, answer };
  },

  "the same command of another principal is forbidden, and neither changes nor logs anything": ({ before, reading, command }) => {
    if (!("leaseId" in command) || standingOf(before)[command.leaseId] === undefined) return undefined;
    const hold = before?.holds[command.leaseId];
    if (hold?.principal === "" || (!hold && command.type !== "acquire" && command.type !== "release")) return undefined;
    const stranger = { ...command, principal: "a stranger" };
    const { answer, next, events } = transition(before, stranger, reading, POLICY);
    const polled = check(before, stranger, reading);
    const answers = [outcomeOf(answer), polled.ok ? "" : polled.code];
    return answers.every((code) => code === "forbidden") && !next && events.length === 0 ? undefined : answers;
  },
};

/** The path of an undefined member, if there is one. */
function undefinedIn(value: unknown, path = ""): string | undefined {
  if (value === undefined) return path;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = undefinedIn(member, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function broken(taken: readonly Taken[], rules: Readonly<Record<string, Rule>> = RULES): readonly string[] {
  return taken.flatMap((one) =>
    Object.entries(rules).flatMap(([name, rule]) => {
      const what = rule(one);
      return what === undefined ? [] : [`${name}. After ${JSON.stringify(one.command)}: ${JSON.stringify(what)}`];
    }),
  );
}

describe("the rules of every decision are kept", () => {
  it.each(ALL_STATES)("by every command in the state: $state", (state) => {
    expect(broken(decisionsIn(state, COLUMNS))).toEqual([]);
  });

  it.each([...ARRIVING, ...ASKING, ...GOING])("by a move of the queue: $when", ({ steps, ask }) => {
    expect(broken(decisionsIn({ steps }, [["", ask]]))).toEqual([]);
  });

  it("control: a decision that breaks one is named, with its command", () => {
    const all = ALL_STATES.flatMap((state) => decisionsIn(state, COLUMNS));
    const types = ["acquire", "renew", "release", "transfer", "break", "mode", "wait", "notify"];
    expect(new Set(all.map(({ command }) => command.type))).toEqual(new Set(types));
    const silent = all.slice(0, 500).map((taken) => ({ ...taken, decision: { ...taken.decision, events: [] } }));
    expect(broken(silent)).toContainEqual(expect.stringMatching(/^the log tells who holds .* After .*"type":"release"/));
  });
});
