/** Leases that are tied to executions, on records in memory and on an engine. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { awsIsRunning } from "../../lambda/executions.js";
import { type Clock, systemClock } from "../../lib/core/time.js";
import { type IsRunning, tendTie, sweep } from "../../lib/service/agent.js";
import type { Address } from "../../lib/store/port.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { RENEW } from "../support/direct-service.js";
import { BOB } from "../support/http-event.js";
import { type WakeTargets, startWakeTargets } from "../support/wake-targets.js";
import { type Stores, AgentScene, inMemory, LEASE_MS, MINUTE_MS, onEngine, OTHERS_MS, STORES } from "./agent-scene.js";

const MACHINE = "arn:aws:states:us-east-1:111122223333:execution:orders:";
const DURABLE = "arn:aws:lambda:us-east-1:111122223333:function:orders:$LATEST/durable-execution/";

let aws: WakeTargets;
beforeAll(async () => void (aws = await startWakeTargets()));
afterAll(() => aws.close());
let names = 0;

/** A service with an agent, and a lease of one key that is tied to an execution. */
class Scene extends AgentScene {
  readonly leaseId = this.newId();

  constructor(
    clock: VirtualClock,
    stores: Stores,
    readonly executionArn = `${MACHINE}e${++names}`,
  ) {
    super(clock, stores, aws);
    this.is("RUNNING");
  }

  is(status: string | undefined): void {
    aws.setExecution(this.executionArn, status);
  }

  override acquire(leaseId = this.leaseId, options: object = this.tied): Promise<number> {
    return super.acquire(leaseId, options);
  }

  get tied() {
    return { tie: { executionArn: this.executionArn } };
  }

  /** Acquires the tied lease, and lets the time pass in which it is left alone. */
  async hold(): Promise<void> {
    expect(await this.acquire()).toBe(201);
    await this.clock.advance(OTHERS_MS);
  }

  async isHeld(leaseId = this.leaseId): Promise<boolean> {
    return (await this.check(leaseId)).status === 200;
  }

  async renew(leaseMs: number): Promise<void> {
    expect((await this.service.ask(RENEW, { leaseId: this.leaseId, body: { leaseMs } })).status).toBe(200);
  }

  override release(leaseId = this.leaseId): Promise<void> {
    return super.release(leaseId);
  }

  /** True if another gets the key at once, which it then releases. */
  async isFree(): Promise<boolean> {
    const leaseId = this.newId();
    const isFree = (await this.acquire(leaseId, {})) === 201;
    await this.release(leaseId);
    return isFree;
  }

  async ties() {
    return (await this.stores.sleepers.list()).ties;
  }
}

