/**
 * The AWS SDK's client of one process, in simulated time. A request travels to the table and back. It may be lost on either leg, arrive
 * late, be throttled or conflict with a transaction. Requests that the SDK would retry are sent again, even if the write had succeeded.
 * Other errors are thrown, with the SDK's names and its count of attempts.
 */
import { isConditionFailed } from "../../../lib/store/dynamo/calls.js";
import { TABLE_CALLS } from "../../../lib/store/dynamo/http-sender.js";
import type { FaultProfile } from "../faults.js";
import type { Random } from "../random.js";
import type { Process, World } from "../world.js";
import { targetOf } from "../../../lib/testing/served-table.js";
import { serviceError, transactionCanceled } from "../../../lib/testing/table/errors.js";
import type { Door } from "../../../lib/testing/regions.js";
import type { DynamoTable, Input } from "../../../lib/testing/table/table.js";
import type { ValueMap } from "../../../lib/testing/table/values.js";

/** A command in the form that the SDK's stand-in produces. */
export interface Sent {
  readonly operation: string;
  readonly input: Input;
}

/** The parts that all clients of a table share. */
export interface TableWorld {
  readonly world: World;
  readonly random: Random;
  readonly faultProfile: FaultProfile;
  readonly table: DynamoTable;
  /** The error of the table's own clock, in ms. */
  readonly clockErrorMs: number;
  /** The items of transactions in progress. */
  readonly inTransaction: Set<string>;
  /** Called with the true time at which the next write was decided. */
  readonly deciding: (atMs: number) => void;
  /** Called for requests that the store should never send or that the table doesn't support. */
  readonly onMisuse: (what: string) => void;
  /** Called for every write that reaches the table, whatever its result. */
  readonly onTried: (input: Input) => void;
  /** Called with an item that a sweep has deleted. */
  readonly onDeleted: (item: ValueMap) => void;
  /** Called when all items of a write or of a transaction are written. */
  readonly onDone: () => void;
  /** Called when a process gets the answer to a request, also one that refuses its condition, with the time since it was decided. */
  readonly onAnswered?: (input: Input, tookMs: number, isRefused: boolean) => void;
}

interface Answer {
  readonly output: object;
  readonly response: { readonly headers: Readonly<Record<string, string>> };
}

type Handler = (args: object) => Promise<Answer>;
type Middleware = (next: Handler) => Handler;

/** The SDK's longest pause before its first retry. It doubles before each further one. */
const BACKOFF_MS = 100;
const RETRIED: ReadonlySet<string> = new Set(["TimeoutError", "InternalServerError", "ThrottlingException"]);
const TRANSACTION_MS = 60;
/** One process's client. */
export class TableClient {
  readonly #shared: TableWorld;
  readonly #process: Process;
  readonly #middlewares: Middleware[] = [];
  /** Registers a listener to every attempt. The table's clock adds one. */
  readonly middlewareStack = { add: (middleware: Middleware): void => void this.#middlewares.push(middleware) };

  constructor(
    shared: TableWorld,
    process: Process,
    /** The door of the process's Region. @default a table of one Region */
    private readonly door?: Door,
  ) {
    this.#shared = shared;
    this.#process = process;
  }

  /** Sends a command and retries it as the SDK does. */
  async send({ operation, input }: Sent): Promise<object> {
    const { world, random } = this.#shared;
    const decidedAtMs = world.nowMs;
    const asked = operation === "TransactWriteItems" ? { ClientRequestToken: tokenFrom(random), ...input } : input;
    if ((operation === "UpdateItem" || operation === "DeleteItem") && input["ConditionExpression"] === undefined)
      this.#shared.onMisuse("a write without a condition");
    if (operation === "GetItem" && input["ConsistentRead"] !== true) this.#shared.onMisuse("a read that may be old");
    const attempt = this.#middlewares.reduce<Handler>(
      (next, middleware) => middleware(next),
      () => this.#attempt(operation, asked, decidedAtMs),
    );
    for (let attempts = 1; ; attempts++) {
      try {
        const { output } = await attempt({});
        this.#shared.onAnswered?.(input, world.nowMs - decidedAtMs, false);
        return output;
      } catch (error) {
        const { name, $metadata } = error as Error & { $metadata?: { attempts?: number } };
        if (isConditionFailed(error)) this.#shared.onAnswered?.(input, world.nowMs - decidedAtMs, true);
        if (!RETRIED.has(name) || attempts === TABLE_CALLS.maxAttempts) {
          if ($metadata) $metadata.attempts = attempts;
          throw error;
        }
        await this.#wait(random.between(0, BACKOFF_MS * 2 ** attempts));
      }
    }
  }

