/**
 * Random histories of one run: attempts that succeed, fail, go silent and are cancelled; outcomes that expire; runners
 * that go on for longer than a retention. Rare events are frequent here, so every predicate of a form decides some
 * command.
 */
import * as fc from "fast-check";
import type { Command, Complete, Release, Renew, Reset, Start } from "../../../lib/core/commands.js";
import type { LeaseId } from "../../../lib/core/lease-id.js";
import { FOREVER_MS, LIMITS } from "../../../lib/core/limits.js";
import type { Ending, Hold, LockRecord, Payload, Run } from "../../../lib/core/record.js";
import { startedTtlAtSec } from "../../../lib/core/run/run.js";
import type { ClockReading } from "../../../lib/core/time.js";
import { large, small } from "../run-fixture.js";
import { leaseId, POLICY, START_MS } from "../fixture.js";
import { callerOf, IDS, LENGTHS_MS, MARGINS_MS, ownerOf, perhaps, rarely } from "./histories.js";

const DAY_MS = 86_400_000;
const { retentionMs: RETENTION_MS } = POLICY;

/** Never drawn: a hold beside the runner's, as a later version might write. It outlasts every history. */
const BESIDE = leaseId(9_999);
const KEEPS_MS = [LIMITS.keepResultMinMs, LIMITS.keepResultMinMs, DAY_MS, FOREVER_MS] as const;
/** The age of a hold, up to the limit on which an outcome's form may rely. */
const GRANTED_AGO_MS = [0, 0, RETENTION_MS - 1, RETENTION_MS, RETENTION_MS + 200_000, 4 * RETENTION_MS] as const;

type RunCommand = Start | Renew | Release | Complete | Reset;

interface Draft {
  readonly type: RunCommand["type"];
  /** The runner's lease (if there is none, one of the pool), a new one, or one of the pool. */
  readonly which: "runner" | "new" | number;
  readonly to: number;
  readonly intruder: boolean;
  readonly leaseMs: number | undefined;
  readonly requestHash: string;
  readonly fingerprint: string;
  readonly keepResultMs: number;
  readonly maxAttempts: number;
  readonly state: Complete["state"];
  readonly payload: Payload | undefined;
  readonly omitted: boolean;
}

interface Step {
  readonly passMs: number;
  readonly aheadMs: number;
  /** True if the step repeats the last command instead: a duplicate. */
  readonly again: boolean;
  readonly draft: Draft;
}

/** A history: the initial record (undefined: none), then the steps. */
export interface RunHistory {
  readonly remembered: LockRecord | undefined;
  readonly steps: readonly Step[];
}

/** The last one is stored nowhere. */
const payload = fc.constantFrom<Payload[]>(
  ...[small("1"), small("1"), small("2"), large("one", START_MS / 1000), large("one", START_MS / 1000 + 10 * 86_400)],
  { digest: "nowhere", bytes: 5_000 },
);

const step: fc.Arbitrary<Step> = fc.record({
  passMs: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(0, 1) },
    { weight: 3, arbitrary: fc.constantFrom(...LENGTHS_MS, ...LENGTHS_MS.map((ms) => ms - 1), ...MARGINS_MS) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 2_500 }) },
    { weight: 1, arbitrary: fc.constantFrom(LIMITS.keepResultMinMs, DAY_MS, 3 * DAY_MS) },
  ),
  aheadMs: fc.constantFrom(0, 0, 0, 1, 500, 1_500, 5_000, 9_999),
  again: rarely,
  draft: fc.record<Draft>({
    type: fc.constantFrom("start", "start", "renew", "renew", "complete", "complete", "complete", "release", "reset"),
    which: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom<Draft["which"][]>("runner", "runner", "new") },
      { weight: 1, arbitrary: fc.nat(IDS.length - 1) },
    ),
    to: fc.nat(IDS.length - 1),
    intruder: rarely,
    leaseMs: perhaps(fc.constantFrom(...LENGTHS_MS)),
    requestHash: rarely.map((other) => (other ? "other" : "same")),
    fingerprint: fc.constantFrom("", "", "one", "one", "other"),
    keepResultMs: fc.constantFrom(...KEEPS_MS),
    maxAttempts: fc.constantFrom(0, 0, 1, 3),
    state: fc.constantFrom("succeeded", "failed", "retry", "retry"),
    payload: perhaps(payload),
    omitted: rarely,
  }),
});

