/**
 * The limits of a table beside the core: the same takes by processes that remember the limit as it is, as it was, or not at all, with clocks
 * apart, costs, waits and other rates. Now and then others take between a write that is refused and the next. Each answer of a write and each
 * record is the core's. Controls: writes that leave out one part.
 */
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { type LimitRecord, type RateWithBurst, decideShut, decideTake } from "../../lib/core/rate.js";
import type { ClockReading } from "../../lib/core/time.js";
import type { TableCalls, UpdateInput } from "../../lib/store/dynamo/calls.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import type { LimitStore } from "../../lib/store/port.js";
import { type Input, DynamoTable } from "../../lib/testing/table/table.js";
import { Random } from "../simulation/random.js";
import { isThorough, sized } from "../support/tier.js";
import { dynamoStoreOn, START_MS } from "./fixture.js";

const HISTORIES = sized({ quick: 40, slow: 1000 });
/** The histories within which each mistake shows. */
const HISTORIES_OF_CONTROLS = 300;
const TAKES = 40;
const NAME = { namespace: "limits", key: "partner" };
const RATES: readonly (readonly RateWithBurst[])[] = [
  [{ count: 10, perMs: 1000, burst: 10 }],
  [{ count: 7, perMs: 60_000, burst: 1 }],
  [{ count: 4, perMs: 1000, burst: 20 }],
  [
    { count: 5, perMs: 1000, burst: 5 },
    { count: 100, perMs: 60_000, burst: 100 },
  ],
  [1, 2, 3, 4].map((count) => ({ count, perMs: 1000 * count, burst: 4 })),
];

/** Changes a write on its way. */
type Change = (input: UpdateInput) => UpdateInput;

const unchanged: Change = (input) => input;
const condition =
  (from: RegExp, to: string): Change =>
  (input) => ({
    ...input,
    ConditionExpression: input.ConditionExpression.replaceAll(from, to),
  });
const update =
  (from: RegExp, to: string): Change =>
  (input) => ({ ...input, UpdateExpression: input.UpdateExpression.replaceAll(from, to) });
const MISTAKES: Readonly<Record<string, Change>> = {
  "a candidate is replaced that is after now and alone the latest": condition(
    /\(NOT \(g\w+ > :now\)( OR g\w+ <= g\w+)+\)/g,
    "NOT (nothing > :now)",
  ),
  "a candidate is copied over a later one": condition(/ AND g\w+ >= g\d/g, ""),
  "one candidate needn't fit": condition(/ AND NOT \(g\dd > :fits\d\)/g, ""),
  "the first candidate needn't fit": condition(/ AND NOT \(g\d > :fits\d\)/g, ""),
  "other rates are replaced before they are full": condition(/NOT \(g0\w? > :full\)/g, "NOT (nothing > :full)"),
  "rates beyond its own are not looked at": condition(/ AND NOT \(g[123]\w? > :full\)/g, ""),
  "rates are taken for others": condition(
    /\(attribute_not_exists\(gp\) OR gp = :rates\)/g,
    "(attribute_not_exists(gp) OR attribute_exists(gp))",
  ),
  "the first candidate isn't charged": update(/(g\d = if_not_exists\(\w+, :zero\)) \+ :charge\d/g, "$1 + :zero"),
  "a shut takes the place of a longer one": condition(/NOT \(g0 > :shut\)/g, "NOT (nothing > :shut)"),
  "another candidate isn't charged": update(/(g\dc = if_not_exists\(\w+, :zero\)) \+ :charge\d/g, "$1 + :zero"),
};

