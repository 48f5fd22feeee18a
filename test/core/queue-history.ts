/**
 * Random histories of one key and its clients. Each client comes at its time, polls as told or dies, holds for a while,
 * and releases or crashes. Operators, strangers and late duplicates interfere. Requests take no time. One of the two
 * server clocks is close to the true time, the other is anywhere within the guard.
 */
import * as fc from "fast-check";
import type { Acquire, Command, Decision } from "../../lib/core/commands.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import type { LockRecord, Mode } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { leaseId, START_MS } from "../store/fixture.js";
import type { Core } from "./queue-core.js";
import { writtenOver } from "./queue-key.js";

const E = DEFAULTS.clockErrorMs;
/** More steps than any history needs to serve its waiters. */
const MOST_STEPS = 4000;

/** A client that wants the key. */
interface Client {
  readonly comesAfterMs: number;
  /** The index of the history's kind. */
  readonly kind: number;
  readonly priority: number;
  readonly scope: string | undefined;
  readonly waits: boolean;
  /** The time of its next poll, as a fraction of the way from the earliest useful time to the latest allowed. */
  readonly visitsAt: number;
  /** After that many polls it dies, or leaves. Absent: neither. */
  readonly gives: { readonly up: "dies" | "leaves"; readonly afterVisits: number } | undefined;
  readonly leaseMs: number;
  readonly holdsForMs: number;
  readonly meanwhile: "nothing" | "renew" | "upgrade" | "downgrade" | "transfer" | "nest";
  readonly crashes: boolean;
}

/** An action of another party. */
interface Other {
  readonly afterMs: number;
  readonly does: "break" | "drain" | "send again" | "strange";
  readonly pick: number;
}

interface Clocks {
  /** The error of the clock that is nearly right, within E, and the other clock's distance from it. */
  readonly errorMs: number;
  readonly apartMs: number;
}

/** The clients, the interruptions and the clock errors. Each list is repeated as needed. */
export interface QueueHistory {
  readonly kinds: readonly { readonly mode: Mode; readonly limit: number; readonly permits: number }[];
  readonly clients: readonly Client[];
  readonly others: readonly Other[];
  readonly clocks: readonly Clocks[];
}

const WRITER = { mode: "exclusive", limit: 1, permits: 1 } as const;
const READER = { mode: "shared", limit: 1, permits: 1 } as const;
const permits = (count: number) => ({ mode: "exclusive", limit: 3, permits: count }) as const;

const oneIn = (times: number): fc.Arbitrary<boolean> => fc.nat(times - 1).map((draw) => draw === 0);

const client: fc.Arbitrary<Client> = fc.record({
  comesAfterMs: fc.oneof(fc.constantFrom(0, 0, 1, 100), fc.nat(3_000), fc.constantFrom(2_500, 4_000, 5_000, 5_001, 8_000)),
  kind: fc.nat(99),
  priority: fc.constantFrom(0, 0, 0, 0, 0, 1, 2),
  scope: fc.constantFrom(undefined, undefined, undefined, undefined, "S", "T"),
  waits: oneIn(6).map((one) => !one),
  visitsAt: fc.constantFrom(1, 1, 0.9, 0.5, 0),
  gives: fc.option(fc.record({ up: fc.constantFrom("dies" as const, "dies" as const, "leaves" as const), afterVisits: fc.nat(5) }), {
    freq: 1,
    nil: undefined,
  }),
  leaseMs: fc.constantFrom(1_000, 1_000, 4_000, 10_000),
  holdsForMs: fc.constantFrom(0, 1, 50, 500, 900, 3_000, 9_000),
  meanwhile: fc.constantFrom("nothing", "nothing", "nothing", "renew", "upgrade", "downgrade", "transfer", "nest"),
  crashes: oneIn(4),
});

