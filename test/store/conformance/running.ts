/** A store's runs: many at once. */
import { expect, it } from "vitest";
import type { LockStore } from "../../../lib/store/port.js";
import { KEEP_MS, runningIn, RunScene } from "../run-fixture.js";
import { A, B, leaseId, LEASE_MS, MARGIN_MS, outcomeOf } from "../fixture.js";

const MANY = 50;
const many = <T>(ask: (order: number) => Promise<T>, count = MANY): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, order) => ask(order + 1)));

/** Starts the run fifty times at once, each with its own id, and returns the outcomes. */
export function fiftyStart(run: RunScene): Promise<readonly string[]> {
  return many(async (order) => outcomeOf(await run.start(leaseId(order))));
}

export function runs(store: () => LockStore): void {
  it.each<[string, number, (run: RunScene) => Promise<unknown>]>([
    ["nobody ran", 1, async () => undefined],
    ["was given up", 1, async (run) => (await run.start(leaseId(0)), await run.release(leaseId(0)))],
    ["is to be tried again", 2, async (run) => (await run.start(leaseId(0)), await run.complete(leaseId(0), "retry"))],
    ["is to be taken over", 2, async (run) => (await run.start(leaseId(0)), run.at(LEASE_MS + MARGIN_MS))],
    ["is forgotten", 1, async (run) => (await run.start(leaseId(0)), await run.complete(leaseId(0)), run.at(KEEP_MS))],
  ])("lets exactly one of fifty run what %s", async (_, attempt, prepare) => {
    const run = new RunScene(store());
    await prepare(run);
    const before = (await run.read())?.version;
    const outcomes = await fiftyStart(run);
    expect(outcomes.filter((outcome) => outcome === "granted")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "run-in-progress")).toHaveLength(MANY - 1);
    const record = await run.read();
    expect(Object.keys(record?.holds ?? {})).toEqual([leaseId(outcomes.indexOf("granted") + 1)]);
    expect(record?.run).toMatchObject({ state: "running", attempt });
    if (before !== undefined) expect(record?.version).toBe(before + 1);
  });

  it("starts the same id once, however often it asks at once", async () => {
    const run = new RunScene(store());
    const answers = (await many(() => run.start(A), 20)).map(runningIn);
    expect(answers.filter(({ how }) => how === "granted")).toHaveLength(1);
    expect(new Set(answers.map(({ lease, attempt }) => `${lease.fencingToken} ${attempt}`)).size).toBe(1);
  });

  it("records one outcome, when its runner says several at once; nobody is told another", async () => {
    const run = new RunScene(store());
    await run.start(A);
    const states = ["succeeded", "failed", "retry"] as const;
    const said = await many(async (order) => [states[order % 3], outcomeOf(await run.complete(A, states[order % 3]))] as const, 12);
    const kept = (await run.read())?.run?.state;
    for (const [state, outcome] of said) {
      if (state === kept) expect(["recorded", "replayed"]).toContain(outcome);
      else expect(outcome).toBe("outcome-differs");
    }
    expect(said.filter(([, outcome]) => outcome === "recorded")).toHaveLength(1);
  });

  it("records the outcome of one that wakes late, or takes it over: never both", async () => {
    const came = await many(async (order) => {
      const run = new RunScene(store());
      await run.start(A);
      run.at(LEASE_MS + MARGIN_MS);
      const asked = [() => run.complete(A), () => run.start(B)];
      const answers = (order % 2 === 0 ? asked : asked.reverse()).map((ask) => ask());
      const [recorded, started] = (await Promise.all(order % 2 === 0 ? answers : answers.reverse())).map(outcomeOf);
      return `${recorded}, ${started}`;
    }, 30);
    for (const outcome of came) expect(["recorded, succeeded", "lease-lost: taken, granted"]).toContain(outcome);
  });

  it("ends an attempt once, when it is given up, renewed and concluded at once", async () => {
    const run = new RunScene(store());
    await run.start(A);
    const outcomes = await many(
      async (order) => outcomeOf(await (order % 3 === 0 ? run.release(A) : order % 3 === 1 ? run.renew(A) : run.complete(A))),
      12,
    );
    const record = await run.read();
    expect(record).toMatchObject({ holds: {}, tombstones: [{ leaseId: A, ending: "released" }] });
    expect(outcomes.filter((outcome) => outcome === "recorded")).toHaveLength(record?.run ? 1 : 0);
    expect(outcomes.filter((outcome) => outcome === "lease-lost: never")).toEqual([]);
  });
}
