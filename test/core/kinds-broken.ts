/** Mutants of the core, each with its behaviour and the rule that must detect it. */
import type { Acquire, Command, Decision } from "../../lib/core/commands.js";
import { isLive, isReclaimable } from "../../lib/core/lock/expiry.js";
import type { Hold, LockRecord } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import { POLICY } from "../store/fixture.js";
import type { RuleName } from "./kinds-rules.js";

/** A function that decides a command. */
export type Decide = (record: LockRecord | undefined, command: Command, reading: ClockReading) => Decision;

/** The unchanged core. */
export const decide: Decide = (record, command, reading) => transition(record, command, reading, POLICY);

interface Broken {
  readonly does: string;
  readonly rule: RuleName;
  /** Creates a decider for each history, because it may have a memory. */
  readonly decider: () => Decide;
}

const withHolds = (record: LockRecord | undefined, change: (hold: Hold, id: string) => Hold): LockRecord | undefined =>
  record && { ...record, holds: Object.fromEntries(Object.entries(record.holds).map(([id, hold]) => [id, change(hold, id)])) };

/** Decides on a record seen through `view`, and restores the hidden parts in the record that is written. */
const seeing =
  (
    type: Command["type"],
    view: (record: LockRecord | undefined, command: Command, reading: ClockReading) => LockRecord | undefined,
  ): Decide =>
  (record, command, reading) =>
    decide(command.type === type ? view(record, command, reading) : record, command, reading);

const isOfScope = (hold: Hold, { scope }: Acquire): boolean => scope !== undefined && hold.scope === scope;

function countsCalls(): Decide {
  let calls = 0;
  return (record, command, reading) => {
    const decision = decide(record, command, reading);
    const { answer } = decision;
    if (command.type !== "acquire" || command.scope === undefined || !answer.ok || !("lease" in answer)) return decision;
    return { ...decision, answer: { ...answer, lease: { ...answer.lease, holdCount: ++calls } } };
  };
}

const joinsTheDead: Decide = (record, command, reading) => {
  const revived = (hold: Hold): Hold =>
    command.type === "acquire" && isOfScope(hold, command) && !isLive(hold, reading)
      ? { ...hold, expiresAtMs: reading.earliestMs + 1 }
      : hold;
  return decide(command.type === "acquire" ? withHolds(record, revived) : record, command, reading);
};

const hasNoMargin = seeing("acquire", (record) => withHolds(record, (hold) => ({ ...hold, marginMs: 0 })));

/** Grants as if the holds that `ignored` names didn't exist, and leaves them in the record. */
const ignoring =
  (type: Command["type"], ignored: (hold: Hold, id: string, command: Command) => boolean): Decide =>
  (record, command, reading) => {
    if (command.type !== type || !record) return decide(record, command, reading);
    const hidden = Object.fromEntries(Object.entries(record.holds).filter(([id, hold]) => ignored(hold, id, command)));
    const seen = Object.fromEntries(Object.entries(record.holds).filter(([id]) => !Object.hasOwn(hidden, id)));
    const decision = decide({ ...record, holds: seen }, command, reading);
    return decision.next ? { ...decision, next: { ...decision.next, holds: { ...hidden, ...decision.next.holds } } } : decision;
  };

const releasesAllLevels: Decide = (record, command, reading) => {
  const decision = decide(record, command, reading);
  const scope = command.type === "release" ? record?.holds[command.leaseId]?.scope : undefined;
  if (scope === undefined || !decision.next) return decision;
  const holds = Object.fromEntries(Object.entries(decision.next.holds).filter(([, hold]) => hold.scope !== scope));
  return { ...decision, next: { ...decision.next, holds } };
};

const renewsAllLevels: Decide = (record, command, reading) => {
  const decision = decide(record, command, reading);
  const mine = command.type === "renew" ? decision.next?.holds[command.leaseId] : undefined;
  if (mine?.scope === undefined) return decision;
  const { expiresAtMs } = mine;
  const next = withHolds(decision.next, (hold) => (hold.scope === mine.scope ? { ...hold, expiresAtMs } : hold));
  return next ? { ...decision, next } : decision;
};

const keepsTheDead: Decide = (record, command, reading) => {
  const takeable = Object.values(record?.holds ?? {}).some((hold) => isReclaimable(hold, reading));
  if (command.type !== "acquire" || !takeable) return decide(record, command, reading);
  return decide(
    withHolds(record, (hold) => (isReclaimable(hold, reading) ? { ...hold, expiresAtMs: reading.earliestMs } : hold)),
    command,
    reading,
  );
};

const takesAnyToken: Decide = (record, command, reading) =>
  decide(
    record,
    command.type === "mode" ? { ...command, fencingToken: record?.holds[command.leaseId]?.fencingToken ?? 0 } : command,
    reading,
  );

