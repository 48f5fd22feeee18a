/** Mutants of the core's queue, each with its behaviour and the rule that must detect it. */
import { check } from "../../lib/core/lock/check.js";
import type { Command, Waiting } from "../../lib/core/commands.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import type { LockRecord, Waiter } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { type Decide, decide } from "./kinds-broken.js";
import type { Core } from "./queue-core.js";
import type { QueueRule } from "./queue-rules.js";

/** Every history must end like this, whichever rule is checked. */
export const SERVED = "whoever visits as told is granted in the end";

interface Broken {
  readonly does: string;
  readonly rule: QueueRule | typeof SERVED;
  readonly core: Partial<Core>;
}

type View = (record: LockRecord, reading: ClockReading, command?: Command) => LockRecord;

/** Decides on the record seen through `view`. `restored` undoes the view's changes in the record that is written. */
const seeing =
  (view: View, restored: (next: LockRecord, before: LockRecord, seen: LockRecord) => LockRecord = (next) => next): Decide =>
  (record, command, reading) => {
    if (!record) return decide(record, command, reading);
    const seen = view(record, reading, command);
    const decision = decide(seen, command, reading);
    return decision.next ? { ...decision, next: restored(decision.next, record, seen) } : decision;
  };

/** Changes the record after the decision. */
const writing =
  (change: (next: LockRecord, before: LockRecord, command: Command, reading: ClockReading) => LockRecord): Decide =>
  (record, command, reading) => {
    const decision = decide(record, command, reading);
    return decision.next && record ? { ...decision, next: change(decision.next, record, command, reading) } : decision;
  };

/** The waiters with their previous times, at their present places. */
const withTheirTimes = (next: LockRecord, before: LockRecord): LockRecord => ({
  ...next,
  waiters: next.waiters.map((waiter) => before.waiters.find(({ leaseId }) => leaseId === waiter.leaseId) ?? waiter),
});
const withTheirTurns = (next: LockRecord, before: LockRecord): LockRecord => ({
  ...next,
  offers: next.offers.map((offer) => before.offers.find(({ leaseId }) => leaseId === offer.leaseId) ?? offer),
});

/** Decides an acquire on a record with hidden entries, and then restores those entries. */
const hiding =
  (what: "offers" | "waiters", isHidden: (command: Command & { type: "acquire" }) => boolean): Decide =>
  (record, command, reading) => {
    if (!record || command.type !== "acquire" || !isHidden(command)) return decide(record, command, reading);
    const hidden = record[what].filter(({ leaseId }) => leaseId !== command.leaseId);
    const decision = decide({ ...record, [what]: record[what].filter(({ leaseId }) => leaseId === command.leaseId) }, command, reading);
    return decision.next ? { ...decision, next: { ...decision.next, [what]: [...hidden, ...decision.next[what]] } } : decision;
  };

const newcomer = (next: LockRecord, before: LockRecord): Waiter | undefined =>
  next.waiters.find(({ leaseId }) => !before.waiters.some((waiter) => waiter.leaseId === leaseId));

const atTheHead = writing((next, before) => {
  const latest = newcomer(next, before);
  return latest ? { ...next, waiters: [latest, ...next.waiters.filter((waiter) => waiter !== latest)] } : next;
});

const behindAll = writing((next, before) => {
  const latest = newcomer(next, before);
  return latest ? { ...next, waiters: [...next.waiters.filter((waiter) => waiter !== latest), latest] } : next;
});

const neverHears: Decide = (record, command, reading) => {
  const { touch: _lost, ...decision } = decide(record, command, reading);
  return decision;
};

const countsHearing: Decide = (record, command, reading) => {
  const { touch, ...decision } = decide(record, command, reading);
  if (!touch || !record) return decision;
  return { ...decision, next: { ...record, version: record.version + 1, waiters: record.waiters.with(touch.index, touch.waiter) }, touch };
};

