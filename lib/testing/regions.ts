/**
 * A table in memory with a door in each of several Regions, as a global table with multi-Region strong consistency has them: one state, which
 * every write and every strong read asks for by a round trip between Regions. A write that meets one of another Region on the same item is
 * refused with `ReplicatedWriteConflictException`, and is certainly not carried out. There are no transactions. A door can be cut off.
 *
 * AWS's pages don't say which of two writes that meet is refused. So there are three rules, and a lock must be right under each:
 *
 *  - `journal`: both are decided where the state is. One is refused if its door, when it took the write, could not yet know of a write that
 *    another door has carried out since. So one of the two is carried out (re:Invent talk DAT440 describes such a journal);
 *  - `first`: a write is refused if one of another door is under way when it begins, unless that one is refused itself;
 *  - `both`: both are refused. Only pauses make progress.
 */
import type { Clock } from "../core/time.js";
import { serviceError, validationError } from "./table/errors.js";
import type { DynamoTable } from "./table/table.js";

type Range = readonly [least: number, most: number];

/** The rule for writes of two Regions that meet on one item. */
export type ConflictRule = "journal" | "first" | "both";

/**
 * A door as its clients find it. `open`: it answers. `silent`: nothing arrives, and nothing is answered. `deaf`: what arrives is carried out, and
 * not answered. `isolated`: the Region has lost the others, so writes and strong reads fail, and other reads show what was replicated before.
 */
export type DoorState = "open" | "silent" | "deaf" | "isolated";

/** The clock, the chance and the distances of a table in several Regions. */
export interface RegionsDeps {
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  /** Returns 0 to 1. */
  readonly random: () => number;
  /** The round trip between two Regions, in ms. */
  readonly roundTripMs: Range;
  /** @default "journal" */
  readonly rule?: ConflictRule;
}

/** A request through a door. */
export interface DoorRequest<Answer> {
  /** A read is strong, and a query isn't. */
  readonly kind: "read" | "query" | "write" | "transaction";
  /** The names of its items: one for a read and a write, none for a query. */
  readonly items: readonly string[];
  /** Carries it out at once on this table: the state, or for a query the door's own copy. It throws as DynamoDB does. */
  readonly carryOut: (table: DynamoTable) => Answer;
}

/** A write on its way. */
interface Flight {
  readonly door: string;
  readonly sentAtMs: number;
  isDone: boolean;
  isDoomed: boolean;
}

/** A request on its way: it is carried out where the state is, and then answered. */
interface Sent<Answer> {
  readonly arrived: () => Answer;
  readonly answered: () => void;
}

/** A write that was carried out. */
interface Commit {
  readonly door: string;
  readonly atMs: number;
}

/** The answer of a door that answers nothing. */
const NEVER = new Promise<never>(() => undefined);
const ISOLATED = "The replica can't reach the other Regions";
const CONFLICT = "One or more items in this request are being modified by a request in another Region";

/** The doors of one table. */
export class Regions {
  readonly #deps: RegionsDeps;
  readonly #doors = new Map<string, Door>();
  readonly #flights = new Map<string, Set<Flight>>();
  readonly #commits = new Map<string, readonly Commit[]>();
  /** The writes that were refused by a conflict. */
  conflicts = 0;

  constructor(
    private readonly table: DynamoTable,
    deps: RegionsDeps,
  ) {
    this.#deps = deps;
  }

  /** Returns the door in this Region. */
  door(region: string): Door {
    let door = this.#doors.get(region);
    if (!door) this.#doors.set(region, (door = new Door(region, this.table.copy(), this)));
    return door;
  }