const withoutUpgrading = (type: Command["type"]): Decide =>
  seeing(type, (record) => {
    if (!record) return record;
    const { upgrading: _forgotten, ...rest } = record;
    return rest;
  });

const lowersNoFloor =
  (type: Command["type"]): Decide =>
  (record, command, reading) => {
    const decision = decide(record, command, reading);
    const { next } = decision;
    return command.type === type && next ? { ...decision, next: { ...next, fenceFloor: record?.fenceFloor ?? 0 } } : decision;
  };

const nestsInTheBroken = seeing("acquire", (record) =>
  withHolds(record, ({ broken, ...hold }) => (broken === "forced" ? { ...hold, broken } : hold)),
);

const countsOnePermit: Decide = (record, command, reading) => {
  if (command.type !== "acquire") return decide(record, command, reading);
  const decision = decide(record, { ...command, permits: 1 }, reading);
  const mine = decision.next?.holds[command.leaseId];
  if (!mine || record?.holds[command.leaseId]) return decision;
  const { permits } = command;
  return {
    ...decision,
    next: { ...decision.next, holds: { ...decision.next.holds, [command.leaseId]: { ...mine, permits } } },
  };
};

const repeatsTokens: Decide = (record, command, reading) =>
  decide(record && command.type === "acquire" ? { ...record, fencingToken: 0 } : record, command, reading);

const oneClock =
  (pick: (reading: ClockReading) => number): Decide =>
  (record, command, reading) => {
    const only = pick(reading);
    return decide(record, command, { earliestMs: only, latestMs: only });
  };

/** The mutants, and the rule that detects each. */
export const BROKEN: readonly Broken[] = [
  {
    does: "nests in a lease that ran out",
    rule: "S3: tokens strictly increase over grants that are not nested",
    decider: () => joinsTheDead,
  },
  { does: "goes by the clock alone", rule: "S3: tokens strictly increase over grants that are not nested", decider: () => repeatsTokens },
  {
    does: "releases all levels with one",
    rule: "S5: a command about one lease leaves every other alone until its margin is over",
    decider: () => releasesAllLevels,
  },
  {
    does: "renews all levels with one",
    rule: "S5: a command about one lease leaves every other alone until its margin is over",
    decider: () => renewsAllLevels,
  },
  {
    does: "takes over without the margin",
    rule: "S5: a command about one lease leaves every other alone until its margin is over",
    decider: () => hasNoMargin,
  },
  { does: "counts calls", rule: "S10: the count is of living levels", decider: countsCalls },
  { does: "never takes over", rule: "S10: nobody is kept out by nobody", decider: () => keepsTheDead },
  {
    does: "upgrades with other readers there",
    rule: "S11: never a writer with anybody, on the record",
    decider: () => ignoring("mode", (_, id, command) => command.type === "mode" && id !== command.leaseId),
  },
  {
    does: "lets a writer in among readers",
    rule: "S11: never a writer with anybody, on the record",
    decider: () => ignoring("acquire", ({ mode }) => mode === "shared"),
  },
  { does: "takes over without the margin", rule: "S11: never a writer with anybody, as they believe", decider: () => hasNoMargin },
  {
    does: "decides by the later clock alone",
    rule: "S11: never a writer with anybody, as they believe",
    decider: () => oneClock(({ latestMs }) => latestMs),
  },
  {
    does: "decides by the earlier clock alone",
    rule: "S11: never a writer with anybody, as they believe",
    decider: () => oneClock(({ earliestMs }) => earliestMs),
  },
  { does: "takes every permit for one", rule: "S12: never more permits out than the limit, on the record", decider: () => countsOnePermit },
  {
    does: "takes over without the margin",
    rule: "S12: never more permits out than the limit, as they believe",
    decider: () => hasNoMargin,
  },
  {
    does: "decides by the later clock alone",
    rule: "S12: never more permits out than the limit, as they believe",
    decider: () => oneClock(({ latestMs }) => latestMs),
  },
  {
    does: "changes the mode whatever token is named",
    rule: "S11: a late duplicate never undoes a change of mode",
    decider: () => takesAnyToken,
  },
  {
    does: "forgets who asked to upgrade when another does",
    rule: "of two readers that ask to upgrade the first waits",
    decider: () => withoutUpgrading("mode"),
  },
  {
    does: "forgets who asked to upgrade when a reader comes",
    rule: "of two readers that ask to upgrade the first waits",
    decider: () => withoutUpgrading("acquire"),
  },
  { does: "nests in what is being broken", rule: "a break ends the whole hold", decider: () => nestsInTheBroken },
  {
    does: "leaves the floor at an upgrade",
    rule: "S4: the floor is the token of the latest grant that met nobody else",
    decider: () => lowersNoFloor("mode"),
  },
  {
    does: "leaves the floor at a transfer",
    rule: "S4: the floor is the token of the latest grant that met nobody else",
    decider: () => lowersNoFloor("transfer"),
  },
];
