/**
 * The process of an invocation dies at each of its requests in turn, before the request arrives or after it was carried out. The execution
 * goes on in another: with the one lease that it got, and without a step that is in the history.
 */
import { describe, expect, it } from "vitest";
import { withDurableLock } from "../../lib/durable.js";
import type { Execution, Handler, RequestPoint } from "./durable-lambda.js";
import { type Scene, KEY, scene } from "./scene.js";
import { isThorough } from "../support/tier.js";

/** The end of a history with one crash. */
interface Outcome {
  readonly its: Scene;
  readonly execution: Execution;
  /** The bodies of steps that ran, with their tokens. */
  readonly ran: readonly (readonly [step: string, fencingToken: number])[];
  readonly points: readonly RequestPoint[];
}

type Work = (its: Scene, ran: [step: string, fencingToken: number][]) => Handler;

const underLock: Work = (its, ran) => (ctx, sandbox) =>
  withDurableLock(ctx, its.client(sandbox), KEY, async (lock) => {
    for (const name of ["charge", "ship"]) await lock.step(name, async ({ fencingToken }) => void ran.push([name, fencingToken]));
  });

/** Each invocation has options of its own, so the service takes none of its requests for a repeated one. */
const withOtherOptions: Work = (its, ran) => (ctx, sandbox) =>
  withDurableLock(ctx, its.client(sandbox), KEY, { tied: true, meta: { at: its.requests.length } }, (lock) =>
    lock.step("charge", async ({ fencingToken }) => void ran.push(["charge", fencingToken])),
  );

/** Control: the lease is a step's result, and its id is made within the step. */
const naively: Work = (its, ran) => async (ctx, sandbox) => {
  const locks = its.client(sandbox);
  const fencingToken = await ctx.step("acquire", async () => (await locks.tryAcquire(KEY, { heartbeat: false }))?.fencingToken ?? null);
  if (fencingToken === null) throw new Error("held by another");
  for (const name of ["charge", "ship"]) await ctx.step(name, async () => void ran.push([name, fencingToken]));
};

/** Runs the work, and ends the process at the request number `killAt`, if there is one. */
async function withKill(killAt: number, isContended: boolean, work: Work): Promise<Outcome> {
  const its = scene();
  const points: RequestPoint[] = [];
  const ran: [step: string, fencingToken: number][] = [];
  const rival = isContended ? await its.rival.acquire(KEY, { leaseMs: 600_000 }) : undefined;
  its.granted.length = 0;
  its.lambda.kills = (point) => points.push(point) - 1 === killAt;
  const execution = its.lambda.start("a", work(its, ran));
  await its.lambda.run();
  await its.clock.advance(1000);
  await rival?.release();
  await its.pass(5);
  return { its, execution, ran, points };
}

describe.each([["a free key", false] as const, ...(isThorough() ? [["a held key", true] as const] : [])])(
  "a crash with %s",
  (_what, isContended) => {
    it("at any request repeats no step that is in the history, and leaves no second lease", async () => {
      const { points } = await withKill(-1, isContended, underLock);
      expect(points.length).toBeGreaterThan(isContended ? 20 : 10);
      for (const [killAt, { to, at, what }] of points.entries()) {
        const { its, execution, ran } = await withKill(killAt, isContended, underLock);
        const where = `killed ${at} ${to}: ${what}`;
        expect(execution.status, where).toBe("SUCCEEDED");
        expect(execution.invocations, where).toBe(isContended ? 3 : 2);
        const times = (step: string) => ran.filter(([name]) => name === step).length;
        for (const step of ["charge", "ship"]) {
          // A body runs again only if it ended, and its end was never written down.
          expect(times(step), `${step}, ${where}`).toBe(at === "before" && what.includes(`SUCCEED ${step}`) ? 2 : 1);
        }
        expect(new Set(ran.map(([, token]) => token)).size, where).toBe(1);
        expect(its.granted.length, where).toBe(1);
        expect(await its.rival.inspect(KEY), where).toMatchObject({ holders: [], waiters: [] });
      }
    });
  },
);

it("a crash at any request doesn't keep the execution out by its own lease, if the options are others after it", async () => {
  const { points } = await withKill(-1, false, withOtherOptions);
  for (const [killAt, { to, at, what }] of points.entries()) {
    const { its, execution, ran } = await withKill(killAt, false, withOtherOptions);
    const where = `killed ${at} ${to}: ${what}`;
    expect(execution.status, where).toBe("SUCCEEDED");
    expect(new Set(ran.map(([, token]) => token)).size, where).toBe(1);
    expect(await its.rival.inspect(KEY), where).toMatchObject({ holders: [], waiters: [] });
  }
});

it("control: an id that is in no history leaves a lease behind, which keeps the execution itself out", async () => {
  const { points } = await withKill(-1, false, naively);
  const killAt = points.findIndex(({ at, what }) => at === "after" && what.startsWith("PUT "));
  const { its, execution, ran } = await withKill(killAt, false, naively);
  expect(execution).toMatchObject({ status: "FAILED", error: { ErrorMessage: "held by another" } });
  expect(its.granted).toHaveLength(1);
  expect(ran).toEqual([]);
});