  /** Sends one request. Resolves with its answer if it arrives in time. */
  #attempt(operation: string, input: Input, decidedAtMs: number): Promise<Answer> {
    const { world, random, faultProfile } = this.#shared;
    const { mix } = faultProfile;
    const strikes = (chance: number): boolean => faultProfile.isFoul && random.chance(chance);
    const isRequestLost = strikes(mix.loseWrite);
    const isAnswerLost = strikes(mix.loseAnswer);
    const isFailure = !isRequestLost && !isAnswerLost && strikes(mix.loseAnswer / 4);
    const isThrottled = strikes(mix.throttle);
    const onTheWayMs = strikes(0.1) ? random.between(0, mix.stallMs) : random.between(0, 4);
    return new Promise((resolve, reject) => {
      const isLate = onTheWayMs > TABLE_CALLS.requestHandler.requestTimeout;
      // A door that is cut off may not answer either.
      if (isRequestLost || isAnswerLost || isLate || this.door)
        world.in(TABLE_CALLS.requestHandler.requestTimeout, () => this.#process.deliver(() => reject(timeout())));
      if (isRequestLost) return;
      world.in(onTheWayMs, () => {
        const arrived = isThrottled ? Promise.reject(throttled()) : this.#carryOut(operation, input, decidedAtMs);
        if (isAnswerLost || isLate) return void arrived.catch(() => undefined);
        void arrived.then(
          (answer) => this.#process.deliver(() => (isFailure ? reject(failure()) : resolve(answer))),
          (error: unknown) => this.#process.deliver(() => reject(error instanceof Error ? error : new Error(String(error)))),
        );
      });
    });
  }

  /** Carries out the operation at the table. */
  async #carryOut(operation: string, input: Input, decidedAtMs: number): Promise<Answer> {
    const { table, onMisuse } = this.#shared;
    const carryOut = (on: DynamoTable): object => this.#on(on, operation, input, decidedAtMs);
    try {
      if (this.door) {
        return this.#answer(await this.door.serve({ ...targetOf(table, operation, input), carryOut }));
      }
      return this.#answer(operation === "TransactWriteItems" ? await this.#transact(input, decidedAtMs) : carryOut(table));
    } catch (error) {
      const { name, message } = error as Error;
      if (name === "ValidationException" || name === "Error") onMisuse(message);
      throw error;
    }
  }

  #on(table: DynamoTable, operation: string, input: Input, decidedAtMs: number): object {
    const { inTransaction, deciding, onTried, onDone } = this.#shared;
    if (operation === "GetItem") return table.get(input);
    if (operation === "Query") return table.query(input);
    if (operation === "DeleteItem") return this.#delete(table, input);
    if (operation !== "UpdateItem") throw new Error(`this table does not know the operation ${operation}`);
    onTried(input);
    if (inTransaction.has(table.idOf(input))) throw serviceError("TransactionConflictException", "Transaction is ongoing for the item");
    deciding(decidedAtMs);
    const updated = table.update(input);
    onDone();
    return updated;
  }

  /** Carries out the deletion of a sweep. */
  #delete(table: DynamoTable, input: Input): object {
    const item = table.itemAt(table.idOf(input));
    const deleted = table.delete(input);
    if (item) this.#shared.onDeleted(item);
    return deleted;
  }

  /** Carries out a transaction. It locks its items for a while, and other writes to them fail with a conflict in the meantime. */
  async #transact(input: Input, decidedAtMs: number): Promise<object> {
    const { world, random, faultProfile, table, inTransaction, deciding, onTried, onDone } = this.#shared;
    for (const item of input["TransactItems"] as readonly { readonly Update: Input }[]) onTried(item.Update);
    const ids = table.idsOf(input);
    if (ids.some((id) => inTransaction.has(id)))
      throw transactionCanceled(ids.map((id) => ({ Code: inTransaction.has(id) ? "TransactionConflict" : "None" })));
    ids.forEach((id) => inTransaction.add(id));
    try {
      if (faultProfile.isFoul && random.chance(faultProfile.mix.conflict)) await world.sleep(random.between(0, TRANSACTION_MS));
      deciding(decidedAtMs);
      const written = table.transactWrite(input);
      onDone();
      return written;
    } finally {
      ids.forEach((id) => inTransaction.delete(id));
    }
  }

  #answer(members: object): Answer {
    const output = { ...members, $metadata: { requestId: "R1" } };
    if (this.#middlewares.length === 0) return { output, response: { headers: {} } };
    const { world, clockErrorMs } = this.#shared;
    return { output, response: { headers: { "x-amzn-requestid": "R1", date: new Date(world.nowMs + clockErrorMs).toUTCString() } } };
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#process.after(ms, resolve));
  }
}

function tokenFrom(random: Random): string {
  return random.bytes(8).join("-");
}

function timeout(): Error {
  return Object.assign(new Error("Connection timed out"), { name: "TimeoutError", $metadata: { attempts: 1 } });
}

function throttled(): Error {
  return serviceError("ThrottlingException", "Throughput exceeds the current capacity of your table");
}

function failure(): Error {
  return serviceError("InternalServerError", "The request processing has failed because of an unknown error", 500);
}
