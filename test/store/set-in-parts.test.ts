/**
 * A set on a table without transactions: what a request leaves that stops at one of its writes, and what its repeat is told. That a set is
 * held whole or not at all is asked of all stores, in sets.test.ts.
 */
import { describe, expect, it } from "vitest";
import type { Command } from "../../lib/core/commands.js";
import { refuse } from "../../lib/core/errors.js";
import {
  type Applied,
  type LockStore,
  KeyContended,
  StoreNotConfigured,
  StoreUnavailable,
  UnreadableRecord,
} from "../../lib/store/port.js";
import { acquireInParts } from "../../lib/store/set-in-parts.js";
import { createMemoryStore } from "../support/memory-store.js";
import { A, B, C, D, LEASE_MS, methodsOf, POLICY } from "./fixture.js";
import { setOutcome, SetScene } from "./sets-fixture.js";

const KEYS = ["a", "b", "c"];
const HOUR_MS = 3_600_000;
/** The longest time for which a part keeps its key after its request has stopped. */
const PENDING_OVER_MS = 5000 + POLICY.marginMs(5000);

/** Carries out a write of a request, or doesn't. */
type Step = (command: Command, write: () => Promise<Applied<Command>>) => Promise<Applied<Command>>;

/** The store as a request sees it whose writes pass through `step`. */
function inSteps(store: LockStore, step: Step): LockStore {
  const stepped: LockStore = {
    ...methodsOf(store),
    apply: (address, command, clocks) => step(command, () => store.apply(address, command, clocks)) as never,
    applyAll: (parts, clocks) => acquireInParts(parts, clocks, stepped),
  };
  return stepped;
}

const asItIs: Step = (_command, write) => write();
const scene = (): SetScene => new SetScene(inSteps(createMemoryStore({ policy: POLICY }), asItIs));

/** A request that waits before the first write that `isThere`, until it is let go. */
function stoppedAt(sets: SetScene, isThere: (command: Command) => boolean, change: (command: Command) => void = () => undefined) {
  let [letGo, reached] = [(): void => undefined, (): void => undefined];
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const isReached = new Promise<void>((resolve) => (reached = resolve));
  const store = inSteps(sets.store, async (command, write) => {
    if (isThere(command)) {
      change(command);
      reached();
      await gate;
    }
    return write();
  });
  return { answered: sets.by(store).acquire(A, KEYS), isReached, letGo: () => letGo() };
}

describe("a set in parts, whose first request stops before its roll-back while another holds a key", () => {
  /** The first request is refused by `b` and stops. `b` is freed, the repeat is granted, and the first one goes on. */
  async function repeated(change?: (command: Command) => void) {
    const sets = scene();
    await sets.key("b").acquire(B);
    const first = stoppedAt(sets, ({ type }) => type === "release", change);
    await first.isReached;
    await sets.key("b").release(B);
    const told = setOutcome(KEYS, await sets.acquire(A, KEYS));
    first.letGo();
    return { told, first: setOutcome(KEYS, await first.answered), holders: await sets.holders(KEYS) };
  }

  it("takes nothing from a repeat that was granted meanwhile", async () => {
    expect(await repeated()).toEqual({ told: "granted and replayed", first: "b locked", holders: [[A], [A], [A]] });
  });

  it("control: without its condition the roll-back ends what the repeat was told to hold", async () => {
    const unconditional = (command: Command): void => void delete (command as { pendingMs?: number }).pendingMs;
    expect(await repeated(unconditional)).toMatchObject({ told: "granted and replayed", holders: [[], [A], []] });
  });
});

it("a set in parts that was rolled back before its repeat confirms it is refused: its id can't hold the whole set again", async () => {
  const sets = scene();
  await sets.key("b").acquire(B);
  const first = stoppedAt(sets, ({ type }) => type === "release");
  await first.isReached;
  await sets.key("b").release(B);
  const repeat = stoppedAt(sets, ({ type }) => type === "renew");
  await repeat.isReached;
  first.letGo();
  await first.answered;
  repeat.letGo();
  expect(setOutcome(KEYS, await repeat.answered)).toBe("a lease-over, b lease-over, c lease-over");
  expect(await sets.holders(KEYS)).toEqual([[], [], []]);
});