describe.each(STORES)("an agent, %s,", (_where, stores) => {
  async function scene(executionArn?: string): Promise<Scene> {
    const clock = new VirtualClock();
    return new Scene(clock, await stores(clock), executionArn);
  }

  it.each([`${MACHINE}a/b`, `${MACHINE}Bestellung-Ü1`, `${DURABLE}order-1/0b1c`, `${MACHINE.replace("us-east-1", "eu-west-1")}elsewhere`])(
    "keeps the lease of %s as long as that runs, and releases it once it is over",
    async (arn) => {
      const its = await scene(arn);
      await its.hold();
      for (let minute = 0; minute < 10; minute++) {
        expect(await its.sweep()).toEqual({ renewed: 1 });
        await its.clock.advance(MINUTE_MS);
      }
      expect(await its.isFree()).toBe(false);
      its.is("FAILED");
      expect(await its.sweep()).toEqual({ untied: 1 });
      expect(await its.isFree()).toBe(true);
      expect(await its.ties()).toEqual([]);
    },
  );

  it.each(["SUCCEEDED", "TIMED_OUT", "ABORTED", "STOPPED", undefined])("takes the state %s for the end", async (status) => {
    for (const prefix of [MACHINE, DURABLE]) {
      const its = await scene(`${prefix}e${++names}`);
      await its.hold();
      its.is(status);
      expect(await its.sweep()).toEqual({ untied: 1 });
      expect(await its.isHeld()).toBe(false);
    }
  });

  it("keeps the lease of an execution that is to be redriven", async () => {
    const its = await scene();
    await its.hold();
    its.is("PENDING_REDRIVE");
    expect(await its.sweep()).toEqual({ renewed: 1 });
  });

  it("leaves the lease to the next sweep, and to its own end, if it gets a state that it doesn't know", async () => {
    const its = await scene();
    await its.hold();
    its.is("PAUSED");
    expect(await its.sweep()).toEqual({ failed: 1 });
    expect(its.failures).toEqual(["Error: states: PAUSED"]);
    expect(await its.isHeld()).toBe(true);
    its.is("RUNNING");
    expect(await its.sweep()).toEqual({ renewed: 1 });
  });

  it("leaves it if it is throttled each time, which is a failure once the lease ends before the next sweep does", async () => {
    const its = await scene();
    await its.hold();
    const isRunning: IsRunning = async () => (await its.clock.advance(15_000), undefined);
    expect(await its.sweep({ isRunning })).toEqual({ left: 1 });
    await its.clock.advance(15_000);
    expect(await its.sweep({ isRunning })).toEqual({ failed: 1 });
    expect(its.failures).toEqual(["NoTime: there was no time left for a tied lease, which ends before the next sweep does"]);
    expect(await its.sweep()).toEqual({ renewed: 1 });
  });

  it("asks no more once the lease has run out, about an execution that it may not read", async () => {
    const its = await scene();
    await its.hold();
    let asked = 0;
    const isRunning: IsRunning = () => (asked++, Promise.reject(new Error("states: AccessDeniedException")));
    for (let minute = 0; minute < 5; minute++) {
      expect(await its.sweep({ isRunning })).toEqual(minute < 3 ? { failed: 1 } : minute === 3 ? { untied: 1 } : {});
      await its.clock.advance(MINUTE_MS);
    }
    expect(asked).toBe(3);
  });

  it("takes no other execution under the same id", async () => {
    const its = await scene();
    await its.hold();
    expect(await its.acquire(its.leaseId, { tie: { executionArn: `${MACHINE}over` } })).toBe(422);
    expect(await its.acquire()).toBe(200);
    expect(await its.sweep()).toEqual({ renewed: 1 });
  });

  it("asks nothing about a lease that was granted lately: AWS may not know the execution yet", async () => {
    const its = await scene();
    its.is(undefined);
    expect(await its.acquire()).toBe(201);
    await its.clock.advance(OTHERS_MS - 1);
    expect(await its.sweep()).toEqual({ left: 1 });
    expect(await its.isHeld()).toBe(true);
  });

  it("looks no longer after one that was released, lost or refused, once its request must be over", async () => {
    const its = await scene();
    expect(await its.acquire()).toBe(201);
    await its.release();
    expect(await its.acquire(its.newId(), {})).toBe(201);
    const refused = its.newId();
    expect(await its.acquire(refused)).toBe(423);
    await its.clock.advance(OTHERS_MS - 1);
    expect(await its.sweep()).toEqual({ left: 2 });
    await its.clock.advance(1);
    expect(await its.sweep()).toEqual({ untied: 2 });

    const other = await scene();
    await other.hold();
    await other.clock.advance(LEASE_MS);
    expect(await other.sweep(), "the agent was down").toEqual({ untied: 1 });
    expect(await other.ties()).toEqual([]);
  });

  it("leaves one that waits by polling, and renews it once it holds", async () => {
    const its = await scene();
    const first = its.newId();
    expect(await its.acquire(first, {})).toBe(201);
    const poll = () => its.acquire(its.leaseId, { ...its.tied, headers: { prefer: "wait=0" } });
    for (let second = 0; second < 40; second++) {
      expect(await poll()).toBe(202);
      await its.clock.advance(1000);
    }
    expect(await its.sweep()).toEqual({ left: 1 });
    await its.release(first);
    expect(await poll()).toBe(201);
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).toEqual({ renewed: 1 });
  });

  it("renews one that it woke, and a late first request takes nothing from a sleeper", async () => {
    const its = await scene();
    const first = its.newId();
    expect(await its.acquire(first, {})).toBe(201);
    const taskToken = aws.wait(`token-tied-${++names}`);
    expect(await its.acquire(its.leaseId, { ...its.tied, wake: { taskToken }, headers: { prefer: "wait=3600" } })).toBe(202);
    // The request at once, which was on its way for long.
    expect(await its.acquire()).toBe(202);
    await its.release(first);
    expect(await its.sweep()).toEqual({ woken: 1, left: 1 });
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).toEqual({ renewed: 1 });
    its.is("ABORTED");
    expect(await its.sweep()).toEqual({ untied: 1 });
    expect(await its.isFree()).toBe(true);
  });

  it("has ended nothing but the lease, if it read the end and released late", async () => {
    const its = await scene();
    await its.hold();
    its.is("ABORTED");
    let next = "";
    const isRunning: IsRunning = async () => {
      expect(await its.sweep()).toEqual({ untied: 1 });
      expect(await its.acquire((next = its.newId()), {})).toBe(201);
      return false;
    };
    expect(await its.sweep({ isRunning })).toEqual({ untied: 1 });
    expect(await its.isHeld(next)).toBe(true);
  });

  it("has kept the key of a stopped execution for one lease at most, if it read that it runs and renewed late", async () => {
    const its = await scene();
    await its.hold();
    const isRunning: IsRunning = async () => {
      await its.clock.advance(LEASE_MS - OTHERS_MS - 1);
      its.is("ABORTED");
      return true;
    };
    expect(await its.sweep({ isRunning })).toEqual({ renewed: 1 });
    expect(await its.sweep()).toEqual({ untied: 1 });
    expect(await its.isFree()).toBe(true);
  });

  it("outlasts two sweeps again, though its holder renewed for less while the agent was down", async () => {
    const its = await scene();
    await its.hold();
    await its.clock.advance(LEASE_MS - OTHERS_MS - 10_000);
    await its.renew(60_000);
    for (const passedMs of [0, MINUTE_MS, 2 * MINUTE_MS]) {
      await its.clock.advance(passedMs);
      expect(await its.sweep()).toEqual({ renewed: 1 });
    }
  });

  it("brings no lease back, if it renews one that another agent has just released", async () => {
    const its = await scene();
    await its.hold();
    const isRunning: IsRunning = async () => {
      its.is("ABORTED");
      expect(await its.sweep()).toEqual({ untied: 1 });
      return true;
    };
    expect(await its.sweep({ isRunning })).toEqual({ untied: 1 });
    expect(await its.isFree()).toBe(true);
  });

  it("takes no other execution, and no other target, from a caller who knows the id and isn't its holder", async () => {
    const its = await scene();
    await its.hold();
    const asBob = { authorizer: BOB, headers: { prefer: "wait=3600" } };
    const over = { executionArn: `${MACHINE}over` };
    expect(await its.acquire(its.leaseId, { ...asBob, tie: over })).toBe(403);
    expect(await its.sweep()).toEqual({ renewed: 1 });

    const sleeper = its.newId();
    const taskToken = aws.wait(`token-tied-${++names}`);
    expect(await its.acquire(sleeper, { headers: asBob.headers, wake: { taskToken } })).toBe(202);
    expect(await its.acquire(sleeper, { ...asBob, wake: { taskToken: "token-of-bob" } })).toBe(403);
    await its.release();
    expect(await its.sweep()).toMatchObject({ woken: 1 });
    expect(aws.heard.get(taskToken)).toHaveProperty("got.leaseId", sleeper);
  });

  it("deletes no tie that was stored since it was listed", async () => {
    const its = await scene();
    await its.hold();
    const [tied] = await its.ties();
    expect(await its.acquire()).toBe(200);
    expect(await tendTie(tied!, undefined, its.agent())).toBe("untied");
    expect(await its.ties()).toHaveLength(1);
  });

  it.each(["RUNNING", "ABORTED"])("may die before any of its requests, and the next sweep does the rest (%s)", async (status) => {
    for (let dies = 0; dies < 10; dies++) {
      const its = await scene();
      await its.hold();
      its.is(status);
      const expected = status === "RUNNING" ? { renewed: 1 } : { untied: 1 };
      let requests = 0;
      const died = new Error("died");
      const counted = <Args extends unknown[], T>(send: (...args: Args) => Promise<T>) => {
        return async (...args: Args): Promise<T> => (requests++ < dies ? send(...args) : Promise.reject(died));
      };
      const { store, sleepers } = its.stores;
      const dying = its.agent({
        store: {
          read: counted((address: Address) => store.read(address)),
          apply: (address, command, clocks) => counted(() => store.apply(address, command, clocks))(),
        },
        sleepers: { ...sleepers, list: counted(sleepers.list), delete: counted(sleepers.delete) },
        isRunning: counted(its.agent().isRunning),
      });
      const swept = await sweep(dying).catch(() => ({ failed: 1 }));
      expect(await its.sweep()).toEqual("untied" in swept ? {} : expected);
      expect(await its.isFree()).toBe(status !== "RUNNING");
      if (!("failed" in swept)) return expect(dies).toBe(status === "RUNNING" ? 4 : 5);
    }
    expect.unreachable("it made more requests than that");
  });
});

