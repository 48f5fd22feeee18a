/** A section of a state machine under a lock: its states as the CDK renders them run on the real service and its agent. */
import { Pass, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { Duration } from "aws-cdk-lib";
import { describe, expect, it } from "vitest";
import type { Definition, Execution, StateJson } from "./machine.js";
import { definitionIn, INPUT, KEY, LEASE_MS, Scene, synthesizeSection, workOf } from "./scene.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DEFINITION = definitionIn(synthesizeSection());
const WITHOUT_WAIT = definitionIn(synthesizeSection({ wake: false }, () => ({ waitMs: 0 })));
const ACQUIRE = "PUT /v1/locks/ORDER_1/leases/{id}";
const CHECK = "GET /v1/locks/ORDER_1/leases/{id}";
const RELEASE = "DELETE /v1/locks/ORDER_1/leases/{id}";

/** Returns the names of the section's own states that were entered. */
const entered = ({ entered }: Execution) => entered.map((name) => name.replace("Order: ", ""));

/** Returns an assignment of a token that nobody granted. */
function withToken(token: string) {
  return { lock_Order: `{% $merge([$lock_Order, { 'fencingToken': ${token} }]) %}` };
}

function changed(definition: Definition, name: string, change: Partial<StateJson>): Definition {
  return { ...definition, States: { ...definition.States, [name]: { ...definition.States[name]!, ...change } } };
}

/** The section without its lock: nobody asks for the key. */
const UNLOCKED = changed(changed(DEFINITION, "Order: acquire", { Type: "Pass", Assign: withToken("0") }), "Order: confirm", {
  Type: "Pass",
});

describe("a section of a state machine", () => {
  it("begins at once if the key is free, and releases it", async () => {
    const its = new Scene();
    const order = its.machine.start("a", DEFINITION, INPUT);
    await its.clock.advance(0);
    expect(order).toMatchObject({ status: "SUCCEEDED", output: "done" });
    expect(entered(order)).toEqual(["lease id", "acquire", "section", "work", "confirm", "release"]);
    expect(its.requests).toEqual([ACQUIRE, CHECK, RELEASE]);
    expect(its.inside.calls).toEqual([{ input: INPUT, fencingToken: expect.any(Number) as number }]);
    expect(await its.users()).toEqual([]);
  });

  it("waits asleep for a held key, without a request, and begins when the agent wakes it", async () => {
    const its = new Scene();
    const rival = await its.rival.acquire(KEY);
    const order = its.machine.start("a", DEFINITION, INPUT);
    await its.pass(30);
    expect(its.requests).toEqual([ACQUIRE, ACQUIRE]);
    expect(await its.users()).toEqual(["", "a"]);
    await rival.release();
    await its.pass(1);
    expect(order).toMatchObject({ status: "SUCCEEDED", output: "done" });
    expect(entered(order)).toEqual(["lease id", "acquire", "sleep", "section", "work", "confirm", "release"]);
    expect(its.inside.calls).toEqual([{ input: INPUT, fencingToken: expect.toSatisfy((token) => token > rival.fencingToken) as number }]);
    expect(await its.users()).toEqual([]);
  });

  it("never overlaps with another of the same key, however many there are", async () => {
    const run = async (definition: Definition) => {
      const its = new Scene();
      its.work = async () => (await its.after(3 * MINUTE_MS), "done");
      const orders = ["a", "b", "c", "d"].map((name) => its.machine.start(name, definition, INPUT));
      await its.pass(25);
      expect(orders.map(({ status }) => status)).toEqual(Array(4).fill("SUCCEEDED"));
      return its.inside;
    };
    const { most, calls } = await run(DEFINITION);
    expect(most).toBe(1);
    const tokens = calls.map(({ fencingToken }) => fencingToken);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect((await run(UNLOCKED)).most, "control: without the lock they do").toBe(4);
  });

  it("releases if a state of it fails, and fails as that did", async () => {
    const its = new Scene();
    its.work = () => Promise.reject(Object.assign(new Error("card declined"), { name: "Declined" }));
    const order = its.machine.start("a", DEFINITION, INPUT);
    await its.clock.advance(0);
    expect(order).toMatchObject({ status: "FAILED", error: "Declined", cause: "card declined" });
    expect(entered(order).slice(-3)).toEqual(["work", "give up", "failed"]);
    expect(await its.users()).toEqual([]);
  });

  it("goes on after a failure as it is told to, with nothing held", async () => {
    const onFailure = definitionIn(synthesizeSection({}, (stack) => ({ onFailure: Pass.jsonata(stack, "refund") })));
    const its = new Scene();
    its.work = () => Promise.reject(new Error("declined"));
    const order = its.machine.start("a", onFailure, INPUT);
    await its.clock.advance(0);
    expect(order).toMatchObject({ status: "SUCCEEDED", output: { Error: "Error", Cause: "declined" } });
    expect(entered(order).slice(-2)).toEqual(["give up", "refund"]);
    expect(await its.users()).toEqual([]);
  });

  it("gives its place up if it isn't its turn in time", async () => {
    const its = new Scene();
    const rival = await its.rival.acquire(KEY);
    const order = its.machine.start("a", DEFINITION, INPUT);
    await its.pass(61);
    expect(order).toMatchObject({ status: "FAILED", error: "Holdfast.LockTimeout", cause: "ORDER_1: not granted within 3600 s" });
    expect(await its.users()).toEqual([""]);
    await rival.release();
    await its.pass(5);
    expect(await its.users()).toEqual([]);
    expect(its.inside.calls).toEqual([]);
  });

  it("says the same if the agent tells it first that its time is over", async () => {
    const its = new Scene();
    await its.rival.acquire(KEY, { leaseMs: 2 * HOUR_MS, heartbeat: false });
    const order = its.machine.start("a", DEFINITION, INPUT);
    await its.clock.advance(HOUR_MS - 1);
    // The service's clock is ahead of that of Step Functions.
    its.clock.jumpWall(1);
    await its.sweep();
    await its.clock.advance(0);
    expect(order).toMatchObject({ status: "FAILED", error: "Holdfast.LockTimeout" });
    expect(await its.users()).toEqual([""]);
  });

  it("asks once if it shall not wait, and needs no agent for that", async () => {
    const its = new Scene({ hasAgent: false });
    const rival = await its.rival.acquire(KEY);
    const refused = its.machine.start("a", WITHOUT_WAIT, INPUT);
    await its.clock.advance(0);
    expect(refused).toMatchObject({ status: "FAILED", error: "Holdfast.LockTimeout", cause: "ORDER_1: held by another lease" });
    await rival.release();
    const order = its.machine.start("b", WITHOUT_WAIT, INPUT);
    await its.clock.advance(0);
    expect(order.status).toBe("SUCCEEDED");
  });

  it("passes the key on at once if it was stopped while it slept", async () => {
    const its = new Scene();
    const rival = await its.rival.acquire(KEY);
    const stopped = its.machine.start("a", DEFINITION, INPUT);
    await its.clock.advance(1);
    const order = its.machine.start("b", DEFINITION, INPUT);
    await its.pass(1);
    its.machine.stop(stopped);
    await rival.release();
    await its.pass(1);
    expect(order.status).toBe("SUCCEEDED");
    expect(entered(stopped)).not.toContain("section");
  });

  it("holds the key until its lease ends if it was stopped while it slept, and its token is taken all the same", async () => {
    const its = new Scene();
    const rival = await its.rival.acquire(KEY);
    const stopped = its.machine.start("a", DEFINITION, INPUT);
    await its.clock.advance(1);
    const order = its.machine.start("b", DEFINITION, INPUT);
    await its.pass(1);
    its.machine.stop(stopped, { takesToken: true });
    await rival.release();
    await its.pass(LEASE_MS / MINUTE_MS);
    expect(order.status).toBe("RUNNING");
    await its.pass(2);
    expect(order.status).toBe("SUCCEEDED");
  });

  it("holds the key until its lease ends if it was stopped inside", async () => {
    const its = new Scene();
    its.work = () => new Promise(() => undefined);
    const stopped = its.machine.start("a", DEFINITION, INPUT);
    await its.clock.advance(0);
    its.machine.stop(stopped);
    its.work = async () => "done";
    const order = its.machine.start("b", DEFINITION, INPUT);
    await its.pass(LEASE_MS / MINUTE_MS);
    expect(order.status).toBe("RUNNING");
    await its.pass(2);
    expect(order.status).toBe("SUCCEEDED");
  });
});

describe("the lease of a section", () => {
  it("is over if the section is longer: the execution fails, also if nobody took the key", async () => {
    const its = new Scene();
    its.work = async () => (await its.after(LEASE_MS), "done");
    const order = its.machine.start("a", DEFINITION, INPUT);
    await its.pass(20);
    expect(order).toMatchObject({ status: "FAILED", error: "Holdfast.LockLost", cause: "ORDER_1: the lease ended before the section did" });
    expect(await its.users()).toEqual([]);
  });

  const renewed = (leaseMs: number, waitMs: number) =>
    definitionIn(
      synthesizeSection({}, (stack) => ({
        work: (lock) => {
          const wait = (name: string) => Wait.jsonata(stack, name, { time: WaitTime.duration(Duration.millis(waitMs)) });
          return wait("first").next(lock.renew("renew", { leaseMs })).next(wait("second")).next(workOf(stack, lock));
        },
      })),
    );

  it("lasts longer if a state of the section renews it", async () => {
    const its = new Scene();
    const order = its.machine.start("a", renewed(2 * LEASE_MS, LEASE_MS - MINUTE_MS), INPUT);
    await its.pass(30);
    expect(order).toMatchObject({ status: "SUCCEEDED", output: "done" });
    expect(its.inside.calls).toEqual([{ input: INPUT, fencingToken: expect.any(Number) as number }]);
  });

  it("can't be renewed once it is over: the section fails there", async () => {
    const its = new Scene();
    const order = its.machine.start("a", renewed(LEASE_MS, LEASE_MS), INPUT);
    await its.pass(30);
    expect(order).toMatchObject({ status: "FAILED", error: "ApiGateway.410" });
    expect(its.inside.calls).toEqual([]);
  });
});

describe("a section whose requests or answers are lost", () => {
  /** Runs an execution behind a rival, which releases after 2 min, and loses what `loses` says. */
  async function behindRival(definition: Definition, loses: Scene["machine"]["loses"]) {
    const its = new Scene();
    const rival = await its.rival.acquire(KEY);
    its.machine.loses = loses;
    const order = its.machine.start("a", definition, INPUT);
    await its.pass(2);
    await rival.release();
    await its.pass(5);
    return { its, order };
  }

  const free = async (definition: Definition, loses: Scene["machine"]["loses"]) => {
    const its = new Scene();
    its.machine.loses = loses;
    const order = its.machine.start("a", definition, INPUT);
    await its.pass(5);
    return { its, order };
  };

  it("succeeds, and leaves nothing held or queued, whichever one of them is lost", async () => {
    for (const run of [free, behindRival]) {
      const points: string[] = [];
      await run(DEFINITION, ({ what, at }) => (points.push(`${at} ${what}`), false));
      expect(points).toHaveLength(2 * (run === free ? 3 : 4));
      for (const lost of points.keys()) {
        let point = 0;
        const { its, order } = await run(DEFINITION, () => point++ === lost);
        expect(order, points[lost]).toMatchObject({ status: "SUCCEEDED", output: "done" });
        expect(its.inside.calls, points[lost]).toHaveLength(1);
        expect(await its.users(), points[lost]).toEqual([]);
      }
    }
  });

  it("control: with a new id for each try, a lost answer keeps the execution itself out", async () => {
    const { Arguments = {} } = DEFINITION.States["Order: acquire"]!;
    const [, id = ""] = /'leaseId': (.*), 'ids'/.exec(JSON.stringify(DEFINITION.States["Order: lease id"])) ?? [];
    const careless = changed(DEFINITION, "Order: acquire", {
      Arguments: { ...Arguments, Path: `{% '/v1/locks/' & $lock_Order.key & '/leases/' & ${id} %}` },
    });
    let point = 0;
    const { its, order } = await free(careless, () => point++ === 1);
    expect(order.status).toBe("RUNNING");
    expect(await its.users()).toEqual(["a", "a"]);
  });

  it("gives up if no answer comes, cancels what may have happened, and says why", async () => {
    const { its, order } = await free(DEFINITION, ({ what, at }) => what === ACQUIRE && at === "after");
    expect(order).toMatchObject({ status: "FAILED", error: "ApiGateway.504" });
    expect(its.requests.at(-1)).toBe(RELEASE);
    expect(its.inside.calls).toEqual([]);
    expect(await its.users()).toEqual([]);
  });

  it("succeeds if the release gets no answer, since the lease ends by itself", async () => {
    const { its, order } = await free(DEFINITION, ({ what, at }) => what === RELEASE && at === "before");
    expect(order).toMatchObject({ status: "SUCCEEDED", output: "done" });
    expect(entered(order).slice(-2)).toEqual(["release", "unreleased"]);
    expect(await its.users()).toEqual(["a"]);
    await its.pass(LEASE_MS / MINUTE_MS);
    expect(await its.users()).toEqual([]);
  });

  it("fails if nobody answers whether the lease lasted, with nothing held", async () => {
    const { its, order } = await free(DEFINITION, ({ what }) => what === CHECK);
    const cause = "ORDER_1: nobody said whether the lease lasted";
    expect(order).toMatchObject({ status: "FAILED", error: "Holdfast.Unconfirmed", cause });
    expect(await its.users()).toEqual([]);
  });
});

describe("a section whose lease is tied", () => {
  const TIED = definitionIn(synthesizeSection({}, () => ({ tied: true, leaseMs: 180_000 })));
  const UNTIED = definitionIn(synthesizeSection({}, () => ({ leaseMs: 180_000 })));

  it("keeps the key for ten hours, and with the same lease fails without the tie", async () => {
    const run = async (definition: Definition) => {
      const its = new Scene();
      its.work = async () => (await its.after(10 * HOUR_MS), "done");
      const order = its.machine.start("a", definition, INPUT);
      await its.pass(10 * 60 - 1);
      const users = await its.users();
      await its.pass(2);
      return { order, users };
    };
    const { order, users } = await run(TIED);
    expect(order).toMatchObject({ status: "SUCCEEDED", output: "done" });
    expect(users).toEqual(["a"]);
    expect((await run(UNTIED)).order, "control").toMatchObject({ error: "Holdfast.LockLost" });
  });

  it.each([
    ["at once", false],
    ["after a wait for the key", true],
  ])("frees the key at the next sweep if the execution is stopped, %s", async (_how, waits) => {
    const its = new Scene();
    const rival = waits ? await its.rival.acquire(KEY) : undefined;
    its.work = async () => (await its.after(10 * HOUR_MS), "done");
    const order = its.machine.start("a", TIED, INPUT);
    await its.pass(1);
    await rival?.release();
    await its.pass(20);
    its.machine.stop(order);
    expect(await its.users()).toEqual(["a"]);
    await its.pass(1);
    expect(await its.users()).toEqual([]);
    expect(its.failures).toEqual([]);
  });
});

describe("the id of a lease", () => {
  /** Lets an execution that waits send each of its first ids again after a second, in which others have ended so many that it is old. */
  async function crowded(ids: number) {
    const its = new Scene();
    const rival = await its.rival.acquire(KEY);
    let acquires = 0;
    its.machine.loses = ({ what, at }) => {
      // The first asks at once; then each id has two requests, of which the first is lost.
      if (what !== ACQUIRE || at !== "before" || acquires++ % 2 === 0 || acquires > 2 * ids) return false;
      its.clock.after(500, () => void its.endOthers(20));
      return true;
    };
    const order = its.machine.start("a", DEFINITION, INPUT);
    await its.pass(1);
    await rival.release();
    await its.pass(1);
    return { its, order };
  }

  it("is made anew if a busy key has made it old", async () => {
    const { its, order } = await crowded(2);
    expect(entered(order).filter((name) => name === "sleep")).toHaveLength(3);
    expect(order.status).toBe("SUCCEEDED");
    expect(await its.users()).toEqual([]);
  });

  it("is made anew four times, and then the section fails", async () => {
    const { its, order } = await crowded(9);
    expect(order).toMatchObject({ status: "FAILED", error: "States.QueryEvaluationError" });
    expect(entered(order).slice(-7)).toEqual([...Array<string>(5).fill("sleep"), "sleep", "give up", "failed"].slice(-7));
    expect(await its.users()).toEqual([]);
  });
});

describe("the key of a section", () => {
  it.each<[what: string, id: unknown, error: RegExp]>([
    ["has a slash", "1/../x", /key: ORDER_1\/\.\.\/x given; it is 1 to 200 characters of A-Z a-z 0-9 \. _ : ~ - and not \. or \.\./],
    ["is too long", "x".repeat(200), /key: ORDER_x+ given/],
  ])("is refused before any request if it %s", async (_what, id, error) => {
    const its = new Scene();
    const order = its.machine.start("a", DEFINITION, { id } as never);
    await its.clock.advance(0);
    expect(order).toMatchObject({ status: "FAILED", error: "States.QueryEvaluationError", cause: expect.stringMatching(error) as string });
    expect(its.requests).toEqual([]);
  });
});