describe("a set in parts, of which a part is over by the clocks of its first request, and not by those of its repeat", () => {
  /** The first request is refused the confirmation of `b`, and stops. The repeat confirms it and is granted, and the first one goes on. */
  async function repeated(change: (command: Command) => void = () => undefined) {
    const sets = scene();
    const late = sets.by(
      inSteps(sets.store, async (command, write) =>
        command.type === "renew" && command.key === "b" ? { answer: refuse("lease-lost"), events: [] } : write(),
      ),
    );
    const first = stoppedAt(late, ({ type }) => type === "release", change);
    await first.isReached;
    const told = setOutcome(KEYS, await sets.acquire(A, KEYS));
    first.letGo();
    const ended = await first.answered.then(
      (answers) => setOutcome(KEYS, answers),
      (error: unknown) => error,
    );
    return { told, first: ended, holders: await sets.holders(KEYS) };
  }

  it("takes nothing from the repeat, and is not certain to have written nothing", async () => {
    expect(await repeated()).toEqual({
      told: "replayed",
      first: expect.objectContaining({ name: "StoreUnavailable", definite: false }),
      holders: [[A], [A], [A]],
    });
  });

  it("control: without its condition the end of that part ends what the repeat was told to hold", async () => {
    const unconditional = (command: Command): void => void delete (command as { pendingMs?: number }).pendingMs;
    expect(await repeated(unconditional)).toMatchObject({ told: "replayed", holders: [[], [], []] });
  });
});

describe("a set in parts whose process dies", () => {
  const dead = (): Promise<never> => new Promise(() => undefined);
  it.each([
    {
      when: "after it has taken two of three",
      isOver: (taken: number, { type, key }: Command) => type === "acquire" && taken >= 2 && key !== "",
    },
    { when: "before it confirms", isOver: (_taken: number, { type }: Command) => type === "renew" },
    { when: "before it rolls back", isOver: (_taken: number, { type }: Command) => type === "release", isBlocked: true },
  ])("$when leaves its keys free after 5 s and the margin, although it asked for an hour", async ({ isOver, isBlocked = false }) => {
    const sets = scene();
    if (isBlocked) await sets.key("b").acquire(B);
    let taken = 0;
    const dying = inSteps(sets.store, async (command, write) => {
      if (isOver(taken, command)) return dead();
      if (command.type === "acquire") taken++;
      return write();
    });
    void sets.by(dying).acquire(A, KEYS, { leaseMs: HOUR_MS });
    await new Promise((resolve) => setImmediate(resolve));
    if (isBlocked) await sets.key("b").release(B);
    // Control: some of them are held until then.
    expect(setOutcome(KEYS, await sets.at(PENDING_OVER_MS - 1).acquire(C, KEYS))).toContain("locked");
    expect(setOutcome(KEYS, await sets.at(PENDING_OVER_MS).acquire(D, KEYS))).toBe("granted");
  });
});

describe("a set in parts of which a write fails", () => {
  const ERRORS = [
    { error: () => new KeyContended("others"), name: "StoreUnavailable" },
    { error: () => new StoreUnavailable("no answer", false, false), name: "StoreUnavailable" },
    { error: () => new StoreNotConfigured("no rights", true), name: "StoreNotConfigured" },
    { error: () => new UnreadableRecord("newer-format", "of another version"), name: "UnreadableRecord" },
  ];
  const failing = (sets: SetScene, fails: (command: Command) => boolean, error: () => Error) =>
    sets.by(inSteps(sets.store, (command, write) => (fails(command) ? Promise.reject(error()) : write()))).acquire(A, KEYS);
  const takesB = ({ type, key }: Command): boolean => type === "acquire" && key === "b";

  it.each(ERRORS)("tells the error as it is, once its other parts are rolled back: $name", async ({ error }) => {
    const sets = scene();
    await expect(failing(sets, takesB, error)).rejects.toEqual(error());
    expect(await sets.holders(KEYS)).toEqual([[], [], []]);
  });

  it.each(ERRORS)("is not certain to have written nothing, where the roll-back fails too: $name", async ({ error, name }) => {
    const sets = scene();
    const fails = (command: Command): boolean => takesB(command) || command.type === "release";
    await expect(failing(sets, fails, error)).rejects.toMatchObject({ name, definite: false });
    expect(await sets.holders(KEYS)).toEqual([[A], [], [A]]);
  });

  it.each(ERRORS)("nor where a confirmation fails, and its repeat is granted: $name", async ({ error, name }) => {
    const sets = scene();
    const confirmsB = ({ type, key }: Command): boolean => type === "renew" && key === "b";
    await expect(failing(sets, confirmsB, error)).rejects.toMatchObject({ name, definite: false });
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("replayed");
    expect((await sets.records(KEYS)).map((record) => record?.holds[A]?.leaseMs)).toEqual(KEYS.map(() => LEASE_MS));
  });
});
