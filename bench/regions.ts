/**
 * Locks on a table in two Regions, in virtual time: what a lock and a set take at the round trip between the Regions, and how two Regions share
 * one key. docs/surviving-a-region.md shows the table (`npx vitest run test/docs/surviving-a-region -u`).
 */
import type { LockClient } from "../lib/client/calls/lock-client.js";
import { type ConflictRule, Regions } from "../lib/testing/regions.js";
import { Arena } from "./crowds/arena.js";
import { percentile } from "./crowds/figures.js";
import { markdownTable } from "./report/table.js";

const ROUND_TRIPS_MS = [15, 30, 60, 100];
const SEED = 1;
/** The locks and sets of which a median is told. */
const ALONE = 100;
const SETS = 40;
/** The time for which a key is shared, and that of each hold, in ms. */
const SHARED_MS = 60_000;
const HOLD_MS = 50;

/** The rules for writes of two Regions that meet. */
const RULES: Readonly<Record<ConflictRule, string>> = {
  journal: "the one that arrives later is refused (assumed)",
  first: "one is refused if another is under way, unless that is refused itself",
  both: "both are refused",
};

/** The table of round trips. */
export async function regionsTable(): Promise<string> {
  const rows: string[][] = [];
  for (const roundTripMs of ROUND_TRIPS_MS) {
    const alone = await medianMs(roundTripMs, ALONE, (client, at) => client.acquire(`key-${at}`));
    const sets = [];
    for (const keys of [2, 5])
      sets.push(
        await medianMs(roundTripMs, SETS, (client, at) => client.acquireAll(Array.from({ length: keys }, (_, key) => `${at}-${key}`))),
      );
    const shared = [];
    for (const callers of [1, 10]) shared.push(await sharing(roundTripMs, callers));
    rows.push([`${roundTripMs} ms`, ...[alone, ...sets].map((ms) => `${ms.toFixed(0)} ms`), ...shared]);
  }
  const head = ["round trip", "a lock", "a set of 2", "of 5", "1 caller in each Region: a minute", "10 in each: a minute, longest wait"];
  return markdownTable([head, ...rows]);
}

/** The table of the rules for writes that meet: two Regions share one key. */
export async function rulesTable(): Promise<string> {
  const rows: string[][] = [];
  for (const [rule, meaning] of Object.entries(RULES)) {
    const shared = [];
    for (const roundTripMs of [30, 60, 100]) shared.push(await sharing(roundTripMs, 10, rule as ConflictRule));
    rows.push([`\`${rule}\`: ${meaning}`, ...shared]);
  }
  return markdownTable([["the rule", "10 in each Region, 30 ms: a minute, longest wait", "60 ms", "100 ms"], ...rows]);
}

/** An arena whose table has two doors. */
function arenaOf(roundTripMs: number, rule: ConflictRule = "journal") {
  const arena = new Arena(SEED);
  const clock = { monotonicMs: () => arena.nowMs(), after: arena.world.in.bind(arena.world) };
  const regions = new Regions(arena.table, {
    clock,
    random: () => arena.random.unit(),
    roundTripMs: [0.9 * roundTripMs, 1.1 * roundTripMs],
    rule,
  });
  return { arena, regions, doors: [regions.door("here"), regions.door("there")] as const };
}

/** The median time of an acquire by one caller, whose process has used the table before. */
async function medianMs(
  roundTripMs: number,
  count: number,
  acquire: (client: LockClient, at: number) => Promise<{ release(): Promise<unknown> }>,
): Promise<number> {
  const { arena, doors } = arenaOf(roundTripMs);
  const client = arena.clientIn(doors[0]);
  const tookMs: number[] = [];
  const scene = async (): Promise<void> => {
    await client.withLock("warm", () => undefined);
    for (let at = 0; at < count; at++) {
      const beganMs = arena.nowMs();
      const lease = await acquire(client, at);
      tookMs.push(arena.nowMs() - beganMs);
      await lease.release();
    }
  };
  await arena.play(scene());
  return percentile(tookMs, 50);
}

/** The holds of one key in each Region within a minute, and with several callers the longest wait. */
async function sharing(roundTripMs: number, callers: number, rule?: ConflictRule): Promise<string> {
  const { arena, doors } = arenaOf(roundTripMs, rule);
  const waits: number[] = [];
  const holds = [0, 0];
  let failed = 0;
  const untilMs = arena.nowMs() + SHARED_MS;
  const caller = async (door: number): Promise<void> => {
    const client = arena.clientIn(doors[door] ?? doors[0]);
    while (arena.nowMs() < untilMs) {
      const beganMs = arena.nowMs();
      const work = async (): Promise<void> => {
        waits.push(arena.nowMs() - beganMs);
        holds[door] = (holds[door] ?? 0) + 1;
        await arena.sleep(HOLD_MS);
      };
      await client.withLock("HOT", { waitMs: SHARED_MS }, work).catch(() => failed++);
    }
  };
  await arena.play(Promise.all(doors.flatMap((_, door) => Array.from({ length: callers }, () => caller(door)))));
  const shared = holds.join(" + ");
  const longest = callers === 1 ? "" : `, ${(Math.max(...waits) / 1000).toFixed(1)} s`;
  return `${shared}${longest}${failed > 0 ? `, ${failed} calls failed` : ""}`;
}
