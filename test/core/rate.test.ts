/** The decision on a take, cell by cell. */
import { describe, expect, it } from "vitest";
import {
  type LimitRecord,
  type RateWithBurst,
  type Take,
  bucketsOf,
  decideTake,
  fillMs,
  refuseRates,
  viewOfLimit,
  withBurst,
} from "../../lib/core/rate.js";

const NOW_MS = Date.UTC(2027, 0, 1);
/** 10 a second: one flows in every 100 ms. */
const TEN: RateWithBurst = { count: 10, perMs: 1000, burst: 10 };
const at = (ms: number, apartMs = 0) => ({ earliestMs: NOW_MS + ms, latestMs: NOW_MS + ms + apartMs });

/** Ten a millisecond, five at once. */
const FAST = { rates: [{ count: 10_000, perMs: 1000, burst: 5 }] };

/** Takes these in a row, each at its time in ms. Returns the answers in a word. */
function taken(takes: readonly (readonly [ms: number, take?: Partial<Take>, apartMs?: number])[], record?: LimitRecord): readonly string[] {
  return takes.map(([ms, take, apartMs]) => {
    const { answer, next } = decideTake(record, { rates: [TEN], cost: 1, waitMs: 0, ...take }, at(ms, apartMs));
    record = next ?? record;
    if (!answer.ok) return `${answer.code} ${answer.retryAfterMs}`;
    return `${answer.startInMs} left ${answer.remaining.join()}`;
  });
}

describe("a take", () => {
  it.each<readonly [name: string, takes: Parameters<typeof taken>[0], answers: readonly string[]]>([
    ["from a new limit starts now", [[0]], ["0 left 9"]],
    ["of the whole burst leaves nothing", [[0, { cost: 10 }]], ["0 left 0"]],
    [
      "of a burst leaves nothing, however soon one flows in",
      [
        [0, { ...FAST, cost: 5 }],
        [0, FAST],
      ],
      ["0 left 0", "rate-limited 1"],
    ],
    [
      "that doesn't fit is told when it would",
      [[0, { cost: 10 }], [0], [0, { cost: 3 }]],
      ["0 left 0", "rate-limited 100", "rate-limited 300"],
    ],
    [
      "fits when as much has flowed in, and not a moment sooner",
      [
        [0, { cost: 10 }],
        [299, { cost: 3 }],
        [300, { cost: 3 }],
      ],
      ["0 left 0", "rate-limited 1", "0 left 0"],
    ],
    [
      "that may wait gets a start, and the next one a later start",
      [
        [0, { cost: 10 }],
        [0, { waitMs: 500 }],
        [0, { waitMs: 500 }],
      ],
      ["0 left 0", "100 left 0", "200 left 0"],
    ],
    [
      "that may wait, but not as long, is refused and takes nothing",
      [[0, { cost: 10 }], [0, { waitMs: 99 }], [100]],
      ["0 left 0", "rate-limited 100", "0 left 0"],
    ],
    ["never makes a bucket fuller than its burst", [[0], [60_000, { cost: 10 }], [60_000]], ["0 left 9", "0 left 0", "rate-limited 100"]],
    [
      "goes by the later clock while both agree",
      [
        [0, { cost: 10 }, 2000],
        [0, {}, 2000],
        [100, {}, 2000],
      ],
      ["0 left 0", "rate-limited 100", "0 left 0"],
    ],
    [
      "counts inflow by the earlier clock if they don't",
      [
        [0, { cost: 10 }],
        [100, {}, 2001],
        [-400, {}, 2001],
      ],
      ["0 left 0", "0 left 0", "rate-limited 1701"],
    ],
    ["is dated by the later clock in any case", [[0, { cost: 10 }, 2001], [2001]], ["0 left 0", "rate-limited 100"]],
    [
      "waits if the clocks agree",
      [
        [0, { cost: 10 }, 2000],
        [0, { waitMs: 9000 }, 2000],
      ],
      ["0 left 0", "100 left 0"],
    ],
    [
      "doesn't wait if they don't",
      [
        [0, { cost: 10 }],
        [0, { waitMs: 9000 }, 2001],
      ],
      ["0 left 0", "rate-limited 100"],
    ],
  ])("%s", (_name, takes, answers) => {
    expect(taken(takes)).toEqual(answers);
  });

  it("fits all rates, or takes from none", () => {
    const rates = [TEN, { count: 3, perMs: 60_000, burst: 3 }];
    const take = { rates, cost: 2 };
    expect(
      taken([
        [0, take],
        [0, take],
        [0, { rates }],
      ]),
    ).toEqual(["0 left 8,1", "rate-limited 20000", "0 left 7,0"]);
  });

  it("fits in parts where the whole does, though charges are rounded", () => {
    const rates = [{ count: 9, perMs: 600_000, burst: 5 }];
    expect(
      taken([
        [0, { rates, cost: 2 }],
        [0, { rates }],
        [0, { rates, cost: 2 }],
        [0, { rates }],
      ]),
    ).toEqual([...["0 left 3", "0 left 2", "0 left 0"], "rate-limited 66667"]);
    const thousand = [{ count: 1000, perMs: 1000, burst: 1000 }];
    expect(
      taken([
        [0, { rates: thousand, cost: 1000 }],
        [0, { rates: thousand }],
      ]),
    ).toEqual(["0 left 0", "rate-limited 1"]);
  });

  it("has a burst of its own: more at once than flows in, or less", () => {
    expect(taken([[0, { rates: [{ ...TEN, burst: 50 }], cost: 50 }]])).toEqual(["0 left 0"]);
    expect(
      taken([
        [0, { rates: [{ ...TEN, burst: 1 }] }],
        [99, { rates: [{ ...TEN, burst: 1 }] }],
      ]),
    ).toEqual(["0 left 0", "rate-limited 1"]);
  });

  it("loses nothing by rounding: 7 a minute are 7 in every minute, for weeks", () => {
    const rates = [{ count: 7, perMs: 60_000, burst: 2 }];
    const takes = Array.from({ length: 100_000 }, (_, index) => [Math.ceil((index * 60_000) / 7), { rates }] as const);
    expect(taken(takes).filter((answer) => answer.startsWith("rate-limited"))).toEqual([]);
  });

  it("at other rates is refused until every bucket is full, and then has full ones", () => {
    const rates = [{ count: 5, perMs: 1000, burst: 5 }];
    expect(taken([[0, { cost: 4 }], [399, { rates }], [400, { rates }], [400]])).toEqual([
      "0 left 6",
      "limit-mismatch 1",
      "0 left 4",
      "limit-mismatch 200",
    ]);
  });
});