const hearsAll: Decide = (record, command, reading) => {
  const decision = decide(record, command, reading);
  const { touch } = decision;
  if (!touch || !record) return decision;
  const next = { ...record, waiters: record.waiters.map((waiter) => ({ ...waiter, aliveUntilMs: waiter.aliveUntilMs + 1_000 })) };
  return { ...decision, next, touch };
};

/** Releases and leaves as usual, but doesn't advance the queue. */
const movesNobody: Decide = (record, command, reading) => {
  if (!record || command.type === "acquire") return decide(record, command, reading);
  const decision = decide(
    { ...record, waiters: record.waiters.filter((waiter) => "leaseId" in command && waiter.leaseId === command.leaseId) },
    command,
    reading,
  );
  const id = "leaseId" in command && command.type === "release" ? command.leaseId : "";
  return decision.next
    ? { ...decision, next: { ...decision.next, waiters: record.waiters.filter(({ leaseId }) => leaseId !== id) } }
    : decision;
};

const offersOneAtATime = writing((next, before) => {
  const made = next.offers.filter(({ leaseId }) => !before.offers.some((offer) => offer.leaseId === leaseId));
  const back = made.slice(1).flatMap(({ leaseId }) => before.waiters.filter((waiter) => waiter.leaseId === leaseId));
  return { ...next, offers: next.offers.filter(({ leaseId }) => !has(back, leaseId)), waiters: [...back, ...next.waiters] };
});

const forgetsWhoLeft = writing((next, before, command) =>
  command.type === "release" && !before.holds[command.leaseId]
    ? { ...next, tombstones: before.tombstones, lowWatermark: before.lowWatermark }
    : next,
);

const has = (all: readonly { readonly leaseId: LeaseId }[], id: LeaseId): boolean => all.some(({ leaseId }) => leaseId === id);

const repeatsTokens = seeing((record) => ({ ...record, fencingToken: 0 }));

/** The queue's times by the latest clock: each seems that much earlier. */
const agedBy = (ms: (reading: ClockReading) => number) => ({
  waiters: seeing(
    (record, reading) => ({
      ...record,
      waiters: record.waiters.map((waiter) => ({ ...waiter, aliveUntilMs: waiter.aliveUntilMs - ms(reading) })),
    }),
    withTheirTimes,
  ),
  offers: seeing(
    (record, reading) => ({
      ...record,
      offers: record.offers.map((offer) => ({ ...offer, offeredAtMs: offer.offeredAtMs - ms(reading) })),
    }),
    withTheirTurns,
  ),
});
const byTheLater = agedBy(({ earliestMs, latestMs }) => latestMs - earliestMs);

const keepsTurns = seeing(
  (record, { latestMs }) => ({ ...record, offers: record.offers.map((offer) => ({ ...offer, offeredAtMs: latestMs })) }),
  withTheirTurns,
);

/** Skips only the waiter whose offer lapsed. Each dead waiter behind it gets its own offer. */
const skipsOneAtATime = seeing(
  (record) => ({ ...record, waiters: record.waiters.map((waiter) => ({ ...waiter, ttlMs: 0 })) }),
  (next, before) => ({
    ...next,
    waiters: next.waiters.map((waiter) =>
      waiter.ttlMs === 0 ? { ...waiter, ttlMs: before.waiters.find(({ leaseId }) => leaseId === waiter.leaseId)?.ttlMs ?? 0 } : waiter,
    ),
  }),
);

const neverTakesOver: Decide = seeing((record, { earliestMs }) => ({
  ...record,
  holds: Object.fromEntries(
    Object.entries(record.holds).map(([id, hold]) => [
      id,
      { ...hold, marginMs: Math.max(hold.marginMs, earliestMs - hold.expiresAtMs + 1) },
    ]),
  ),
}));

const believesAnybody: Decide = (record, command, reading) =>
  decide(record, "principal" in command ? { ...command, principal: "P" } : command, reading);

