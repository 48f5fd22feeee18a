/** The doors of a table in several Regions: what each tells, when its writes meet others, and when it is cut off. */
import { describe, expect, it } from "vitest";
import { type ConflictRule, type DoorState, Regions } from "../../lib/testing/regions.js";
import { type Input, DynamoTable } from "../../lib/testing/table/table.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { TABLE } from "../../lib/store/dynamo/table.js";

const ROUND_TRIP_MS = 60;
const Key = { [TABLE.partitionKey]: "part", [TABLE.sortKey]: "key" };

/** A table with two doors, and requests of one item. */
class Scene {
  readonly clock = new VirtualClock();
  readonly #table = new DynamoTable({ tableName: "t", ...TABLE }, () => this.clock.wallMs());
  readonly #regions: Regions;
  readonly #item = this.#table.idOf({ Key });

  constructor(rule: ConflictRule = "journal") {
    this.#regions = new Regions(this.#table, { clock: this.clock, random: () => 0, roundTripMs: [ROUND_TRIP_MS, ROUND_TRIP_MS], rule });
    for (const region of ["a", "b"]) this.#regions.door(region);
  }

  set(region: string, state: DoorState): void {
    this.#regions.door(region).state = state;
  }

  /** Counts up by one in this Region, unless the count is `not`. The answer is in `answers`, once it is there. */
  write(region: string, not = -1): Answer {
    const input: Input = {
      ...{ TableName: "t", Key, ConditionExpression: "NOT n = :not" },
      ...{ UpdateExpression: "SET n = if_not_exists(n, :zero) + :one", ReturnValues: "ALL_NEW" },
      ExpressionAttributeValues: { ":zero": 0, ":one": 1, ":not": not },
    };
    const carryOut = (table: DynamoTable): unknown => table.update(input).Attributes?.["n"];
    return answerOf(this.#regions.door(region).serve({ kind: "write", items: [this.#item], carryOut }));
  }

  read(region: string): Answer {
    const carryOut = (table: DynamoTable): unknown => table.get({ TableName: "t", Key, ConsistentRead: true }).Item?.["n"];
    return answerOf(this.#regions.door(region).serve({ kind: "read", items: [this.#item], carryOut }));
  }

  query(region: string): Answer {
    const input = { TableName: "t", KeyConditionExpression: `${TABLE.partitionKey} = :p`, ExpressionAttributeValues: { ":p": "part" } };
    const carryOut = (table: DynamoTable): unknown => table.query(input).Items[0]?.["n"];
    return answerOf(this.#regions.door(region).serve({ kind: "query", items: [], carryOut }));
  }

  transact(region: string): Answer {
    return answerOf(this.#regions.door(region).serve({ kind: "transaction", items: [], carryOut: () => "written" }));
  }
}

/** The answer to a request so far: a value, or the name of an error. */
interface Answer {
  told?: unknown;
}

function answerOf(request: Promise<unknown>): Answer {
  const answer: Answer = {};
  request.then(
    (value) => (answer.told = value),
    (error: unknown) => (answer.told = (error as Error).name),
  );
  return answer;
}

const CONFLICT = "ReplicatedWriteConflictException";

describe("a table in two Regions", () => {
  it("has one state: each write and each strong read sees what the other Region was told", async () => {
    const scene = new Scene();
    const first = scene.write("a");
    await scene.clock.advance(ROUND_TRIP_MS - 1);
    expect(first).toEqual({});
    await scene.clock.advance(1);
    const [read, second] = [scene.read("b"), scene.write("b")];
    await scene.clock.advance(ROUND_TRIP_MS);
    expect([first, read, second]).toEqual([{ told: 1 }, { told: 1 }, { told: 2 }]);
  });

  it("shows a query what has come to its own copy", async () => {
    const scene = new Scene();
    scene.write("a");
    await scene.clock.advance(ROUND_TRIP_MS);
    const early = scene.query("b");
    await scene.clock.advance(ROUND_TRIP_MS);
    const late = scene.query("b");
    await scene.clock.advance(0);
    expect([early, late]).toEqual([{ told: undefined }, { told: 1 }]);
  });

  it("refuses transactions", async () => {
    const scene = new Scene();
    const answer = scene.transact("a");
    await scene.clock.advance(ROUND_TRIP_MS);
    expect(answer).toEqual({ told: "ValidationException" });
  });

  it.each([
    { rule: "journal", told: [1, CONFLICT], left: 1 },
    { rule: "first", told: [1, CONFLICT], left: 1 },
    { rule: "both", told: [CONFLICT, CONFLICT], left: undefined },
  ] as const)("carries out of two writes that meet what the rule says: $rule", async ({ rule, told, left }) => {
    const scene = new Scene(rule);
    const first = scene.write("a");
    await scene.clock.advance(10);
    const second = scene.write("b");
    await scene.clock.advance(2 * ROUND_TRIP_MS);
    const read = scene.read("a");
    await scene.clock.advance(ROUND_TRIP_MS);
    expect([first.told, second.told, read.told]).toEqual([...told, left]);
  });

  it.each(["journal", "first", "both"] as const)("control: carries out both of one Region, and both that don't meet: %s", async (rule) => {
    const scene = new Scene(rule);
    const together = [scene.write("a"), scene.write("a")];
    await scene.clock.advance(2 * ROUND_TRIP_MS);
    const later = scene.write("b");
    await scene.clock.advance(ROUND_TRIP_MS);
    expect([...together, later]).toEqual([{ told: 1 }, { told: 2 }, { told: 3 }]);
  });

  it("is refused by nobody's refused write, by the rule of the journal", async () => {
    const scene = new Scene();
    scene.write("a");
    await scene.clock.advance(2 * ROUND_TRIP_MS);
    const refused = scene.write("a", 1);
    await scene.clock.advance(10);
    const other = scene.write("b");
    await scene.clock.advance(ROUND_TRIP_MS);
    expect([refused, other]).toEqual([{ told: "ConditionalCheckFailedException" }, { told: 2 }]);
  });

  it.each([
    { state: "silent", write: undefined, read: undefined, query: undefined, left: undefined },
    { state: "deaf", write: undefined, read: undefined, query: undefined, left: 1 },
    { state: "isolated", write: "InternalServerError", read: "InternalServerError", query: "nothing", left: undefined },
  ] as const)(
    "with a door that is $state answers there as such a Region does, and in the other as ever",
    async ({ state, write, read, query, left }) => {
      const scene = new Scene();
      scene.set("a", state);
      const cut = [scene.write("a"), scene.read("a")];
      const queried = scene.query("a");
      await scene.clock.advance(2 * ROUND_TRIP_MS);
      const known = scene.read("b");
      await scene.clock.advance(ROUND_TRIP_MS);
      expect(cut.map(({ told }) => told)).toEqual([write, read]);
      expect("told" in queried).toBe(query === "nothing");
      expect(known).toEqual({ told: left });
      scene.set("a", "open");
      const back = scene.write("a");
      await scene.clock.advance(ROUND_TRIP_MS);
      expect(back).toEqual({ told: (left ?? 0) + 1 });
    },
  );
});
