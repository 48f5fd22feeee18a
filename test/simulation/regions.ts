/** Several Regions of one history: processes reach the table through the door of their Region, and doors are cut off. */
import { type ConflictRule, type Door, type DoorState, Regions } from "../../lib/testing/regions.js";
import type { DynamoTable } from "../../lib/testing/table/table.js";
import type { FaultProfile } from "./faults.js";
import type { Random } from "./random.js";
import type { World } from "./world.js";

const REGIONS = ["us-east-1", "us-east-2", "us-west-2"];
/** Round trips between Regions of one continent, in ms. */
const ROUND_TRIPS_MS = [15, 30, 60, 100];
/** A door is cut off again after a while between these, in ms, and stays so for a while between those. */
const UNTIL_CUT_MS = [5_000, 60_000] as const;
const CUT_FOR_MS = [200, 40_000] as const;
const CUTS: readonly DoorState[] = ["silent", "deaf", "isolated"];

/** One history in so many has the rule by which both of two writes that meet are refused. The seed alone says so: a draw would change the other histories. */
const ONE_IN_BOTH = 8;

/** True if the history of this seed has that rule. Nobody need get on in it, so no liveness is judged. */
export function isBothRefused(seed: number): boolean {
  return seed % ONE_IN_BOTH === 0;
}

/** The doors of a table in a history. */
export interface SimulatedRegions {
  readonly roundTripMs: number;
  /** The doors in use, as many as the history has Regions. */
  readonly doors: readonly Door[];
  readonly conflicts: () => number;
  /** Opens all doors, and cuts none off any more. */
  heal(): void;
}

interface Drawn {
  readonly world: World;
  readonly random: Random;
  readonly faultProfile: FaultProfile;
  readonly areBothRefused: boolean;
}

/** Draws the Regions of a history, and cuts their doors off while its faults are active. */
export function simulatedRegions(table: DynamoTable, { world, random, faultProfile, areBothRefused }: Drawn): SimulatedRegions {
  const mostMs = random.pick(ROUND_TRIPS_MS);
  const drawn = random.pick<ConflictRule>(["journal", "journal", "first"]);
  const regions = new Regions(table, {
    clock: { monotonicMs: () => world.nowMs, after: (ms, task) => world.in(ms, task) },
    random: () => random.unit(),
    roundTripMs: [0.8 * mostMs, mostMs],
    rule: areBothRefused ? "both" : drawn,
  });
  const doors = REGIONS.slice(0, random.whole(2, 3)).map((region) => regions.door(region));
  const cut = (): void => {
    if (!faultProfile.isFoul) return;
    const door = random.pick(doors);
    door.state = random.pick(CUTS);
    world.tell?.(door.region, `the Region is ${door.state}`);
    world.in(random.between(...CUT_FOR_MS), () => {
      if (!faultProfile.isFoul) return;
      door.state = "open";
      world.tell?.(door.region, "the Region is back");
    });
    world.in(random.between(...UNTIL_CUT_MS), cut);
  };
  world.in(random.between(...UNTIL_CUT_MS), cut);
  return {
    roundTripMs: mostMs,
    doors,
    conflicts: () => regions.conflicts,
    heal: () => doors.forEach((door) => (door.state = "open")),
  };
}
