/**
 * The checks of a table in several Regions, at the end of a history, when no door is cut off and clocks are within their errors: clients of
 * two Regions straight on the table. Then a Region is cut off for good.
 */
import { DEFAULTS, takeoverMarginMs } from "../../../lib/core/limits.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { LockUnavailableError } from "../../../lib/client/wire/errors.js";
import type { Door } from "../../../lib/testing/regions.js";
import type { DynamoBackend } from "../dynamo-backend.js";
import { drawClockError } from "../faults.js";
import type { SimulatedRegions } from "../regions.js";
import type { Actor, Stage } from "../stage.js";
import { directClient } from "./direct.js";

const FIRST_OF_CHECK = 400;
const LEASE_MS = 6000;
/** The callers of each Region that want one key, and their calls. */
const CALLERS = 3;
const CALLS = 4;
/** The longest time of a check, in true time. */
const CHECK_MS = 120_000;
/** The resolution of the table's time, and the longest pause between two polls of a waiter. */
const SLACK_MS = 1000 + 1500;

/** Runs the checks. */
// Over 60 lines: one model or one server, whose parts share its state.
export async function checkRegions(stage: Stage, dynamo: DynamoBackend, regions: SimulatedRegions): Promise<void> {
  const { world, random, oracle } = stage;
  let index = FIRST_OF_CHECK;
  /** A client of a new process in this Region. */
  const clientIn = (door: Door | undefined): Actor => {
    const made = stage.actor(index++);
    made.process.wallErrorMs = drawClockError(random, DEFAULTS.clockErrorMs);
    return { ...made, client: directClient(dynamo, made, random, oracle, door) };
  };
  const [here, there] = regions.doors;
  await done(
    "S19",
    Promise.all([...["lock", "run", "limit"].entries()].map(([at, what]) => checkKnown(`${what}_${at}`, clientIn(here), clientIn(there)))),
  );
  await done("L11", checkConflicts([here, there].flatMap((door) => Array.from({ length: CALLERS }, () => clientIn(door)))));
  await checkLostRegion(clientIn(here), clientIn(there));

  /** Runs the world until the check is over. */
  async function done(property: "S19" | "L11", check: Promise<unknown>): Promise<void> {
    const progress = { isOver: false };
    void check.catch((error: unknown) => oracle.fail(property, String(error))).finally(() => (progress.isOver = true));
    await world.run(world.nowMs + CHECK_MS, () => progress.isOver);
    if (!progress.isOver) oracle.fail(property, "a check has no end");
  }

  /** S19: the other Region knows at once what one has told. */
  async function checkKnown(key: string, { client: teller }: Actor, { client: knower }: Actor): Promise<void> {
    const lease = await teller.acquire(key, { leaseMs: LEASE_MS });
    const { holders } = await knower.inspect(key);
    if (holders[0]?.fencingToken !== lease.fencingToken) oracle.fail("S19", `${key}: a lease is unknown in another Region`);
    await lease.release();
    if ((await knower.inspect(key)).holders.length > 0) oracle.fail("S19", `${key}: a release is unknown in another Region`);
    await teller.runOnce(key, () => Promise.resolve(key));
    if ((await knower.runs.get(key))?.state !== "succeeded") oracle.fail("S19", `${key}: an outcome is unknown in another Region`);
    const limit = { rates: [{ count: 1, perMs: 3_600_000, burst: 1 }] };
    await teller.limiter(key, limit).take();
    if ((await knower.limiter(key, limit).remaining())[0] !== 0) oracle.fail("S19", `${key}: a take is unknown in another Region`);
  }

  /** L11: writes of two Regions that meet are no outage, and both Regions get on. */
  async function checkConflicts(callers: readonly Actor[]): Promise<void> {
    const work = async ({ client }: { readonly client: LockClient }): Promise<void> => {
      for (let call = 0; call < CALLS; call++)
        await client.withLock("HOT", { leaseMs: LEASE_MS, waitMs: CHECK_MS }, () => world.sleep(random.between(0, 40)));
    };
    await Promise.all(
      callers.map((caller) =>
        work(caller).catch((error: unknown) => {
          const what = error instanceof LockUnavailableError ? "is told as an outage" : `fails: ${String(error)}`;
          oracle.fail("L11", `a write that met another ${what}`);
        }),
      ),
    );
  }

  /** L10: a Region is cut off with the holder of a key in it. A caller in another has the key in time. */
  async function checkLostRegion(holder: Actor, caller: Actor): Promise<void> {
    const key = "LOST";
    const granted = { first: false, next: false };
    void holder.client.acquire(key, { leaseMs: LEASE_MS, waitMs: CHECK_MS }).then(() => (granted.first = true));
    await world.run(world.nowMs + CHECK_MS, () => granted.first);
    if (here) here.state = "silent";
    holder.process.crash();
    const lostAtMs = world.nowMs;
    const boundMs = LEASE_MS + takeoverMarginMs(LEASE_MS) + 2 * DEFAULTS.clockErrorMs + SLACK_MS + 10 * regions.roundTripMs;
    void caller.client.acquire(key, { leaseMs: LEASE_MS, waitMs: CHECK_MS }).then(() => (granted.next = true));
    await world.run(lostAtMs + boundMs, () => granted.next);
    if (!granted.next) oracle.fail("L10", `${key}: not granted ${boundMs} ms after its Region was cut off`);
  }
}
