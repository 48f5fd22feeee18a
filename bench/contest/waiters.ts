/**
 * Sixteen waiters on one key, in one process and in sixteen: the requests for each grant, the order of the grants, and
 * the time from the first release until the last.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Contest, type Runner, startContest } from "./contest.js";
import type { Tasks } from "./contestant-process.js";
import { BASE_ID } from "./arena.js";
import { ENTRIES } from "./contestants.js";
import { type Plot, type Report, type Sizes, rounds } from "../report/report.js";
import { markdownTable, median } from "../report/table.js";

const WAITERS = 16;
const HOLD_MS = 10;
const POLL_MS = 50;
/** The time between two arrivals, so that the order of arrival is beyond doubt. */
const ARRIVAL_MS = 20;
const ROUNDS = 3;
/** Those that are also run with a process for each waiter. */
const SPREAD: readonly string[] = ["sdk", "table", "service"];
/** The time limit of one contestant's turn. */
const TURN_MS = 10_000;

/** A queue that was served. */
interface Drained {
  readonly requestsEach: number;
  /** Grants that came after the grant of a later arrival. */
  readonly overtaken: number;
  readonly drainMs: number;
}

/** The figures of a contestant, round by round, its waiters in one process or in as many as there are waiters. */
export interface QueueFigures {
  readonly id: string;
  readonly title: string;
  readonly processes: number;
  readonly drained: Drained[];
}

interface Lane extends QueueFigures {
  readonly runners: readonly Runner[];
  failure?: string;
}

/** Returns the table. @throws StartError if the engine or the service can't start. */
export async function waiters(sizes: Sizes): Promise<Report> {
  const { isQuick } = sizes;
  const contest = await startContest(POLL_MS, (id) => !ENTRIES[id]!.isForCyclesOnly);
  try {
    const lanes: Lane[] = contest.runners.map((runner) => laneOf([runner], runner.title));
    for (const runner of contest.runners.filter(({ id }) => SPREAD.includes(id) && !isQuick)) lanes.push(await spread(contest, runner));
    const done = await rounds(sizes, isQuick ? 1 : ROUNDS, async (round) => {
      for (const lane of lanes) await turn(lane, `QUEUE_${round}_${lanes.indexOf(lane)}`);
    });
    return reportOf(lanes, [
      `Medians of ${done} rounds by turns. Waiters arrive ${ARRIVAL_MS} ms apart while the key is held; each then holds it for ${HOLD_MS} ms.`,
      `Those without a queue ask again every ${POLL_MS} ms. “×” compares with the bare SDK, in as many processes. The requests are all that the waiters' processes send, from the first arrival on, releases and the first holder's included.`,
      ...(isQuick ? [`Not run, in this trial: ${WAITERS} processes.`] : []),
      ...lanes.filter(({ drained }) => drained.length === 0).map(({ title, failure }) => `Not run: ${title}: ${failure}.`),
      ...contest.notes,
    ]);
  } finally {
    await contest.stop();
  }
}

function laneOf(runners: readonly Runner[], title: string): Lane {
  return { id: runners[0]!.id, title, processes: runners.length, runners, drained: [] };
}

async function spread(contest: Contest, { id, title }: Runner): Promise<Lane> {
  const runners: Runner[] = [];
  for (let waiter = 0; waiter < WAITERS; waiter++) runners.push(await contest.another(id));
  return laneOf(runners, `${title}, ${WAITERS} processes`);
}

/** Runs the contestant once. One that fails or takes too long is not run again. */
async function turn(lane: Lane, key: string): Promise<void> {
  if (lane.failure !== undefined) return;
  const late = delay(TURN_MS, undefined, { ref: false }).then(() => Promise.reject(new Error(`not drained within ${TURN_MS / 1000} s`)));
  try {
    lane.drained.push(await Promise.race([drain(lane.runners, key), late]));
  } catch (error) {
    lane.failure = (error as Error).message;
    for (const runner of lane.runners) runner.kill();
  }
}

async function drain(runners: readonly Runner[], key: string): Promise<Drained> {
  const [first] = runners;
  const sent = async (): Promise<number> => {
    const each = await Promise.all(runners.map((runner) => runner.ask("requests")));
    return each.reduce((total, requests) => total + requests, 0);
  };
  for (const runner of runners) await use(runner, `${key}_WARM`); // Opens the connections.
  await first!.ask("hold", { key });
  const before = await sent();
  const grants: ReturnType<typeof use>[] = [];
  for (let waiter = 0; waiter < WAITERS; waiter++) {
    grants.push(use(runners[waiter % runners.length]!, key));
    await delay(ARRIVAL_MS);
  }
  const freedAtMs = await first!.ask("letGo");
  const times = await Promise.all(grants);
  const overtaken = times.filter(({ grantedAtMs }, arrival) => times.slice(arrival + 1).some((later) => later.grantedAtMs < grantedAtMs));
  return {
    requestsEach: ((await sent()) - before) / WAITERS,
    overtaken: overtaken.length,
    drainMs: Math.max(...times.map(({ releasedAtMs }) => releasedAtMs)) - freedAtMs,
  };
}

function use(runner: Runner, key: string): ReturnType<Tasks["use"]> {
  return runner.ask("use", { key, holdMs: HOLD_MS });
}

function reportOf(lanes: readonly Lane[], notes: readonly string[]): Report {
  const ran = lanes.filter(({ drained }) => drained.length > 0);
  const of = ({ drained }: Lane, figure: keyof Drained): number => median(drained.map((one) => one[figure]));
  const ratio = (lane: Lane): string => {
    const base = ran.find(({ id, processes }) => id === BASE_ID && processes === lane.processes);
    return base ? `${(of(lane, "drainMs") / of(base, "drainMs")).toFixed(2)}×` : "";
  };
  const rows = ran.map((lane) => [
    lane.title,
    of(lane, "requestsEach").toFixed(1),
    of(lane, "overtaken") === 0 ? "kept" : `${of(lane, "overtaken")} of ${WAITERS} overtaken`,
    `${(of(lane, "drainMs") / 1000).toFixed(2)} s`,
    ratio(lane),
  ]);
  return {
    tables: [markdownTable([[`${WAITERS} waiters on a key`, "requests a grant", "order of arrival", "drained in", "×"], ...rows])],
    notes,
    plots: [plotOf(ran, of)],
    figures: ran.map(({ id, title, processes, drained }): QueueFigures => ({ id, title, processes, drained })),
  };
}

function plotOf(lanes: readonly Lane[], of: (lane: Lane, figure: keyof Drained) => number): Plot {
  const points = lanes.map((lane) => ({ group: lane.title, series: "requests a grant", y: of(lane, "requestsEach") }));
  return { name: "waiters", title: `${WAITERS} waiters on one key`, kind: "bars", value: "requests a grant", points };
}
