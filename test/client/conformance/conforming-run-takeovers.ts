/**
 * Runs whose runner stops in the middle of its work and is taken over: the context that the next runner gets, and the
 * calls that the first runner may still make after it wakes up. The story is played once for each moment of waking up.
 */
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LockClient, type Run, fencedWrite, LockLostError } from "../../../lib/index.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { type FreshTable, freshTable } from "../../support/engine.js";
import { type Gate, createGate, thrownBy } from "../../support/run-gate.js";
import type { Fixture } from "./conformance.js";

/** A short lease, so that it expires soon in real time; without a heartbeat, so that it isn't renewed. */
const STOPPED = { leaseMs: 2000, heartbeat: false, keepResultMs: 86_400_000 } as const;
const MOMENTS = ["while the second works", "after the second is done"] as const;
const FAR = { step: "charging", cents: 250n };
/** Large enough for its own item. */
const LARGE = { first: { by: "the first", text: "x".repeat(4000) }, second: { by: "the second", text: "y".repeat(4000) } };

/** The context that a run's function received. */
type Told = Pick<Run, "idempotencyKey" | "attempt" | "takeover" | "checkpoint" | "fencingToken">;

interface Story {
  readonly name: string;
  readonly first: Told;
  readonly second: Told;
  /** True if the second run was still held after the first process woke up. */
  readonly secondHeld: boolean;
  readonly secondResult: unknown;
  /** The error that the first process's call threw in the end. */
  readonly zombie: unknown;
  readonly zombieAborted: boolean;
  readonly writes: Readonly<Record<"second" | "fenced" | "plain", "written" | "refused">>;
}

export function describeRunTakeovers(fixture: Fixture): void {
  describe.each(MOMENTS)("a run that was taken over, its first runner waking %s", (moment) => {
    let resource: FreshTable;
    let story: Story;
    beforeAll(async () => {
      resource = await freshTable();
      story = await play(fixture, moment, resource);
    });
    afterAll(() => resource.client.destroy());

    it("is known to be: takeover, the second attempt, what the first saved last", () => {
      expect(story.first).toMatchObject({ attempt: 1, takeover: false, checkpoint: undefined });
      expect(story.second).toMatchObject({ attempt: 2, takeover: true, checkpoint: FAR });
    });

    it("has one idempotencyKey in all its attempts", () => {
      expect([story.first.idempotencyKey, story.second.idempotencyKey]).toEqual([story.name, story.name]);
    });

    it("records its outcome by the lease that holds it, and the first is told that it has lost", () => {
      expect(story.secondHeld).toBe(true);
      expect(story.secondResult).toEqual({ value: LARGE.second, replayed: false, attempt: 2 });
      expect(story.zombie).toBeInstanceOf(LockLostError);
      expect(story.zombie).toMatchObject({ code: "lease-lost", reason: "taken", definite: true });
      expect((story.zombie as Error).message).toContain("the work is done, and not recorded");
      expect(story.zombieAborted).toBe(true);
    });

    it("does not store what the first found, large as it is", async () => {
      const replayed = await fixture.locks.runOnce(story.name, () => expect.unreachable("the work was done"));
      expect(replayed).toEqual({ value: LARGE.second, replayed: true, attempt: 2 });
      expect(await fixture.backend.isKeptApart(story.name, LARGE.first)).toBe(false);
    });

    it("control: what the second found is stored, on an item of its own", async () => {
      expect(await fixture.backend.isKeptApart(story.name, LARGE.second)).toBe(true);
    });

    it("hands its function a token that increases: a late write with the first one's is refused", () => {
      expect(story.second.fencingToken).toBeGreaterThan(story.first.fencingToken);
      expect(story.writes).toMatchObject({ second: "written", fenced: "refused" });
    });

    it("control: a late write without a token goes through", () => {
      expect(story.writes.plain).toBe("written");
    });

    it("was free after its lease and margin, however long its result is to be kept", async () => {
      const found = await fixture.locks.runs.get(story.name);
      expect(found?.keptForMs).toBeGreaterThan(86_000_000);
    });
  });

  describe("a runner that was late", () => {
    it("but not taken over has its outcome recorded, though its lease ran out", async () => {
      const name = fixture.fresh();
      const gate = createGate();
      let run: Run | undefined;
      const working = fixture.locks.runOnce(name, STOPPED, async (given) => {
        run = given;
        await gate.pass();
        return "late";
      });
      await gate.reached;
      await fixture.backend.passing(untilLost(run!));
      gate.open();
      expect(await working).toEqual({ value: "late", replayed: false, attempt: 1 });
      expect(await fixture.rival.runOnce(name, () => "again")).toEqual({ value: "late", replayed: true, attempt: 1 });
    });

    it("and failed after it was taken over is told both", async () => {
      const name = fixture.fresh();
      const gate = createGate();
      const error = new Error("no stock");
      const working = thrownBy(fixture.locks.runOnce(name, STOPPED, () => gate.pass().then(() => Promise.reject(error))));
      await gate.reached;
      await fixture.backend.passing(fixture.rival.runOnce(name, () => "second"));
      gate.open();
      expect(await working).toMatchObject({ name: "LockLostError", reason: "taken", cause: error });
      expect(await fixture.rival.runOnce(name, () => "again")).toMatchObject({ value: "second", replayed: true });
    });

    it("can't save a checkpoint over the second one's, large as it is", async () => {
      const name = fixture.fresh();
      const [first, second] = [createGate(), createGate()];
      const working = thrownBy(fixture.locks.runOnce(name, STOPPED, (run) => first.pass().then(() => run.saveCheckpoint(LARGE.first))));
      await first.reached;
      const taking = fixture.rival.runOnce(name, (run) => run.saveCheckpoint("the second's").then(() => second.pass()));
      await fixture.backend.passing(second.reached);
      first.open();
      expect(await working).toBeInstanceOf(LockLostError);
      expect((await fixture.rival.runs.get(name))?.checkpoint).toBe("the second's");
      second.open();
      await taking;
    });
  });
}

