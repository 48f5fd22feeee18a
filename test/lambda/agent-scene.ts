/**
 * A service with an agent, on records in memory or on an engine. The agent calls Step Functions and Lambda over HTTP, as far as it calls
 * them. Clocks are turned.
 */
import { expect, inject } from "vitest";
import { awsIsRunning, awsTell } from "../../lambda/executions.js";
import { createPolicy } from "../../lib/core/policy.js";
import { systemClock } from "../../lib/core/time.js";
import { type AgentDeps, sweep } from "../../lib/service/agent.js";
import { oneClock } from "../../lib/service/clocks.js";
import type { LogLine } from "../../lib/service/log.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { createSleeperStore } from "../../lib/store/dynamo/sleeper-store.js";
import { createMemoryStore } from "../support/memory-store.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import type { LockStore, SleeperStore } from "../../lib/store/port.js";
import type { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { ACQUIRE, CHECK, directService, RELEASE } from "../support/direct-service.js";
import { engineCalls, freshTable } from "../support/engine.js";
import type { Reply } from "../support/reply.js";
import type { WakeTargets } from "../support/wake-targets.js";

/** The length of the leases, in ms: the shortest that may be tied. */
export const LEASE_MS = 180_000;
/** The time between two sweeps, in ms. */
export const MINUTE_MS = 60_000;
/** The time in ms for which an agent leaves what was granted, stored or claimed just now to the request or the agent that did it. */
export const OTHERS_MS = 30_000;

/** The records of a service, and those of its agent. */
export interface Stores {
  readonly store: LockStore;
  readonly sleepers: SleeperStore;
  /** Another process on the same records: the agent's. */
  readonly other: LockStore;
}
const policy = createPolicy();

/** Makes records in memory. */
export function inMemory(clock: VirtualClock): Promise<Stores> {
  const store = createMemoryStore({ policy, clock });
  return Promise.resolve({ store, other: store, sleepers: createMemorySleepers() });
}

/**
 * Makes records on an engine.
 * @param left what conditions of writes leave out, for a control
 */
export async function onEngine(clock: VirtualClock, left = ""): Promise<Stores> {
  const { tableName, client } = await freshTable();
  client.destroy();
  const calls = engineCalls(inject("engineEndpoint"));
  const update = calls.updateItem.bind(calls);
  calls.updateItem = (input) => update({ ...input, ConditionExpression: input.ConditionExpression.replace(left, "") });
  const place = { calls, tableName, region: async () => "us-east-1" };
  const process = () => createDynamoStore({ ...place, policy, clock, random: () => 0 });
  return { store: process(), other: process(), sleepers: createSleeperStore(place) };
}

/** The records, by where they are. */
export const STORES = [
  ["in memory", inMemory],
  ["on an engine", onEngine],
] as const;

/** The options of an acquire besides its body. */
interface AskedAs {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly authorizer?: object;
}

/** A service with an agent, and callers that use one key. */
export class AgentScene {
  readonly lines: LogLine[] = [];
  readonly failures: string[] = [];
  readonly service;
  readonly #calls;

  constructor(
    readonly clock: VirtualClock,
    readonly stores: Stores,
    aws: WakeTargets,
  ) {
    this.service = directService({ clock, store: stores.store, sleepers: stores.sleepers });
    this.#calls = { tell: awsTell(aws.env, systemClock), isRunning: awsIsRunning(aws.env, systemClock, () => 0) };
  }

  newId(): string {
    return this.service.newId();
  }

  /** Acquires, and returns the status. */
  async acquire(leaseId: string, { key = "ORDER_1", headers = {}, authorizer, ...body }: AskedAs & object = {}): Promise<number> {
    const as = { key, leaseId, headers, ...(authorizer && { authorizer }) };
    return (await this.service.ask(ACQUIRE, { ...as, body: { leaseMs: LEASE_MS, ...body } })).status;
  }

  check(leaseId: string): Promise<Reply> {
    return this.service.ask(CHECK, { leaseId });
  }

  async release(leaseId: string): Promise<void> {
    expect((await this.service.ask(RELEASE, { leaseId })).status).toBe(204);
  }

  agent(more: Partial<AgentDeps> = {}): AgentDeps {
    return {
      ...{ store: this.stores.other, sleepers: this.stores.sleepers, ...this.#calls, clock: this.clock },
      clocks: oneClock(this.clock),
      log: (line) => void this.lines.push(line),
      onFailure: (error) => void this.failures.push(String(error)),
      ...more,
    };
  }

  sweep(more?: Partial<AgentDeps>) {
    return sweep(this.agent(more));
  }
}