  /** All doors that were asked for. */
  get doors(): readonly Door[] {
    return [...this.#doors.values()];
  }

  /** Resolves after half a round trip. */
  halfTrip(): Promise<void> {
    const [least, most] = this.#deps.roundTripMs;
    return new Promise((resolve) => void this.#deps.clock.after((least + (most - least) * this.#deps.random()) / 2, resolve));
  }

  /** Sends a request off. Returns what carries it out where the state is, once it has arrived there, and what tells that it is answered. */
  send<Answer>(door: string, { kind, items: [item = ""], carryOut }: DoorRequest<Answer>): Sent<Answer> {
    if (kind === "read") return { arrived: () => carryOut(this.table), answered: () => undefined };
    const flights = this.#flights.get(item) ?? new Set<Flight>();
    this.#flights.set(item, flights);
    const flight: Flight = { door, sentAtMs: this.#deps.clock.monotonicMs(), isDone: false, isDoomed: false };
    const met = [...flights].filter((other) => other.door !== door);
    if (this.#deps.rule === "first") flight.isDoomed = met.some((other) => !other.isDoomed);
    if (this.#deps.rule === "both" && met.length > 0) for (const one of [flight, ...met]) one.isDoomed = !one.isDone;
    flights.add(flight);
    const answered = (): void => {
      flights.delete(flight);
      if (flights.size === 0 && this.#flights.get(item) === flights) this.#flights.delete(item);
    };
    return { arrived: () => this.#commit(flight, item, carryOut), answered };
  }

  #commit<Answer>(flight: Flight, item: string, carryOut: (table: DynamoTable) => Answer): Answer {
    if (flight.isDoomed || this.#isUnseen(flight, item)) {
      this.conflicts++;
      throw serviceError("ReplicatedWriteConflictException", CONFLICT);
    }
    flight.isDone = true;
    const answer = carryOut(this.table);
    const commit = { door: flight.door, atMs: this.#deps.clock.monotonicMs() };
    this.#commits.set(item, [...this.#recent(item), commit]);
    const written = this.table.itemAt(item);
    for (const { copy } of this.doors) this.#deps.clock.after(this.#deps.roundTripMs[1], () => copy.replicate(item, written));
    return answer;
  }

  /** By the rule of the journal: another door has written, and this one didn't know of it when it sent the write. */
  #isUnseen({ door, sentAtMs }: Flight, item: string): boolean {
    if ((this.#deps.rule ?? "journal") !== "journal") return false;
    return this.#recent(item).some((commit) => commit.door !== door && commit.atMs + this.#deps.roundTripMs[0] / 2 > sentAtMs);
  }

  /** The commits of an item that a write under way may not have known of. */
  #recent(item: string): readonly Commit[] {
    const sinceMs = this.#deps.clock.monotonicMs() - 2 * this.#deps.roundTripMs[1];
    return (this.#commits.get(item) ?? []).filter(({ atMs }) => atMs > sinceMs);
  }
}

/** The table as it is reached in one Region. */
export class Door {
  state: DoorState = "open";

  constructor(
    readonly region: string,
    /** The Region's own copy, which queries see. It is behind by a round trip. */
    readonly copy: DynamoTable,
    private readonly regions: Regions,
  ) {}

  /**
   * Serves a request by a round trip. A door that is cut off meanwhile answers nothing, and what had arrived stands.
   * @throws what the request throws; or ServiceError: a conflict, a transaction, or an isolated Region
   */
  async serve<Answer>(request: DoorRequest<Answer>): Promise<Answer> {
    const { kind, carryOut } = request;
    if (this.state === "silent") return NEVER;
    if (kind === "transaction")
      throw validationError("Transactions are not supported on this table: it has multi-Region strong consistency");
    if (kind === "query") return this.#answered(kind, () => carryOut(this.copy));
    if (this.state === "isolated") throw serviceError("InternalServerError", ISOLATED, 500);
    const { arrived, answered } = this.regions.send(this.region, request);
    await this.regions.halfTrip();
    const outcome = outcomeOf(arrived);
    await this.regions.halfTrip();
    answered();
    return this.#answered(kind, outcome);
  }

  #answered<Answer>(kind: DoorRequest<Answer>["kind"], outcome: () => Answer): Answer | Promise<never> {
    if (this.state === "silent" || this.state === "deaf") return NEVER;
    if (this.state === "isolated" && kind !== "query") throw serviceError("InternalServerError", ISOLATED, 500);
    return outcome();
  }
}

/** Carries something out, and returns what returns or throws its outcome. */
function outcomeOf<Answer>(carryOut: () => Answer): () => Answer {
  try {
    const answer = carryOut();
    return () => answer;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
