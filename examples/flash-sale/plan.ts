/** Parses the command line. Pure. */
import { parseArgs } from "node:util";

/** The size of the sale. */
export interface Plan {
  /** The number of buyers, which is also the number of pieces. */
  readonly buyers: number;
  readonly processes: number;
  /** The number of buyers of a process who try at the same time. */
  readonly atOnce: number;
  /** True to print a verdict on each sale as it ends, in place of the table and the machine. */
  readonly isBrief: boolean;
}

/** The plan without options. */
export const DEFAULTS: Plan = { buyers: 1000, processes: 4, atOnce: 1000, isBrief: false };

/** With fewer buyers, the sale without a lock might come out right by luck. */
const BUYERS_MIN = 40;
const PROCESSES_MAX = 16;

const OPTIONS = {
  buyers: { type: "string" },
  processes: { type: "string" },
  "at-once": { type: "string" },
  brief: { type: "boolean" },
} as const;

/** Parses `args` into a plan. @throws TypeError naming the option that is wrong, and its rule. */
export function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const buyers = wholeNumber("--buyers", values.buyers, BUYERS_MIN) ?? DEFAULTS.buyers;
  if (buyers % 2 !== 0) throw new TypeError("--buyers: must be even, half of them for each product");
  return {
    buyers,
    processes: wholeNumber("--processes", values.processes, 1, PROCESSES_MAX) ?? DEFAULTS.processes,
    atOnce: wholeNumber("--at-once", values["at-once"], 1) ?? DEFAULTS.atOnce,
    isBrief: values.brief ?? DEFAULTS.isBrief,
  };
}

function wholeNumber(name: string, text: string | undefined, min: number, max = Infinity): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new TypeError(`${name}: must be a whole number from ${min}${max === Infinity ? "" : ` to ${max}`}`);
}
