/** Sleepers from their request to the wake, on records in memory and on an engine. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { type Tell, wake, wakeOffered } from "../../lib/service/agent.js";
import { oneClock } from "../../lib/service/clocks.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { ACQUIRE } from "../support/direct-service.js";
import { type WakeTargets, startWakeTargets } from "../support/wake-targets.js";
import { AgentScene, LEASE_MS, MINUTE_MS, OTHERS_MS, STORES } from "./agent-scene.js";

const NOBODY = { taskToken: "token-of-nobody" };
const OVER = { failed: "Holdfast.LostPlace" };
const QUEUED = { headers: { prefer: "wait=0" } };

let targets: WakeTargets;
beforeAll(async () => void (targets = await startWakeTargets()));
afterAll(() => targets.close());
let names = 0;

class Scene extends AgentScene {
  /** Waits asleep for an hour under a target of its own, and returns the target. */
  async sleep(leaseId: string, { target = targets.wait(`token-${++names}`), ...body }: object & { target?: string } = {}): Promise<string> {
    const wake = target.startsWith("token-") ? { taskToken: target } : { callbackId: target };
    const headers = { prefer: "wait=3600" };
    const { status } = await this.service.ask(ACQUIRE, { leaseId, headers, body: { leaseMs: LEASE_MS, wake, ...body } });
    expect(status).toBe(202);
    return target;
  }

  tell: Tell = (...told) => this.agent().tell(...told);
}

