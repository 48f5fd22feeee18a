/**
 * A crowd's surroundings in virtual time: one table that is served like DynamoDB, and clients of it in processes of their own, with the
 * production code from the client down to the conditions of the writes. Nothing waits in real time, so the figures are exact, and the same
 * on every machine.
 */
import { LeaseIds } from "../../lib/client/ask/lease-ids.js";
import { createClient } from "../../lib/client/client.js";
import type { ClientOptions } from "../../lib/client/calls/client-options.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { DUTIES, ROUTES } from "../../lib/contract/routes.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import { LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import { tableClocks } from "../../lib/service/clocks.js";
import { lockService } from "../../lib/service/service.js";
import { NO_LOG } from "../../lib/service/log.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import type { TableBehaviour } from "../../lib/testing/like-dynamodb.js";
import type { Door } from "../../lib/testing/regions.js";
import { TABLE_NAME } from "../../lib/testing/served-table.js";
import { createHandler } from "../../lambda/handler.js";
import type { HttpResult } from "../../lambda/http.js";
import type { DynamoTable } from "../../lib/testing/table/table.js";
import { type TableCounts, ServedTable } from "../../test/simulation/dynamo/served-table.js";
import { eventOf, responseOf } from "../../test/simulation/network.js";
import { Random } from "../../test/simulation/random.js";
import { Process, World } from "../../test/simulation/world.js";

/**
 * The way of a client: straight to the table or over HTTP, in a process that has used another key (`direct`, `http`) or in a new one for
 * each call (`cold`).
 */
export type Way = "direct" | "http" | "cold";

const START_MS = Date.UTC(2027, 0, 1);
/** The time after which a scene is cut off. */
const MOST_MS = 10 * 60_000;
/** The time of the gateway and of the network, each way, in ms. */
const GATEWAY_MS = [1.5, 3] as const;
/** The largest error of a process's clock, in ms. The clocks of AWS are closer to each other. */
const CLOCK_ERROR_MS = 2;
const POLICY = createPolicy();
const NAMESPACE = "default";

type Handler = ReturnType<typeof createHandler>;
/** The duty of each route, by which it has a function of its own. */
const DUTY_OF = new Map<string, string>(
  Object.entries(ROUTES).map(([operation, route]) => [route, DUTIES[operation as keyof typeof DUTIES]]),
);

/** Watches or changes the calls of a process. */
type Through = (calls: TableCalls) => TableCalls;

/** A caller, who has a client or makes one for each call. */
export interface Caller {
  use<T>(call: (client: LockClient) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** One scene's surroundings. */
export class Arena {
  readonly world = new World(START_MS);
  readonly random: Random;
  readonly #clockErrorMs: number;
  readonly #served: ServedTable;
  readonly #clock = new Process(this.world);
  /** The idle instances of each function. An instance serves one request at a time. */
  readonly #idle = new Map<string, Handler[]>();
  #requests = 0;

  constructor(seed: number, behaviour: Partial<TableBehaviour> = {}, clockErrorMs: number = CLOCK_ERROR_MS) {
    this.#clockErrorMs = clockErrorMs;
    this.random = new Random(seed);
    this.#served = new ServedTable(this.world, this.random, behaviour);
  }

  nowMs(): number {
    return this.world.nowMs;
  }

  sleep(ms: number): Promise<void> {
    return this.world.sleep(ms);
  }

  /** The table's requests so far, and those to the service. */
  counts(): TableCounts & { readonly overHttp: number } {
    return { ...this.#served.counts(), overHttp: this.#requests };
  }

  /** The table itself, past its service. */
  get table(): DynamoTable {
    return this.#served.table;
  }

  /** Returns the calls of a new process, for what isn't a lock client. */
  calls(): TableCalls {
    return this.#served.callsOf(new Process(this.world)).calls;
  }

  /** Returns a client in a new process. Straight on the table, its requests go through what `through` makes of the process's calls. */
  client(way: Way, options: ClientOptions = {}, through: Through = (calls) => calls): LockClient {
    const process = this.#process();
    const api = way === "http" ? httpApi({ url: "http://simulated", fetch: this.#fetch }) : this.#onTable(process, through);
    return this.#clientBy(api, process, options);
  }

  /** Returns a client in a new process of a Region, straight on the table. */
  clientIn(door: Door): LockClient {
    const process = this.#process();
    return this.#clientBy(
      this.#onTable(process, (calls) => calls, door),
      process,
      {},
    );
  }

  #process(): Process {
    return new Process(this.world, { wallErrorMs: this.random.between(-this.#clockErrorMs, this.#clockErrorMs) });
  }

  #clientBy(api: ServiceApi, process: Process, options: ClientOptions): LockClient {
    const ids = new LeaseIds(process, (count) => this.random.bytes(count));
    return createClient({ api, clock: process, random: () => this.random.unit(), ids }, options);
  }

  /** Returns this many callers. Those of a warm process have used keys of their own. */
  async callers(count: number, way: Way, options: ClientOptions = {}): Promise<readonly Caller[]> {
    const callers = Array.from({ length: count }, () =>
      way === "cold" ? this.#newEachTime(options) : sameAlways(this.client(way, options)),
    );
    if (way !== "cold")
      await Promise.all(
        callers.map(({ use }, order) => use((client) => client.withLock(`warm-${order}-${this.world.serial()}`, () => undefined))),
      );
    return callers;
  }

  /** Runs until `scene` is over. @throws what it throws, or Error if it lasts too long */
  async play<T>(scene: Promise<T>): Promise<T> {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    scene.then(end, end);
    await this.world.run(this.nowMs() + MOST_MS, () => ended.signal.aborted);
    if (!ended.signal.aborted) throw new Error(`the scene is not over after ${MOST_MS} ms`);
    return scene;
  }

  #newEachTime(options: ClientOptions): Caller {
    return {
      use: async (call) => {
        const client = this.client("cold", options);
        try {
          return await call(client);
        } finally {
          await client.close();
        }
      },
      close: async () => undefined,
    };
  }

  #onTable(process: Process, through: Through, door?: Door): ServiceApi {
    const { calls, time } = this.#served.callsOf(process, door);
    const caller = { principal: "direct", namespace: NAMESPACE, requestId: "direct" };
    const deps = { store: this.#store(through(calls), process, !door), log: NO_LOG, clock: process, exposeCause: true };
    return lockService(deps, caller, tableClocks(process, time));
  }

  #store(calls: TableCalls, clock: Process, transactions = true) {
    return createDynamoStore({ calls, tableName: TABLE_NAME, policy: POLICY, clock, random: () => this.random.unit(), transactions });
  }

  readonly #fetch = (async (url: string, init: { method: string; body?: string; headers: Record<string, string> }) => {
    this.#requests++;
    await this.sleep(this.random.between(...GATEWAY_MS));
    const event = eventOf(new URL(url).pathname, init, "bench/caller", this.#clock.wallMs());
    const result = await this.#handled(event);
    await this.sleep(this.random.between(...GATEWAY_MS));
    return responseOf(result);
  }) as unknown as typeof fetch;

  async #handled(event: ReturnType<typeof eventOf>): Promise<HttpResult> {
    const duty = DUTY_OF.get(event.routeKey) ?? "acquire";
    const idle = this.#idle.get(duty) ?? [];
    this.#idle.set(duty, idle);
    const handler = idle.pop() ?? this.#instance();
    try {
      return await handler(event);
    } finally {
      idle.push(handler);
    }
  }

  #instance(): Handler {
    const process = new Process(this.world);
    const failed = (error: unknown): never => {
      throw error;
    };
    const store = this.#store(this.#served.callsOf(process).calls, process);
    return createHandler({ store, clock: process, log: () => undefined, onFailure: failed, serverWaitMs: LIMITS.serverWaitMs });
  }
}

function sameAlways(client: LockClient): Caller {
  return { use: (call) => call(client), close: () => client.close() };
}
