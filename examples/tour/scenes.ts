/** The scenes of the tour, each a story of a few seconds with real processes. A scene returns what it proved, or throws. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { Actor, Stage } from "./stage.js";

export interface Scene {
  /** The sentence before it. */
  readonly title: string;
  /** The view of the console that shows it. */
  readonly view: `${"locks" | "runs"}/${string}`;
  /** The Regions of its table, with a service in each. @default one service */
  readonly regions?: readonly string[];
  /** Plays it, and returns the sentences that it proved. @throws AssertionError if it turned out otherwise */
  play(stage: Stage, tell: (sentence: string) => void): Promise<readonly string[]>;
}

/** A lease that is short, so that its end can be watched. */
const LEASE_MS = 2_000;
/** One that outlasts a few heartbeats on a busy machine. */
const REGION_LEASE_MS = 4_000;
/** A moment to look at what happens. */
const LOOK_MS = 1_400;

/** The scenes by name, in their order. */
export const SCENES: Readonly<Record<string, Scene>> = {
  crash: {
    title: "A holder is killed. Its lease of 2 s ends by itself, and the next in the queue has the key.",
    view: "locks/ORDER_1",
    async play(stage, tell) {
      const part = { role: "holder", key: "ORDER_1", leaseMs: LEASE_MS } as const;
      const [ann, bob, cleo] = await enter(stage, part, "ann", "bob", "cleo");
      ann.order("begin");
      const first = await ann.told("holding");
      for (const waiter of [bob, cleo]) {
        waiter.order("begin");
        await waiter.told("waiting");
        await delay(LOOK_MS / 2);
      }
      tell("ann is killed with kill -9");
      const killedAtMs = stage.nowMs();
      ann.process.kill("SIGKILL");
      const second = await bob.told("holding");
      const free = ((stage.nowMs() - killedAtMs) / 1000).toFixed(1);
      tell(`bob has the key, ${free} s after ann was killed`);
      await delay(LOOK_MS);
      bob.order("release");
      const third = await cleo.told("holding");
      await delay(LOOK_MS / 2);
      assert(first.token < second.token && second.token < third.token, "the tokens did not rise");
      return ["Nobody cleaned up after ann: the lease ended by itself.", "The queue kept its order, and each grant has a larger token."];
    },
  },
  zombie: {
    title: "A holder freezes for longer than its lease, wakes up and writes. Its token is too small by then.",
    view: "locks/ORDER_2",
    async play(stage, tell) {
      const key = "ORDER_2";
      // Long enough that a busy machine doesn't lose it before the freeze.
      const part = { role: "holder", key, leaseMs: 3_000 } as const;
      const [ann, bob] = await enter(stage, part, "ann", "bob");
      ann.order("begin");
      await ann.told("holding");
      bob.order("begin");
      await delay(LOOK_MS);
      tell("ann is frozen with kill -STOP");
      ann.process.kill("SIGSTOP");
      ann.is("frozen", "frozen");
      const { token } = await bob.told("holding");
      bob.order("write");
      await bob.told("wrote");
      await delay(LOOK_MS / 2);
      tell("ann is woken with kill -CONT, and writes");
      ann.order("write");
      ann.process.kill("SIGCONT");
      const late = await ann.told("refused");
      await ann.told("lost");
      await delay(LOOK_MS / 2);
      assert.equal((await stage.item(key))["writer"], "bob");
      assert(late.token < token, "the late token is not smaller");
      return ["The table refused the late write: its token is smaller than bob's.", "ann was told that the lease was lost."];
    },
  },
  payment: {
    title: "Three processes are asked for one payment. The first dies after it charged the card.",
    view: "runs/PAY_3",
    async play(stage, tell) {
      const key = "PAY_3";
      const part = { role: "payer", key, leaseMs: LEASE_MS } as const;
      const [ann, bob, cleo] = await enter(stage, part, "ann", "bob", "cleo");
      ann.order("begin");
      await ann.told("holding");
      bob.order("begin");
      await delay(LOOK_MS / 2);
      tell("the card is charged; ann is killed before the receipt");
      ann.process.kill("SIGKILL");
      const { attempt, checkpoint } = await bob.told("paying");
      tell(`bob takes over: attempt ${attempt}, from the checkpoint ${JSON.stringify(checkpoint)}`);
      cleo.order("begin");
      await delay(LOOK_MS);
      bob.order("finish");
      const [paid, same] = [await bob.told("paid"), await cleo.told("paid")];
      await delay(LOOK_MS / 2);
      assert.deepEqual([attempt, checkpoint, paid.replayed, same.replayed, same.receipt], [2, "charged", false, true, paid.receipt]);
      assert.equal((await stage.item(key))["charges"], 1);
      return ["The card was charged once.", "Both callers that lived got the same receipt."];
    },
  },
  leader: {
    title: "The leader of a nightly job is told to end. It hands over on its way out.",
    view: "locks/NIGHTLY_4",
    async play(stage, tell) {
      const part = { role: "candidate", key: "NIGHTLY_4", leaseMs: 10_000 } as const;
      const [ann, bob] = await enter(stage, part, "ann", "bob");
      ann.order("begin");
      await ann.told("holding");
      bob.order("begin");
      await delay(LOOK_MS);
      tell("ann is told to end, with kill -TERM");
      const toldAtMs = stage.nowMs();
      ann.process.kill("SIGTERM");
      await bob.told("holding");
      const tookMs = stage.nowMs() - toldAtMs;
      ann.is("away", "left");
      tell(`bob leads, ${(tookMs / 1000).toFixed(1)} s later`);
      await delay(LOOK_MS);
      assert(tookMs < part.leaseMs, "bob had to wait for the end of the lease");
      return ["bob did not have to wait for the end of the lease of 10 s: a process that ends gives its keys back."];
    },
  },
  outage: {
    title: "The lock service is killed while a key is held, and started again.",
    view: "locks/ORDER_5",
    async play(stage, tell) {
      const part = { role: "holder", key: "ORDER_5", leaseMs: 60_000 } as const;
      const [ann, bob] = await enter(stage, part, "ann", "bob");
      ann.order("begin");
      const first = await ann.told("holding");
      bob.order("begin");
      await delay(LOOK_MS);
      tell("the service is killed");
      await stage.killService();
      await delay(2 * LOOK_MS);
      tell("the service is started again");
      await stage.startService();
      await delay(LOOK_MS);
      ann.order("write");
      await ann.told("wrote");
      ann.order("release");
      await ann.told("released");
      const second = await bob.told("holding");
      await delay(LOOK_MS / 2);
      assert(!ann.hasTold("lost"), "ann lost its lease");
      assert(first.token < second.token, "the tokens did not rise");
      return ["ann held the key through it: a lease needs the service only when it is renewed.", "bob kept its place in the queue."];
    },
  },
  region: {
    title: "A Region of the table is cut off. The holder keeps its lease by the other one, and the queue its order.",
    view: "locks/ORDER_6",
    regions: ["us-east-1", "us-east-2"],
    async play(stage, tell) {
      const part = { role: "holder", key: "ORDER_6", leaseMs: REGION_LEASE_MS } as const;
      const [ann, bob] = await enter(stage, part, "ann", "bob");
      ann.order("begin");
      const first = await ann.told("holding");
      bob.order("begin");
      await delay(LOOK_MS);
      tell("us-east-1 is cut off: nothing there answers");
      await stage.cutOff("us-east-1", "silent");
      await delay(1.5 * REGION_LEASE_MS);
      assert(!ann.hasTold("lost"), "ann lost its lease");
      tell(`ann still holds the key, ${((1.5 * REGION_LEASE_MS) / 1000).toFixed(1)} s later, with a lease of ${REGION_LEASE_MS / 1000} s`);
      ann.order("release");
      await ann.told("released");
      const second = await bob.told("holding");
      await stage.cutOff("us-east-1", "open");
      tell("us-east-1 is back");
      await delay(LOOK_MS / 2);
      assert(first.token < second.token, "the tokens did not rise");
      return ["ann's lease went on by us-east-2.", "bob had the key next, with a larger token."];
    },
  },
};

type Part = Parameters<Stage["enter"]>[0];

/** Has a process enter for each name, and returns as many. */
async function enter<Names extends readonly string[]>(stage: Stage, part: Part, ...names: Names): Promise<{ [At in keyof Names]: Actor }> {
  return (await stage.enter(part, ...names)) as { [At in keyof Names]: Actor };
}