/** Draws histories; `guardMs` is the largest distance between the clocks. */
export const queueHistories = (guardMs: number): fc.Arbitrary<QueueHistory> =>
  fc.record({
    kinds: fc.constantFrom(
      [WRITER],
      [WRITER, READER],
      [READER, READER, WRITER],
      [permits(1), permits(2)],
      [permits(1), permits(2), permits(3)],
      [WRITER, permits(1)],
    ),
    clients: fc.array(client, { minLength: 1, maxLength: 12, size: "max" }),
    others: fc.array(
      fc.record<Other>({
        afterMs: fc.nat(6_000),
        does: fc.constantFrom("break", "drain", "send again", "send again", "send again", "strange"),
        pick: fc.nat(99),
      }),
      { maxLength: 6, size: "max" },
    ),
    clocks: fc.array(
      fc.record({
        errorMs: fc.constantFrom(0, 0, 0, -E, E),
        apartMs: fc
          .constantFrom(0, 0, 0, 1, -900, 900, 4_000, -4_000, guardMs, -guardMs)
          .map((ms) => Math.max(-guardMs, Math.min(guardMs, ms))),
      }),
      { minLength: 1, maxLength: 20, size: "max" },
    ),
  });

/** One request of a history, and its outcome. */
export interface Asked {
  /** The true time. */
  readonly nowMs: number;
  readonly reading: ClockReading;
  /** The id of the request: sent by the client itself, or by another party in its name. */
  readonly by: { readonly leaseId: LeaseId; readonly isItself: boolean } | undefined;
  /** Absent: a poll. */
  readonly command: Command | undefined;
  readonly answer: Decision["answer"];
  /** True if the decision only recorded that a waiter was seen. */
  readonly isTouched: boolean;
  readonly before: LockRecord | undefined;
  readonly after: LockRecord | undefined;
}