describe.each(STORES)("an agent, %s,", (_where, stores) => {
  async function scene(): Promise<Scene> {
    const clock = new VirtualClock();
    return new Scene(clock, await stores(clock), targets);
  }

  /** A scene in which A holds the key and B sleeps. */
  async function behindA(): Promise<Scene & { a: string; b: string; target: string }> {
    const made = await scene();
    const [a, b] = [made.newId(), made.newId()];
    await made.acquire(a);
    return Object.assign(made, { a, b, target: await made.sleep(b) });
  }

  it("wakes a sleeper in its turn, before a poller, and passes a dead one over at once", async () => {
    const its = await behindA();
    const [poller, dead, last] = [its.newId(), its.newId(), its.newId()];
    expect(await its.acquire(poller, QUEUED)).toBe(202);
    await its.sleep(dead, { target: NOBODY.taskToken });
    expect(await its.sweep()).toEqual({ asleep: 2 });
    await its.release(its.a);
    expect(await its.sweep()).toEqual({ woken: 1, asleep: 1 });
    const { status, body } = await its.check(its.b);
    expect(status).toBe(200);
    expect(targets.heard.get(its.target)).toEqual({
      got: { key: "ORDER_1", leaseId: its.b, fencingToken: body.fencingToken, leaseMs: LEASE_MS },
    });
    expect(its.lines).toMatchObject([{ event: "granted", by: "agent", fencingToken: body.fencingToken }]);
    expect(await its.acquire(poller, QUEUED)).toBe(202);
    await its.release(its.b);
    expect(await its.acquire(poller, QUEUED)).toBe(201);
    expect(await its.acquire(last, QUEUED)).toBe(202);
    await its.release(poller);
    expect(await its.sweep()).toEqual({ dead: 1 });
    expect(await its.acquire(last, QUEUED)).toBe(201);
    expect((await its.stores.sleepers.list()).sleepers).toEqual([]);
  });

  it("wakes the next sleeper in the same sweep in which it finds the first dead", async () => {
    const its = await behindA();
    targets.timeOut(its.target);
    // A later id: the sweep goes by the order of ids.
    await its.clock.advance(1);
    const next = await its.sleep(its.newId());
    await its.release(its.a);
    expect(await its.sweep()).toEqual({ dead: 1, woken: 1 });
    expect(targets.heard.get(next)).toHaveProperty("got");
  });

  it("sees that a holder crashed, with nobody awake", async () => {
    const its = await behindA();
    await its.clock.advance(LEASE_MS + takeoverMarginMs(LEASE_MS) - 1);
    expect(await its.sweep()).toEqual({ asleep: 1 });
    await its.clock.advance(1);
    expect(await its.sweep()).toEqual({ woken: 1 });
    expect(targets.heard.get(its.target)).toHaveProperty("got.leaseId", its.b);
    expect(await its.sweep()).toEqual({});
  });

  it("tells once, although five sweep at once and the one that claimed is the slowest to tell", async () => {
    const its = await behindA();
    await its.release(its.a);
    let others: Promise<unknown> = Promise.resolve();
    let tells = 0;
    const first = await its.sweep({
      tell: async (...told) => {
        tells++;
        others = Promise.all([1, 2, 3, 4].map(() => its.sweep()));
        expect(await others).toEqual(Array(4).fill({ asleep: 1 }));
        return its.tell(...told);
      },
    });
    expect([first, tells]).toEqual([{ woken: 1 }, 1]);
    expect((await its.check(its.b)).status).toBe(200);
  });

  it("tells once, if five sweep at once", async () => {
    const its = await behindA();
    await its.release(its.a);
    const counts = await Promise.all([1, 2, 3, 4, 5].map(() => its.sweep()));
    expect(counts.filter(({ woken }) => woken === 1)).toHaveLength(1);
    expect(counts.flatMap(Object.keys).filter((name) => !["asleep", "woken"].includes(name))).toEqual([]);
    expect((await its.check(its.b)).status).toBe(200);
  });

  it("doesn't take the holder for dead, if it froze after its claim and another told meanwhile", async () => {
    const its = await behindA();
    await its.release(its.a);
    const counts = await its.sweep({
      tell: async (...told) => {
        await its.clock.advance(OTHERS_MS);
        expect(await its.sweep()).toEqual({ woken: 1 });
        return its.tell(...told);
      },
    });
    expect(counts).toEqual({ unclear: 1 });
    expect((await its.check(its.b)).status).toBe(200);
  });

  it("doesn't end a lease that it found held: it may have been told", async () => {
    const its = await behindA();
    await its.release(its.a);
    expect(await its.acquire(its.b)).toBe(201);
    targets.timeOut(its.target);
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).toEqual({ unclear: 1 });
    expect((await its.check(its.b)).status).toBe(200);
  });

  it("doesn't take the holder for dead either if its monotonic clock stood still meanwhile, as in a frozen sandbox", async () => {
    const its = await behindA();
    await its.release(its.a);
    const tell = async (...[target, outcome]: Parameters<Tell>) => {
      its.clock.jumpWall(OTHERS_MS);
      await its.tell(target, outcome);
      return its.tell(target, outcome);
    };
    expect(await its.sweep({ tell })).toEqual({ unclear: 1 });
    expect((await its.check(its.b)).status).toBe(200);
  });

  it("ends no lease that was granted since its record was read, at the end of the sleeper's time", async () => {
    const its = await behindA();
    const [sleeper] = (await its.stores.sleepers.list()).sleepers;
    const asleep = await its.stores.other.read(sleeper!.address);
    await its.clock.advance(3_600_000 - 1);
    expect(await its.sweep()).toEqual({ woken: 1 });
    await its.clock.advance(1);
    expect(await wake(sleeper!, asleep, its.agent())).toBe("asleep");
    expect((await its.check(its.b)).status).toBe(200);
  });

  it("tells again what was throttled, under the same lease, and after the time of others", async () => {
    const its = await behindA();
    await its.release(its.a);
    targets.throttle(1);
    expect(await its.sweep()).toEqual({ failed: 1 });
    expect(its.failures).toEqual(["Error: states: ThrottlingException"]);
    const { body } = await its.check(its.b);
    await its.clock.advance(OTHERS_MS - 1);
    expect(await its.sweep()).toEqual({ asleep: 1 });
    await its.clock.advance(1);
    expect(await its.sweep()).toEqual({ woken: 1 });
    expect(targets.heard.get(its.target)).toHaveProperty("got.fencingToken", body.fencingToken);
  });

  it("says that the place is lost if the lease ran out before the target could be told", async () => {
    const its = await behindA();
    await its.release(its.a);
    targets.throttle(1);
    await its.sweep();
    await its.clock.advance(LEASE_MS);
    expect(await its.sweep()).toEqual({ lost: 1 });
    expect(targets.heard.get(its.target)).toEqual(OVER);
  });

  it("tells a sleeper that was cancelled", async () => {
    const its = await behindA();
    await its.release(its.b);
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).toEqual({ lost: 1 });
    expect(targets.heard.get(its.target)).toEqual(OVER);
  });

  it("claims nothing after the sleeper's own time, and lets the next go on", async () => {
    const its = await behindA();
    await its.clock.advance(3_600_000);
    const poller = its.newId();
    // No write has noticed yet that the time of the sleeper is over, and that of the holder.
    expect(await its.sweep()).toEqual({ lost: 1 });
    expect(targets.heard.get(its.target)).toEqual(OVER);
    expect(await its.acquire(poller)).toBe(201);
  });

  it("was down for three minutes: a poller has the key, and the sleeper is told when it is back", async () => {
    const its = await behindA();
    await its.release(its.a);
    await its.clock.advance(DEFAULTS.wakeWindowMs - 1);
    expect(await its.acquire(its.newId())).toBe(423);
    await its.clock.advance(1);
    expect(await its.acquire(its.newId())).toBe(201);
    expect(await its.sweep()).toEqual({ lost: 1 });
    expect(targets.heard.get(its.target)).toEqual(OVER);
  });

  it("doesn't queue a sleeper anew that lost its place since its record was read", async () => {
    const its = await behindA();
    await its.release(its.a);
    const [sleeper] = (await its.stores.sleepers.list()).sleepers;
    const read = () => its.stores.other.read(sleeper!.address);
    const offered = await read();
    await its.clock.advance(DEFAULTS.wakeWindowMs);
    expect(await its.acquire(its.newId())).toBe(201);
    expect(await wake(sleeper!, offered, its.agent())).toBe("asleep");
    expect((await read())?.waiters).toEqual([]);
    expect(await its.sweep()).toEqual({ lost: 1 });
  });

  it("wakes after a release straight on the records", async () => {
    const its = await behindA();
    const { principal } = (await its.stores.sleepers.list()).sleepers[0]!.acquire;
    const address = { namespace: "default", kind: "locks", key: "ORDER_1" } as const;
    const release = { type: "release", key: "ORDER_1", leaseId: its.a, principal } as const;
    await its.stores.other.apply(address, release, oneClock(its.clock));
    expect(await its.sweep()).toEqual({ woken: 1 });
  });

  it("leaves a sleeper alone that is stored and not queued yet, until its request must be over", async () => {
    const its = await scene();
    const leaseId = its.newId();
    const target = await its.sleep(leaseId);
    const [sleeper] = (await its.stores.sleepers.list()).sleepers;
    await its.release(leaseId);
    await its.stores.sleepers.put({ ...sleeper!, putAtMs: its.clock.wallMs() + 1 });
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).toEqual({ asleep: 1 });
    await its.clock.advance(1);
    expect(await its.sweep()).toEqual({ lost: 1 });
    expect(targets.heard.get(target)).toEqual(OVER);
  });

  it("wakes as many as there are permits, and readers together", async () => {
    for (const kind of [{ limit: 3 }, { mode: "shared" }]) {
      const its = await scene();
      const holders = [1, 2, 3].map(() => its.newId());
      for (const leaseId of holders) expect(await its.acquire(leaseId, kind)).toBe(201);
      const asleep = [1, 2, 3, 4, 5].map(() => its.newId());
      const waiting = [];
      for (const leaseId of asleep) waiting.push(await its.sleep(leaseId, kind));
      for (const leaseId of holders) await its.release(leaseId);
      const woken = "limit" in kind ? 3 : 5;
      expect(await its.sweep()).toEqual({ woken, ...(woken < 5 && { asleep: 5 - woken }) });
      expect(waiting.filter((target) => targets.heard.has(target))).toHaveLength(woken);
      for (const leaseId of asleep.slice(0, woken)) await its.release(leaseId);
      expect(await its.sweep()).toEqual(woken < 5 ? { woken: 2 } : {});
    }
  });

  it("tells callbacks of durable functions, of the key and of its loss", async () => {
    const its = await scene();
    const [a, b, c] = [its.newId(), its.newId(), its.newId()];
    await its.acquire(a);
    const woken = await its.sleep(b, { target: targets.wait(`QVJO/+${++names}==`) });
    const cancelled = await its.sleep(c, { target: targets.wait(`QVJO/+${++names}==`) });
    await its.release(c);
    await its.release(a);
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).toEqual({ woken: 1, lost: 1 });
    expect(targets.heard.get(woken)).toHaveProperty("got.leaseId", b);
    expect(targets.heard.get(cancelled)).toEqual(OVER);
    await its.release(b);
    await its.sleep(its.newId(), { target: "QVJO/+nobody==" });
    expect(await its.sweep()).toEqual({ dead: 1 });
  });

  it.each([
    ["a token", (name: string) => `token-${name}`],
    ["a callback", (name: string) => `QVJO/+${name}==`],
  ])("tells %s in whichever Region of the table it waits, and takes it for dead if it waits in none", async (_what, named) => {
    const its = await scene();
    const regions = ["us-east-1", "us-east-2"];
    for (const region of regions) {
      const sleeper = its.newId();
      const target = await its.sleep(sleeper, { target: targets.wait(named(String(++names)), region) });
      expect(await its.sweep({ regions })).toEqual({ woken: 1 });
      expect(targets.heard.get(target)).toHaveProperty("got.leaseId", sleeper);
      await its.release(sleeper);
    }
    await its.sleep(its.newId(), { target: targets.wait(named(String(++names)), "us-west-2") });
    expect(await its.sweep({ regions })).toEqual({ dead: 1 });
  });

  it("wakes a sleeper although another Region doesn't answer, and takes nobody for dead meanwhile", async () => {
    const its = await scene();
    const tell: Tell = (target, outcome, region) =>
      region === "us-east-2" ? Promise.reject(new Error("states: no answer")) : its.tell(target, outcome, region);
    const regions = ["us-east-1", "us-east-2"];
    const [here, there] = [its.newId(), its.newId()];
    await its.sleep(here);
    expect(await its.sweep({ tell, regions })).toEqual({ woken: 1 });
    await its.release(here);
    // Nor is it waited for: this one never says anything.
    const silent: Tell = (to, outcome, region) => (region === "us-east-2" ? new Promise(() => undefined) : its.tell(to, outcome, region));
    const next = its.newId();
    await its.sleep(next);
    expect(await its.sweep({ tell: silent, regions })).toEqual({ woken: 1 });
    await its.release(next);
    const target = await its.sleep(there, { target: targets.wait(`token-${++names}`, "us-east-2") });
    expect(await its.sweep({ tell, regions })).toEqual({ failed: 1 });
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep({ regions })).toEqual({ woken: 1 });
    expect(targets.heard.get(target)).toHaveProperty("got.leaseId", there);
  });

  it("tells the token of a retry, although the clock of the first request's function was 3 s ahead", async () => {
    const its = await scene();
    const [a, b] = [its.newId(), its.newId()];
    await its.acquire(a);
    its.clock.jumpWall(3000);
    const first = await its.sleep(b);
    targets.timeOut(first);
    its.clock.jumpWall(-3000);
    const retried = await its.sleep(b);
    await its.release(a);
    expect(await its.sweep()).toEqual({ woken: 1 });
    expect(targets.heard.get(retried)).toHaveProperty("got.leaseId", b);
    expect(targets.heard.has(first)).toBe(false);
  });

  it("tells the token of a retry that came while the first one was told, and takes nobody for dead", async () => {
    const its = await behindA();
    targets.timeOut(its.target);
    await its.release(its.a);
    let retried = "";
    const tell: Tell = async (...told) => {
      retried = targets.wait(`token-${++names}`);
      const { status } = await its.service.ask(ACQUIRE, {
        ...{ leaseId: its.b, headers: { prefer: "wait=3600" } },
        body: { leaseMs: LEASE_MS, wake: { taskToken: retried } },
      });
      expect(status).toBe(200);
      return its.tell(...told);
    };
    expect(await its.sweep({ tell })).toEqual({ asleep: 1 });
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).toEqual({ woken: 1 });
    expect(targets.heard.get(retried)).toHaveProperty("got.leaseId", its.b);
  });

  it("tells the rest of the targets again, if one of them couldn't be told", async () => {
    const its = await behindA();
    await its.sleep(its.b, { target: NOBODY.taskToken });
    await its.release(its.a);
    targets.throttle(1);
    expect(await its.sweep()).toEqual({ failed: 1 });
    await its.clock.advance(OTHERS_MS);
    expect(await its.sweep()).not.toHaveProperty("failed");
    expect(targets.heard.get(its.target)).toHaveProperty("got.leaseId", its.b);
    expect((await its.check(its.b)).status).toBe(200);
    expect(await its.sweep()).toEqual({});
  });

  it("stops telling a target that can't be told, once the sleeper's own time is over", async () => {
    const its = await behindA();
    const tell = () => Promise.reject(new Error("states: AccessDeniedException"));
    await its.release(its.b);
    await its.clock.advance(3_600_000 - 1);
    expect(await its.sweep({ tell })).toEqual({ failed: 1 });
    await its.clock.advance(1);
    expect(await its.sweep({ tell })).toEqual({ lost: 1 });
    expect(await its.sweep({ tell })).toEqual({});
  });

  it("goes through many pages of sleepers, and on after one that fails", async () => {
    const its = await behindA();
    const [sleeper] = (await its.stores.sleepers.list()).sleepers;
    for (let order = 0; order < 110; order++)
      await its.stores.sleepers.put({ ...sleeper!, address: { ...sleeper!.address, key: `KEY_${order}` }, targets: [NOBODY] });
    await its.release(its.a);
    targets.throttle(1);
    await its.clock.advance(MINUTE_MS);
    expect(await its.sweep()).toEqual({ failed: 1, lost: 109, woken: 1 });
  });

  it("leaves the rest of a key to the next sweep, if its targets don't answer", async () => {
    const its = await behindA();
    const [sleeper] = (await its.stores.sleepers.list()).sleepers;
    // So these come later in the list.
    await its.clock.advance(1);
    for (let one = 0; one < 20; one++)
      await its.stores.sleepers.put({ ...sleeper!, acquire: { ...sleeper!.acquire, leaseId: its.newId() }, targets: [NOBODY] });
    await its.clock.advance(MINUTE_MS);
    let asked = 0;
    const silent: Tell = async () => (asked++, await its.clock.advance(5000), Promise.reject(new Error("no answer")));
    expect(await its.sweep({ tell: silent })).toMatchObject({ failed: 20 });
    expect(asked).toBe(6);
    expect(await its.sweep()).toEqual({ lost: 20, asleep: 1 });
  });

  it("leaves the rest of those whom a release offered the key to the next sweep, if their targets don't answer", async () => {
    const its = await behindA();
    const shared = { mode: "shared" };
    for (let one = 0; one < 8; one++) await its.sleep(its.newId(), shared);
    await its.release(its.a);
    await its.release(its.b);
    const silent: Tell = async () => (await its.clock.advance(5000), Promise.reject(new Error("no answer")));
    const address = { namespace: "default", kind: "locks", key: "ORDER_1" } as const;
    expect(await wakeOffered(address, its.agent({ tell: silent }))).toHaveLength(8);
    expect(its.failures.filter((failure) => failure.includes("no time left"))).toHaveLength(2);
  });
});
