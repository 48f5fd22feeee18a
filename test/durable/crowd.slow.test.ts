/**
 * Two hundred executions want two keys, and processes die at random. Each execution gets its key once, no two run a step of one key at the
 * same time, and nobody polls. The controls are the same crowd without a lock, and one that waits by asking again.
 */
import { describe, expect, it } from "vitest";
import { withDurableLock } from "../../lib/durable.js";
import { Random } from "../simulation/random.js";
import type { Execution, Handler, Sandbox } from "./durable-lambda.js";
import { type Scene, scene } from "./scene.js";

const CALLERS = 200;
const KEYS = ["ORDER_1", "ORDER_2"];
const STEPS = ["charge", "ship"];
/** The share of requests at which a process dies. */
const DEATHS = 0.03;
/** More minutes than any crowd needs: each key passes on once a minute, and a death can cost a lease of three. */
const MINUTES_MAX = 1000;
const TWELVE_HOURS_MS = 43_200_000;

type Body = (step: string, fencingToken: number, sandbox: Sandbox) => Promise<void>;

/** The steps of a crowd, and what was wrong with them. */
class Floor {
  readonly #inside = new Map<string, Sandbox>();
  readonly #last = new Map<string, number>();
  overlaps = 0;
  backwards = 0;

  /** Returns the body of a step on `key`. It lets others run meanwhile. */
  bodyOn(key: string): Body {
    return async (_step, fencingToken, sandbox) => {
      const other = this.#inside.get(key);
      // The body of a process that died runs no more.
      if (other && other !== sandbox && !other.isDead()) this.overlaps++;
      if (fencingToken < (this.#last.get(key) ?? 0)) this.backwards++;
      this.#inside.set(key, sandbox);
      this.#last.set(key, fencingToken);
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (this.#inside.get(key) === sandbox) this.#inside.delete(key);
    };
  }
}

interface Crowd {
  readonly its: Scene;
  readonly floor: Floor;
  readonly executions: readonly Execution[];
  readonly deaths: number;
}

/** Runs the crowd until all executions are over. */
async function crowd(work: (its: Scene, key: string, body: Body) => Handler, callers = CALLERS): Promise<Crowd> {
  const its = scene();
  const floor = new Floor();
  const random = new Random(1);
  let deaths = 0;
  its.lambda.kills = () => random.chance(DEATHS) && ++deaths > 0;
  const executions = Array.from({ length: callers }, (_none, at) => {
    const key = KEYS[at % KEYS.length] ?? "";
    return its.lambda.start(`caller-${at}`, work(its, key, floor.bodyOn(key)));
  });
  const isRunning = (): boolean => executions.some(({ status }) => status === "RUNNING");
  for (let minute = 0; isRunning() && minute < MINUTES_MAX; minute++) await its.pass(1);
  return { its, floor, executions, deaths };
}

const underLock =
  (its: Scene, key: string, body: Body): Handler =>
  (ctx, sandbox) =>
    withDurableLock(ctx, its.client(sandbox), key, { waitMs: TWELVE_HOURS_MS }, async (lock) => {
      for (const name of STEPS) await lock.step(name, ({ fencingToken }) => body(name, fencingToken, sandbox));
    });

/** Control: the same steps without a lock. */
const alone =
  (_its: Scene, _key: string, body: Body): Handler =>
  async (ctx, sandbox) => {
    for (const name of STEPS) await ctx.step(name, () => body(name, 0, sandbox));
  };

/** Control: asks again every minute. */
const polling =
  (its: Scene, key: string, body: Body): Handler =>
  async (ctx, sandbox) => {
    for (;;) {
      try {
        return void (await withDurableLock(ctx, its.client(sandbox), key, { waitMs: 0 }, async (lock) => {
          for (const name of STEPS) await lock.step(name, ({ fencingToken }) => body(name, fencingToken, sandbox));
        }));
      } catch (error) {
        if ((error as Error).name !== "LockTimeoutError") throw error;
        await ctx.wait({ minutes: 1 });
      }
    }
  };

/** The most requests of an execution that doesn't poll: acquire, sleep, a renewal for each step, release. One for each death comes again. */
const requestsMax = ({ executions, deaths }: Crowd): number => executions.length * (3 + STEPS.length) + deaths;

describe("a crowd of executions", { timeout: 300_000 }, () => {
  it("gets each key once each, in its turn, without a poll", async () => {
    const all = await crowd(underLock);
    const { its, floor, executions, deaths } = all;
    expect(deaths).toBeGreaterThan(CALLERS / 4);
    expect(executions.filter(({ status }) => status !== "SUCCEEDED").map(({ name, error }) => [name, error])).toEqual([]);
    expect(its.granted).toHaveLength(CALLERS);
    expect(floor).toMatchObject({ overlaps: 0, backwards: 0 });
    expect(its.requests.length).toBeLessThanOrEqual(requestsMax(all));
    for (const key of KEYS) expect(await its.rival.inspect(key)).toMatchObject({ holders: [], waiters: [] });
    expect(its.failures).toEqual([]);
  });

  it("control: without the lock, steps of one key overlap", async () => {
    expect((await crowd(alone, 20)).floor.overlaps).toBeGreaterThan(0);
  });

  it("control: who asks again each minute sends more requests", async () => {
    const all = await crowd(polling, 20);
    expect(all.its.requests.length).toBeGreaterThan(requestsMax(all));
  });
});