/** Plays a history through `core` until no client wants anything. A result of `told` ends it. */
// Over 60 lines: one model or one server, whose parts share its state.
export function playQueue(history: QueueHistory, core: Core, told: (asked: Asked) => string | undefined): string | undefined {
  const { kinds, clients, others, clocks } = history;
  const events: { readonly atMs: number; readonly act: () => string | undefined }[] = [];
  const sent: { readonly command: Command; readonly leaseId: LeaseId }[] = [];
  let record: LockRecord | undefined;
  let nowMs = 0;
  let order = 0;
  let steps = 0;

  const after = (ms: number, act: () => string | undefined): void => {
    const atMs = nowMs + Math.max(0, Math.floor(ms));
    const behind = events.findIndex((event) => event.atMs > atMs);
    events.splice(behind < 0 ? events.length : behind, 0, { atMs, act });
  };
  const reading = (): ClockReading => {
    const { errorMs, apartMs } = clocks[steps++ % clocks.length] ?? { errorMs: 0, apartMs: 0 };
    const both = [START_MS + nowMs + errorMs, START_MS + nowMs + errorMs + apartMs];
    return { earliestMs: Math.min(...both), latestMs: Math.max(...both) };
  };
  const newId = (): LeaseId => leaseId(++order, nowMs);

  /** Sends a command or a poll. The sender's next actions follow from the answer. */
  function ask(
    by: Asked["by"],
    command: Command | undefined,
    then: (answer: Decision["answer"]) => string | undefined,
  ): string | undefined {
    const now = reading();
    const before = record;
    const decision: Decision | undefined = command && core.decide(before, command, now);
    const answer = decision?.answer ?? core.look(before, { key: "k", leaseId: by?.leaseId ?? "", principal: "P" }, now);
    if (decision) record = writtenOver(before, decision);
    if (command && by) sent.push({ command, leaseId: by.leaseId });
    const isTouched = decision?.touch !== undefined;
    const broken = told({ nowMs: START_MS + nowMs, reading: now, by, command, answer, isTouched, before, after: record });
    return broken ?? then(answer);
  }
  const nothing = (): undefined => undefined;

  function come({ waits, leaseMs, priority, scope, visitsAt, gives, ...rest }: Client): string | undefined {
    const { mode, limit, permits: count } = kinds[rest.kind % kinds.length] ?? WRITER;
    const id = newId();
    const by = { leaseId: id, isItself: true };
    const asks = { mode, limit, permits: count, leaseMs, priority, ...(scope !== undefined && { scope }) };
    const put: Acquire = {
      ...{ type: "acquire", key: "k", leaseId: id, principal: "P", owner: "", requestHash: JSON.stringify(asks), ...asks },
      ...(waits && { wait: true }),
    };
    let visits = 0;
    const asked = (answer: Decision["answer"]): string | undefined => {
      if (answer.ok && "lease" in answer) return void hold(put, rest);
      if (!answer.ok || !("pollWithinMs" in answer)) return waits ? void leave() : undefined;
      if (gives && visits++ >= gives.afterVisits) return gives.up === "dies" ? undefined : void leave();
      if (answer.retryAfterMs === 0) after(0, () => ask(by, put, asked));
      else after(answer.retryAfterMs + (answer.pollWithinMs - answer.retryAfterMs) * visitsAt, () => ask(by, undefined, asked));
      return undefined;
    };
    const leave = (): undefined => void after(0, () => ask(by, { type: "release", key: "k", leaseId: id, principal: "P" }, nothing));
    return ask(by, put, asked);
  }

  function hold(put: Acquire, { holdsForMs, meanwhile, crashes }: Pick<Client, "holdsForMs" | "meanwhile" | "crashes">): undefined {
    const ref = { key: "k", leaseId: put.leaseId, principal: "P" } as const;
    const by = { leaseId: put.leaseId, isItself: true };
    const releases = (id: LeaseId): void => {
      const one = { leaseId: id, isItself: true };
      if (!crashes) after(holdsForMs, () => ask(one, { type: "release", ...ref, leaseId: id }, nothing));
    };
    const fencingToken = (): number => record?.holds[ref.leaseId]?.fencingToken ?? 1;
    const change = (mode: Mode, times: number): string | undefined =>
      ask(by, { type: "mode", ...ref, mode, fencingToken: fencingToken() }, (answer) => {
        if (!answer.ok && answer.code === "locked" && times > 0) after(700, () => change(mode, times - 1));
        return undefined;
      });
    const act = (): string | undefined => {
      if (meanwhile === "renew") return ask(by, { type: "renew", ...ref }, nothing);
      if (meanwhile === "upgrade") return change("exclusive", 3);
      if (meanwhile === "downgrade") return change("shared", 0);
      const id = newId();
      const to = { leaseId: id, isItself: true };
      if (meanwhile === "transfer") return ask(by, { type: "transfer", ...ref, toLeaseId: id }, ({ ok }) => void (ok && releases(id)));
      return put.scope === undefined ? undefined : ask(to, { ...put, leaseId: id }, ({ ok }) => void (ok && releases(id)));
    };
    if (meanwhile !== "nothing") after(holdsForMs / 2, act);
    releases(put.leaseId);
    return undefined;
  }

  function interfere({ does, pick }: Other): string | undefined {
    const { holds = {}, offers = [], waiters = [], fencingToken = 1 } = record ?? {};
    if (does === "send again") {
      const again = sent[sent.length - 1 - (pick % Math.max(1, Math.min(20, sent.length)))];
      return again && ask({ leaseId: again.leaseId, isItself: false }, again.command, nothing);
    }
    if (does === "strange") {
      const ids = [...Object.keys(holds), ...[...offers, ...waiters].map((asking) => asking.leaseId)];
      const id = ids[pick % Math.max(1, ids.length)];
      const ref = { key: "k", leaseId: id ?? "", principal: "Q" } as const;
      const first = sent.find(({ command }) => command.type === "acquire" && command.leaseId === id)?.command;
      if (id === undefined) return undefined;
      const by = { leaseId: id, isItself: false };
      return ask(by, pick % 2 === 0 && first?.type === "acquire" ? { ...first, principal: "Q" } : { type: "release", ...ref }, nothing);
    }
    const drainMs = does === "break" ? [0, 0, 500][pick % 3] : undefined;
    return ask(undefined, { type: "break", key: "k", fencingToken, ...(drainMs !== undefined && { drainMs }) }, nothing);
  }

  let atMs = 0;
  for (const one of clients) after((atMs += one.comesAfterMs), () => come(one));
  atMs = 0;
  for (const one of others) after((atMs += one.afterMs), () => interfere(one));
  for (let event = events.shift(); event; event = events.shift()) {
    nowMs = event.atMs;
    const broken = event.act();
    if (broken !== undefined) return broken;
    if (steps > MOST_STEPS) return "whoever visits as told is granted in the end: somebody is not";
  }
  return undefined;
}

/** The most by which an offer may lapse late, in true time, with the history's clock errors. */
export function slackMs({ clocks }: QueueHistory): number {
  return 2 * E + 2 * Math.max(0, ...clocks.map(({ apartMs }) => Math.abs(apartMs)));
}