/** Plays a run that stops, a takeover by another caller, and the first runner's waking up at `moment`. */
async function play({ backend, locks, rival, fresh }: Fixture, moment: (typeof MOMENTS)[number], resource: FreshTable): Promise<Story> {
  const name = fresh();
  const write = (run: Run, item: string, fenced = true) => writeTo(resource, item, fenced ? run.fencingToken : undefined);
  const [first, second] = [work(), work()];
  const stopped = thrownBy(start(locks, first, LARGE.first, STOPPED));
  await first.gate.reached;
  await first.run!.saveCheckpoint(FAR);
  const taking = start(rival, second, LARGE.second, { keepResultMs: STOPPED.keepResultMs });
  await backend.passing(second.gate.reached);

  const writes = { second: await write(second.run!, "fenced") };
  if (moment === "after the second is done") {
    second.gate.open();
    await taking;
  }
  const zombieAborted = first.run!.signal.aborted;
  const late = { fenced: await write(first.run!, "fenced"), plain: await write(first.run!, "plain", false) };
  first.gate.open();
  const zombie = await stopped;
  const secondHeld = moment === "after the second is done" || second.run!.isHeld();
  second.gate.open();
  const secondResult = await taking;
  const story = { name, first: first.told!, second: second.told!, secondHeld, secondResult, zombie };
  return { ...story, zombieAborted, writes: { ...writes, ...late } };

  function start(client: LockClient, by: Work, value: unknown, options: object) {
    return client.runOnce(name, options, async (run) => {
      const { idempotencyKey, attempt, takeover, checkpoint, fencingToken } = run;
      Object.assign(by, { run, told: { idempotencyKey, attempt, takeover, checkpoint, fencingToken } });
      await by.gate.pass();
      return value;
    });
  }
}

interface Work {
  readonly gate: Gate;
  run?: Run;
  told?: Told;
}

function work(): Work {
  return { gate: createGate() };
}

/** Resolves when the run's lease is lost. */
function untilLost({ signal }: Run): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Writes to an item of the resource: with the token, so that a later holder's write is never undone, or without it. */
async function writeTo({ client, tableName }: FreshTable, item: string, fencingToken?: number): Promise<"written" | "refused"> {
  const fence = fencingToken === undefined ? undefined : fencedWrite(fencingToken);
  const command = new UpdateCommand({
    TableName: tableName,
    Key: { [TABLE.partitionKey]: "resource", [TABLE.sortKey]: item },
    ...fence,
    UpdateExpression: `${fence ? `${fence.UpdateExpression},` : "SET"} writes = :one`,
    ExpressionAttributeValues: { ...fence?.ExpressionAttributeValues, ":one": 1 },
  });
  try {
    await client.send(command);
    return "written";
  } catch (error) {
    if ((error as Error).name === "ConditionalCheckFailedException") return "refused";
    throw error;
  }
}
