/** Requests that wait in the handler use the simulated world's time, so their waits advance with it. */
import { describe, expect, it } from "vitest";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { makeActor } from "./actor.js";
import { memoryBackend } from "./backend.js";
import type { FaultMix, FaultProfile } from "./faults.js";
import { type Delivered, check } from "./oracles/checker.js";
import { Network } from "./network.js";
import { Oracle } from "./oracles/oracle.js";
import { Random } from "./random.js";
import { makeHandler } from "./service.js";
import { Process, World } from "./world.js";

/** A fault mix without faults. */
const CALM: FaultMix = {
  ...{ loseRequest: 0, loseReply: 0, duplicate: 0, slowMs: 20, lateMs: 0, stallMs: 0, pause: 0, pauseMs: 0, crash: 0 },
  ...{
    stopsMonotonic: false,
    clientWallErrorMs: 0,
    clientJumpMs: 0,
    handlerErrorMs: 0,
    gatewayErrorMs: 0,
    strayErrorMs: 0,
    tableErrorMs: 0,
  },
  ...{ loseWrite: 0, loseAnswer: 0, throttle: 0, conflict: 0 },
  ...{ clocksAtExtremes: false, handlerJumps: false, heartbeats: 1 },
};
const KEY = "ORDER_1";

/** Creates a world with one handler. Records each request that reached it, with its time and the time of its answer. */
function calmWorld() {
  const world = new World(Date.UTC(2027, 0, 1));
  const random = new Random(1);
  const faultProfile: FaultProfile = { mix: CALM, isFoul: false };
  const oracle = new Oracle(() => world.nowMs);
  const around = { world, random, faultProfile, oracle };
  const handler = makeHandler(around, memoryBackend(around));
  const network = new Network(world, random, faultProfile, [new Process(world)], [handler]);
  const starts: { readonly request: Delivered; readonly status: number; readonly tookMs: number }[] = [];
  network.onDelivered = (request) => {
    const checked = check(oracle, request);
    return (result) => {
      checked(result);
      if (request.method === "PUT" && !request.path.endsWith("/outcome"))
        starts.push({ request, status: result.statusCode, tookMs: world.nowMs - request.atMs });
    };
  };
  const client = (index: number): LockClient => makeActor(world, random, CALM, network, oracle.waits, index).client;
  return { world, oracle, handler, starts, runner: client(1), caller: client(2) };
}

/** Runs the first client's work for `workMs`. The other client calls half a second after it began. */
async function callDuringWork(workMs: number, waitMs: number, meanwhile: (handler: Process) => void = () => undefined) {
  const { world, oracle, handler, starts, runner, caller } = calmWorld();
  const beganMs = world.nowMs;
  const work = () => world.sleep(workMs).then(() => "done");
  const told: { by: string; what: unknown; atMs: number }[] = [];
  const tell = (by: string) => (what: unknown) => void told.push({ by, what, atMs: world.nowMs - beganMs });
  void runner.runOnce(KEY, work).then(tell("runner"), tell("runner"));
  await world.run(beganMs + 500);
  void caller.runOnce(KEY, { waitMs }, work).then(tell("caller"), tell("caller"));
  await world.run(beganMs + 1500);
  meanwhile(handler.process);
  await world.run(beganMs + 30_000);
  expect(oracle.violations).toEqual([]);
  return { caller: told.find(({ by }) => by === "caller"), starts: starts.slice(1) };
}

describe("a simulated start that waits in the handler", () => {
  it("is answered when the other's run ends, by one request", async () => {
    const { caller, starts } = await callDuringWork(3000, 20_000);
    expect(caller?.what).toMatchObject({ value: "done", replayed: true });
    expect(caller?.atMs).toBeGreaterThan(3000);
    expect(caller?.atMs).toBeLessThan(3700);
    expect(starts.map(({ status }) => status)).toEqual([200]);
    expect(starts[0]?.tookMs).toBeGreaterThan(2000);
  });

  it("waits for no longer than the service does, and then asks again", async () => {
    const { caller, starts } = await callDuringWork(8300, 20_000);
    expect(starts.map(({ status, tookMs }) => [status, Math.round(tookMs / 1000)])).toEqual([
      [409, 5],
      [200, 3],
    ]);
    expect(caller?.what).toMatchObject({ value: "done", replayed: true });
  });

  it("stops waiting when its handler's clock jumps past the wait", async () => {
    const { starts } = await callDuringWork(3000, 20_000, (process) => (process.wallErrorMs = 6000));
    expect(starts[0]).toMatchObject({ status: 409 });
    expect(starts[0]?.tookMs).toBeLessThan(1500);
  });

  it("does not wait when nothing says that it should", async () => {
    const { caller, starts } = await callDuringWork(3000, 0);
    expect(caller?.what).toMatchObject({ name: "LockTimeoutError" });
    expect(starts.every(({ status, tookMs }) => status === 409 && tookMs < 50)).toBe(true);
  });
});