const looks =
  (change: (seen: Waiting, ...rest: Parameters<Core["look"]>) => Waiting): Core["look"] =>
  (record, ref, reading) => {
    const seen = check(record, ref, reading);
    return seen.ok && "state" in seen ? change(seen, record, ref, reading) : seen;
  };
const patiently = looks((seen) => ({ ...seen, retryAfterMs: Math.max(1_000, seen.retryAfterMs), pollWithinMs: 4_000 }));
/** Reports an offer and nothing else. */
const ofItsTurn = looks((seen, record, { leaseId }) =>
  has(record?.offers ?? [], leaseId) ? seen : { ...seen, retryAfterMs: Math.max(1, seen.retryAfterMs) },
);

/** The mutants, and the rule that detects each. */
export const BROKEN: readonly Broken[] = [
  {
    does: "looks past whose turn it is",
    rule: "S12: never more holds and turns than may hold at once",
    core: { decide: hiding("offers", ({ wait }) => !wait) },
  },
  {
    does: "goes by the later clock alone for who is heard of",
    rule: "L2: nobody who visits as told is skipped",
    core: { decide: byTheLater.waiters },
  },
  {
    does: "goes by the later clock alone for turns",
    rule: "L2: nobody who visits as told is skipped",
    core: { decide: byTheLater.offers },
  },
  {
    does: "keeps a place for a visit's time and no longer",
    rule: "L2: nobody who visits as told is skipped",
    core: { decide: agedBy(() => 11_500).waiters },
  },
  {
    does: "keeps a turn for less than a visit's time",
    rule: "L2: nobody who visits as told is skipped",
    core: { decide: agedBy(() => 2_000).offers },
  },
  { does: "writes nobody down who is heard of", rule: "L2: nobody who visits as told is skipped", core: { decide: neverHears } },
  { does: "tells nobody to say that it is there", rule: "L2: nobody who visits as told is skipped", core: { look: ofItsTurn } },
  {
    does: "lets those in at once who don't wait",
    rule: "L2: nobody who visits as told is overtaken",
    core: { decide: hiding("waiters", ({ wait }) => !wait) },
  },
  { does: "queues at the head", rule: "L2: nobody who visits as told is overtaken", core: { decide: atTheHead } },
  {
    does: "never withdraws a turn",
    rule: "L3: a turn that nobody comes for lasts its window and a visit",
    core: { decide: keepsTurns },
  },
  {
    does: "gives every one of the dead a turn",
    rule: "L3: a turn that nobody comes for lasts its window and a visit",
    core: { decide: skipsOneAtATime },
  },
  { does: "tells all to be patient", rule: "a look tells who has something to write", core: { look: patiently } },
  { does: "tells only whose turn it is", rule: "a look tells who has something to write", core: { look: ofItsTurn } },
  {
    does: "moves nobody on",
    rule: "no write leaves the key to nobody while somebody waits who fits",
    core: { decide: movesNobody },
  },
  {
    does: "offers to one at a time",
    rule: "no write leaves the key to nobody while somebody waits who fits",
    core: { decide: offersOneAtATime },
  },
  { does: "queues at the head", rule: "the queue is in order", core: { decide: atTheHead } },
  { does: "has no eye for priority", rule: "the queue is in order", core: { decide: behindAll } },
  { does: "counts being heard of", rule: "S2: what is heard of leaves the version alone", core: { decide: countsHearing } },
  { does: "hears of all when it hears of one", rule: "S2: what is heard of leaves the version alone", core: { decide: hearsAll } },
  { does: "goes by the clock alone", rule: "S3: tokens rise with claims", core: { decide: repeatsTokens } },
  { does: "forgets who left", rule: "S7: who left or held is gone", core: { decide: forgetsWhoLeft } },
  { does: "believes whoever asks", rule: "S15: strangers change nothing", core: { decide: believesAnybody } },
  { does: "never takes over", rule: SERVED, core: { decide: neverTakesOver } },
];
