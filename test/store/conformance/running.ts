/** A store's runs, beyond the table of states: the record's content, and concurrent runs. */
import { expect, it } from "vitest";
import type { LockStore } from "../../../lib/store/port.js";
import { KEEP_MS, large, runningIn, RunScene, small } from "../run-fixture.js";
import { A, B, leaseId, LEASE_MS, MARGIN_MS, outcomeOf, POLICY, START_MS } from "../fixture.js";

const MANY = 50;
const many = <T>(ask: (order: number) => Promise<T>, count = MANY): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, order) => ask(order + 1)));

/** Returns who recorded an outcome, and when: times in ms after the start of the tests. */
const recorded = (recordedBy: string, startedMs: number, endedMs = startedMs) => ({
  ...{ recordedBy, principal: "P", owner: "", startedAtMs: START_MS + startedMs, endedAtMs: START_MS + endedMs },
});

/** Starts the run fifty times at once, each with its own id, and returns the outcomes. */
export function fiftyStart(run: RunScene): Promise<readonly string[]> {
  return many(async (order) => outcomeOf(await run.start(leaseId(order))));
}

/** The tests of running. */
// Over 60 lines: a list of tests, each of which is short.
export function runs(store: () => LockStore): void {
  it.each([
    ["a result", "succeeded" as const, { payload: small('"paid é \u0000 \\ud83d"') }],
    ["a large result", "succeeded" as const, { payload: large("receipt", 1_900_000_000) }],
    ["no result", "succeeded" as const, {}],
    ["a result that was left out", "succeeded" as const, { omitted: true as const }],
    ["an error", "failed" as const, { payload: small('{"message":"no"}') }],
  ])("keeps %s as it is, tells everybody who asks, and ends the lease", async (_, state, said) => {
    const run = new RunScene(store());
    await run.start(A, { fingerprint: "f" });
    await run.save(A, small("1"));
    const before = await run.read();
    expect(await run.at(2_000, 100).complete(A, state, said)).toEqual({ ok: true, how: "recorded" });
    expect(await run.read()).toEqual({
      ...before,
      version: (before?.version ?? 0) + 1,
      holds: {},
      tombstones: [{ leaseId: A, ending: "released", outcome: expect.any(String) }],
      run: {
        state,
        attempt: 1,
        takeover: false,
        fingerprint: "f",
        keepResultMs: KEEP_MS,
        outcome: { ...recorded(A, 0, 2_100), ...said, keptUntilMs: START_MS + 2_100 + KEEP_MS },
      },
    });
    const found = { ok: true, state, attempt: 1, ...said };
    for (const id of [A, B]) expect(await run.start(id)).toEqual(found);
    expect(await run.start(B, { fingerprint: "other" })).toMatchObject({ code: "fingerprint-mismatch" });
  });

  it("keeps the checkpoint that was saved last, with each heartbeat that brings one", async () => {
    const run = new RunScene(store());
    await run.start(A, { leaseMs: 30_000 });
    const seen = [];
    for (const checkpoint of [small("1"), undefined, large("page", 2_000_000_000), undefined, small("3")]) {
      expect(await (checkpoint ? run.save(A, checkpoint) : run.renew(A))).toMatchObject({ how: "renewed" });
      seen.push((await run.read())?.run?.checkpoint?.digest);
    }
    expect(seen).toEqual(["small 1", "small 1", "large page", "large page", "small 3"]);
    expect(await run.at(30_000 + POLICY.marginMs(30_000)).start(B)).toMatchObject({ attempt: 2, takeover: true, checkpoint: small("3") });
  });

  it("speaks of no payload whose text is kept nowhere", async () => {
    const run = new RunScene(store());
    await run.start(A);
    const before = await run.read();
    const unkept = { digest: "nowhere", bytes: 5_000 };
    expect(await run.save(A, unkept)).toMatchObject({ code: "unavailable", definite: true });
    expect(await run.complete(A, "succeeded", { payload: unkept })).toMatchObject({ code: "unavailable", definite: true });
    expect(await run.read()).toEqual(before);
  });

  it("says of a large checkpoint that the record outlives it", async () => {
    const run = new RunScene(store());
    const { lease } = runningIn(await run.start(A));
    const ttlAtSec = (await run.read())?.ttlAtSec ?? 0;
    expect(await run.save(A, large("page", ttlAtSec))).not.toHaveProperty("outlived");
    const early = await run.save(A, large("page", ttlAtSec - 1));
    expect(early).toMatchObject({
      lease: { fencingToken: lease.fencingToken },
      outlived: { digest: large("page", ttlAtSec).digest, ttlAtSec },
    });
  });

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