/** The key's record when the history begins. */
const remembered: fc.Arbitrary<LockRecord> = fc
  .record({
    ids: fc.shuffledSubarray([...IDS], { minLength: 7, maxLength: LIMITS.tombstonesMax + 1 }),
    ending: fc.constantFrom<Ending[]>("released", "expired", "taken", "broken", "cancelled"),
    floor: fc.constantFrom(...IDS.slice(0, 6)),
    fencingToken: fc.constantFrom(1, START_MS - 1, START_MS, START_MS + 5_000),
    life: fc.constantFrom("runs", "runs", "runs", "to be tried again", "interrupted", "unknown", "unknown", "unknown"),
    grantedAgoMs: fc.constantFrom(...GRANTED_AGO_MS),
    leaseMs: fc.constantFrom(...LENGTHS_MS),
    keepResultMs: fc.constantFrom(...KEEPS_MS),
    checkpoint: perhaps(fc.constantFrom(small("1"), large("one", START_MS / 1000))),
    odd: fc.constantFrom("", "", "", "broken", "beside"),
    longerKept: fc.constantFrom(0, 100),
  })
  .map(
    ({ ids: [id = "", ...ended], ending, floor, fencingToken, life, grantedAgoMs, leaseMs, keepResultMs, checkpoint, odd, longerKept }) => {
      const grantedAtMs = START_MS - grantedAgoMs;
      const made = { principal: ownerOf(id), owner: "first", mode: "exclusive", permits: 1, fencingToken, leaseMs, grantedAtMs } as const;
      const marginMs = POLICY.marginMs(leaseMs);
      const hold: Hold = {
        ...made,
        expiresAtMs: START_MS + leaseMs,
        marginMs,
        requestHash: "same",
        ...(odd === "broken" && { broken: "drain" }),
      };
      const begun = { attempt: 2, takeover: false, fingerprint: "one", keepResultMs, ...(checkpoint && { checkpoint }) };
      const runs: Readonly<Record<string, Run>> = {
        runs: { state: "running", ...begun },
        "to be tried again": {
          state: "retry",
          ...begun,
          outcome: { recordedBy: ended[0]!, principal: ownerOf(ended[0]!), owner: "", startedAtMs: 1, endedAtMs: 2, payload: small("1") },
        },
        interrupted: { state: "interrupted", ...begun },
      };
      const run = runs[life];
      const holds = {
        ...(life === "runs" && { [id]: hold }),
        ...(odd === "beside" && { [BESIDE]: { ...hold, expiresAtMs: START_MS + FOREVER_MS } }),
      };
      return {
        version: START_MS - 7,
        fencingToken,
        fenceFloor: fencingToken,
        limit: 1,
        offers: [],
        waiters: [],
        holds,
        tombstones: ended.map((leaseId) => ({ leaseId, ending })),
        lowWatermark: ended.length === LIMITS.tombstonesMax ? floor : "",
        ...(run && { run }),
        // As its start set it; heartbeats only ever extended it.
        ttlAtSec: startedTtlAtSec({ ...hold, expiresAtMs: grantedAtMs + leaseMs }, keepResultMs, POLICY) + longerKept,
      };
    },
  );

/** Draws histories. */
export const runHistories: fc.Arbitrary<RunHistory> = fc.record({
  remembered: perhaps(remembered),
  steps: fc.array(step, { minLength: 1, maxLength: 25, size: "max" }),
});

/** The commands of a history with their clocks. Each is created after the previous one was carried out. */
export async function* runCommandsOf(
  { steps }: RunHistory,
  key: string,
  read: () => Promise<LockRecord | undefined>,
): AsyncGenerator<{ readonly command: Command; readonly reading: ClockReading }> {
  let nowMs = START_MS;
  let unheard = IDS.length;
  let command: Command | undefined;
  for (const { passMs, aheadMs, again, draft } of steps) {
    nowMs += passMs;
    if (!again || !command) command = resolve(draft, key, await read(), leaseId(++unheard, nowMs - START_MS));
    yield { command, reading: { earliestMs: nowMs, latestMs: nowMs + aheadMs } };
  }
}

function resolve(draft: Draft, key: string, record: LockRecord | undefined, unheard: LeaseId): RunCommand {
  const runner = Object.keys(record?.holds ?? {}).find((id) => id !== BESIDE);
  const { which, intruder, requestHash, fingerprint, keepResultMs, maxAttempts, state, payload: said } = draft;
  // Without a runner, most commands would only be refused.
  const type = runner === undefined && which !== "runner" && draft.type !== "reset" ? "start" : draft.type;
  const leaseId = typeof which === "number" ? IDS[which]! : which === "new" && type === "start" ? unheard : (runner ?? IDS[draft.to]!);
  const lease = { key, leaseId, principal: callerOf(leaseId, intruder) };
  switch (type) {
    case "start":
      return { type, ...lease, owner: "", leaseMs: draft.leaseMs ?? 30_000, fingerprint, keepResultMs, maxAttempts, requestHash };
    case "renew": {
      const length = draft.leaseMs !== undefined && { leaseMs: draft.leaseMs };
      const { digest = "", ttlAtSec } = said ?? {};
      if (draft.omitted && ttlAtSec !== undefined) return { type, ...lease, ...length, prolonged: { digest, ttlAtSec } };
      return { type, ...lease, ...length, ...(said && { checkpoint: said }) };
    }
    case "release":
      return { type, ...lease };
    case "complete":
      if (draft.omitted) return { type, ...lease, state, omitted: true };
      return { type, ...lease, state, ...(said && { payload: said }) };
    case "reset":
      return { type, key };
  }
}
