/**
 * Durable executions that use locks and runs of the real service, its handler and its agent, on a clock that a test turns. The function's client is
 * the one over HTTP; its requests are counted.
 */
import { createHandler } from "../../lambda/handler.js";
import { withDurableLock, withDurableRun } from "../../lib/durable.js";
import type { DurableLockOptions, DurableRun, DurableRunOptions, DurableWork } from "../../lib/durable.js";
import { createClient } from "../../lib/client/client.js";
import type { ClientOptions } from "../../lib/client/calls/client-options.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { systemRuntime } from "../../lib/client/runtime.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { createPolicy } from "../../lib/core/policy.js";
import { type Tell, LOST_PLACE, sweep } from "../../lib/service/agent.js";
import type { Log, LogLine } from "../../lib/service/log.js";
import { oneClock } from "../../lib/service/clocks.js";
import type { LockStore, SleeperStore } from "../../lib/store/port.js";
import { createMemoryStore } from "../support/memory-store.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { fetchFrom } from "../support/handler-fetch.js";
import { type Execution, type Sandbox, DurableLambda, pathOf } from "./durable-lambda.js";

/** The key of most tests. */
export const KEY = "ORDER_1";
const MINUTE_MS = 60_000;

/** The records of a scene. */
export interface Stores {
  readonly store: LockStore;
  /** Without it, the service has no agent. */
  readonly sleepers?: SleeperStore;
}

/** Records in memory. */
export function inMemory(clock: VirtualClock): Required<Stores> {
  return { store: createMemoryStore({ policy: createPolicy(), clock }), sleepers: createMemorySleepers() };
}

/** A lock service with an agent, and the executions of one function. */
export class Scene {
  /** The requests of the function to the lock service. */
  readonly requests: string[] = [];
  readonly failures: unknown[] = [];
  /** The leases that were granted, in this order. */
  readonly granted: LogLine[] = [];
  /** Called before each of these requests arrives. */
  onRequest: () => Promise<void> = async () => undefined;
  readonly lambda: DurableLambda;
  /** Another caller of the same service. */
  readonly rival: LockClient;
  readonly #fetch: typeof fetch;
  readonly #stores: Stores;

  readonly #log: Log = (line) => void (line.event === "granted" && this.granted.push(line));

  constructor(
    readonly clock: VirtualClock,
    stores: Stores,
  ) {
    this.#stores = stores;
    const onFailure = (error: unknown): void => void this.failures.push(error);
    const handler = createHandler({ clock, ...stores, log: this.#log, onFailure });
    this.#fetch = fetchFrom(handler, clock);
    this.lambda = new DurableLambda(clock, async (url, init) => {
      this.requests.push(pathOf(url, init).replace(/leases\/[^/]+/, "leases/{id}"));
      await this.onRequest();
      return this.#fetch(url, init);
    });
    this.rival = this.client({ fetch: this.#fetch });
  }

  /** A client in this process. */
  client({ fetch: send }: Pick<Sandbox, "fetch">, options: ClientOptions = {}): LockClient {
    return createClient(systemRuntime(httpApi({ url: "http://locks.test", fetch: send }), this.clock), options);
  }

  /** Starts an execution that does `work` under the lock. */
  start<T>(
    name: string,
    work: (lock: Parameters<DurableWork<T>>[0], sandbox: Sandbox) => Promise<T>,
    options: DurableLockOptions & { key?: string } = {},
  ): Execution {
    const { key = KEY, ...given } = options;
    return this.lambda.start(name, (ctx, sandbox) => withDurableLock(ctx, this.client(sandbox), key, given, (lock) => work(lock, sandbox)));
  }

  /** Starts an execution that does `work` once for the key, and returns its result. */
  startRun<T>(
    name: string,
    work: (run: DurableRun, sandbox: Sandbox) => Promise<T>,
    options: DurableRunOptions & { key?: string } = {},
  ): Execution {
    const { key = KEY, ...given } = options;
    return this.lambda.start(name, (ctx, sandbox) => withDurableRun(ctx, this.client(sandbox), key, given, (run) => work(run, sandbox)));
  }

  /** Tells a callback, as the agent's request to Lambda does. */
  readonly tell: Tell = async ({ callbackId = "" }, outcome) => {
    try {
      this.lambda.complete(callbackId, outcome === LOST_PLACE ? { Error: { ErrorType: outcome } } : { Result: JSON.stringify(outcome) });
      return "told";
    } catch (error) {
      const { name } = error as Error;
      if (name === "CallbackTimeoutException" || name === "ResourceNotFoundException") return "gone";
      throw error;
    }
  };

  sweep(tell = this.tell) {
    const { clock } = this;
    const { store, sleepers = createMemorySleepers() } = this.#stores;
    const onFailure = (error: unknown): void => void this.failures.push(error);
    const isRunning = async (arn: string): Promise<boolean> => this.lambda.statusOf(arn) === "RUNNING";
    return sweep({ store, sleepers, tell, isRunning, clock, clocks: oneClock(clock), log: this.#log, onFailure });
  }

  /** Lets minutes pass. Each begins with the agent's sweep, and all that is due runs. */
  async pass(minutes: number): Promise<void> {
    for (let minute = 0; minute < minutes; minute++) {
      await this.sweep();
      await this.lambda.run();
      await this.clock.advance(MINUTE_MS);
      await this.lambda.run();
    }
  }
}

export function scene(stores: (clock: VirtualClock) => Stores = inMemory): Scene {
  const clock = new VirtualClock();
  return new Scene(clock, stores(clock));
}