it.each([
  [1, 1, 1],
  [2, 1, 2],
  [4, 1, 4],
  [5, 2, 4],
  [10, 3, 8],
  [100, 25, 76],
])("of %i in a time, %i start at once and %i flow in; control: a rate with a burst is as it says", (count, burst, flow) => {
  const bucket = { count: flow, perMs: 60_000, burst };
  expect(withBurst({ count, perMs: 60_000 })).toEqual(bucket);
  expect(withBurst(bucket)).toEqual(bucket);
});

describe("rates that no take could come from are refused", () => {
  it.each<readonly [rates: readonly RateWithBurst[], cost: number, field: string | undefined]>([
    [[TEN], 10, undefined],
    [[TEN], 11, "cost"],
    [[TEN, { count: 3, perMs: 1000, burst: 3 }], 4, "cost"],
    [[{ count: 1, perMs: 31 * 86_400_000, burst: 1 }], 1, undefined],
    [[{ count: 1, perMs: 3 * 86_400_000, burst: 10 }], 1, undefined],
    [[TEN, { count: 1, perMs: 3 * 86_400_000, burst: 11 }], 1, "rates.1.burst"],
  ])("%j, cost %i: %s", (rates, cost, field) => {
    expect(refuseRates({ rates, cost })?.field).toBe(field);
  });
});

it("a limit is full again when its slowest rate is", () => {
  expect(fillMs([TEN, { count: 1, perMs: 60_000, burst: 3 }])).toBe(180_000);
});

it("a limit shows what is left, when the next may start, and when it is full", () => {
  const record = { buckets: bucketsOf(undefined, [TEN]).map((bucket) => ({ ...bucket, fullAtUs: (NOW_MS + 250) * 1000 })) };
  const view = { key: "partner", rates: [{ ...TEN, burst: 10 }] };
  expect(viewOfLimit("partner", record, at(0))).toEqual({ ...view, remaining: [7], nextInMs: 0, fullInMs: 250 });
  expect(viewOfLimit("partner", record, at(250))).toEqual({ ...view, remaining: [10], nextInMs: 0, fullInMs: 0 });
  expect(viewOfLimit("partner", record, at(-5000))).toEqual({ ...view, remaining: [0], nextInMs: 4350, fullInMs: 5250 });
  const slow = { count: 1, perMs: 6000, burst: 9, fullAtUs: (NOW_MS + 9000) * 1000 };
  const both = { buckets: [...record.buckets, slow] };
  expect(viewOfLimit("partner", both, at(-5000))).toMatchObject({ remaining: [0, 6], nextInMs: 4350, fullInMs: 14_000 });
});