it("control: a stranger who knows the id takes the turn away, if the condition on its principal is left out", async () => {
  const clock = new VirtualClock();
  const its = new Scene(clock, await onEngine(clock, "o = :o AND "));
  await its.hold();
  const sleeper = its.newId();
  const headers = { prefer: "wait=3600" };
  const taskToken = aws.wait(`token-tied-${++names}`);
  expect(await its.acquire(sleeper, { headers, wake: { taskToken } })).toBe(202);
  expect(await its.acquire(sleeper, { authorizer: BOB, headers, wake: { taskToken: "token-of-bob" } })).toBe(403);
  await its.release();
  expect(await its.sweep()).not.toHaveProperty("woken");
  expect(aws.heard.has(taskToken)).toBe(false);
});

it.each([MACHINE, DURABLE])("an agent that is throttled asks again, after pauses that double: %s", async (prefix) => {
  const arn = `${prefix}e${++names}`;
  aws.setExecution(arn, "RUNNING");
  const pauses: number[] = [];
  const after: Clock["after"] = (ms, task) => systemClock.after(ms % 1000 === 0 ? ms : (pauses.push(ms), 0), task);
  const isRunning = awsIsRunning(aws.env, { ...systemClock, after }, () => 0.3);
  aws.throttle(4);
  expect(await isRunning(arn)).toBe(true);
  expect(pauses).toEqual([300, 600, 1200, 2400]);
});

it.each(["com", "us-east-1x"])("an agent sends no request, with its token, to a Region that is none: %s", async (region) => {
  const credentials = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret", AWS_SESSION_TOKEN: "token", AWS_REGION: "us-east-1" };
  const isRunning = awsIsRunning(credentials, systemClock, () => 0);
  for (const [service, arn] of [["states", MACHINE] as const, ["lambda", DURABLE] as const]) {
    const asked = isRunning(`${arn.replace("us-east-1", region)}e`);
    await expect(asked).rejects.toThrow(`${service}: the endpoint of ${region} is not known`);
  }
});

it("an acquire with a tie is stored for a year, with no more than an agent needs", async () => {
  const clock = new VirtualClock();
  const its = new Scene(clock, await inMemory(clock));
  expect(await its.acquire(its.leaseId, { ...its.tied, meta: { order: 7 } })).toBe(201);
  expect(await its.ties()).toEqual([
    {
      address: { namespace: "default", kind: "locks", key: "ORDER_1" },
      leaseId: its.leaseId,
      principal: expect.any(String) as string,
      executionArn: its.executionArn,
      putAtMs: clock.wallMs(),
      ttlAtSec: clock.wallMs() / 1000 + 366 * 86_400,
    },
  ]);
});