/** Plays one history. Returns where store and core differ, and the kinds of the answers. */
// Over 60 lines: the steps share the state of the history.
async function play(seed: number, change: Change = unchanged) {
  const random = new Random(seed);
  const table = new DynamoTable({ tableName: "simulated", ...TABLE }, () => START_MS);
  const differs: string[] = [];
  const kinds = new Set<string>();
  let record: LimitRecord | undefined;
  let written: { count: number; record: LimitRecord | undefined } = { count: 0, record };
  const calls = {
    async updateItem(input: UpdateInput) {
      written = { count: written.count + 1, record };
      try {
        return table.update(change(input) as unknown as Input);
      } catch (error) {
        if (random.chance(0.5)) await others();
        throw error;
      }
    },
    getItem: async (input: object) => table.get(input as Input),
  } as unknown as TableCalls;
  const newProcess = (): LimitStore => dynamoStoreOn({ calls, tableName: "simulated" }, () => random.unit()).limits;
  const processes = [newProcess(), newProcess(), newProcess()];
  const [apartMs, changes] = [random.pick([0, 0, 900, 5000]), random.chance(0.3)];
  let rates = random.pick(RATES);
  let nowMs = START_MS;

  async function take(by: LimitStore): Promise<void> {
    const earlyMs = random.whole(0, apartMs);
    const reading = { earliestMs: nowMs - earlyMs, latestMs: nowMs - earlyMs + random.whole(0, apartMs) };
    if (random.chance(0.1)) return shut(by, reading);
    const smallest = Math.min(...rates.map(({ burst }) => burst));
    const asked = {
      rates,
      cost: random.chance(0.6) ? 1 : random.whole(1, smallest),
      waitMs: random.chance(0.5) ? 0 : random.whole(0, 3000),
    };
    written = { count: 0, record };
    const answer = await by.take(NAME, asked, () => reading);
    const { count, record: before } = written;
    const decided = decideTake(before, asked, reading);
    record = decided.next ?? record;
    // What is refused from memory, the core refuses too.
    const isSame = count > 0 ? isDeepStrictEqual(answer, decided.answer) : !answer.ok && !decided.answer.ok;
    if (!isSame) differs.push(`seed ${seed}: ${JSON.stringify([answer, decided.answer])}`);
    if (!isDeepStrictEqual(await newProcess().read(NAME), record)) differs.push(`seed ${seed}: the record`);
    kinds.add(`${decided.answer.ok ? (decided.answer.startInMs > 0 ? "later" : "now") : decided.answer.code} after ${count}`);
  }
  async function shut(by: LimitStore, reading: ClockReading): Promise<void> {
    const asked = { rates, forMs: random.whole(1, 3000) };
    written = { count: 0, record };
    const answer = await by.shut(NAME, asked, () => reading);
    const decided = decideShut(written.record, asked, reading);
    // One that is shut for longer isn't written.
    if (!isDeepStrictEqual(decided.next, written.record)) record = decided.next ?? record;
    if (!isDeepStrictEqual(answer, decided.answer)) differs.push(`seed ${seed}: a shut: ${JSON.stringify([answer, decided.answer])}`);
    if (!isDeepStrictEqual(await newProcess().read(NAME), record)) differs.push(`seed ${seed}: the record after a shut`);
    kinds.add(`shut: ${answer.ok ? "ok" : answer.code} after ${written.count}`);
  }
  /** Takes of others, while a process has the answer to a refused write on its way. */
  async function others(): Promise<void> {
    const outer = written;
    nowMs += random.pick([0, 0, 100, 10_000]);
    for (let more = random.whole(1, 2); more > 0; more--) await take(newProcess());
    written = outer;
  }
  for (let step = 0; step < TAKES && differs.length === 0; step++) {
    if (changes && random.chance(0.1)) rates = random.pick(RATES);
    nowMs += random.chance(0.05) ? 90_000 : random.whole(0, random.pick([1, 100, 1000]));
    await take(random.chance(0.2) ? newProcess() : random.pick(processes));
  }
  return { differs, kinds };
}

describe("takes of several processes", () => {
  it(`are the core's, in ${HISTORIES} histories`, { timeout: 300_000 }, async () => {
    const kinds = new Set<string>();
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const played = await play(seed);
      expect(played.differs).toEqual([]);
      for (const kind of played.kinds) kinds.add(kind);
    }
    const once = ["now", "later", "rate-limited", "limit-mismatch"].map((kind) => `${kind} after 1`);
    expect([...kinds]).toEqual(
      expect.arrayContaining([
        ...once,
        "shut: ok after 1",
        "shut: ok after 2",
        "shut: limit-mismatch after 1",
        "now after 2",
        "later after 2",
        "rate-limited after 0",
        "rate-limited after 2",
      ]),
    );
  });

  it.runIf(isThorough()).each(Object.keys(MISTAKES))("control: differ if %s", { timeout: 120_000 }, async (mistake) => {
    const search = async (): Promise<boolean> => {
      for (let seed = 1; seed <= HISTORIES_OF_CONTROLS; seed++) if ((await play(seed, MISTAKES[mistake])).differs.length > 0) return true;
      return false;
    };
    expect(await search()).toBe(true);
  });
});
