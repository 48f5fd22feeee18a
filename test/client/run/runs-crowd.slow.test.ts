/** Two hundred concurrent callers with one key: the function runs once, and all the others get its result. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LockClient } from "../../../lib/index.js";
import { createGate } from "../../support/run-gate.js";
import type { Backend } from "../conformance/backends.js";
import { openHttp, openTable } from "../conformance/backends.js";

const CALLERS = 200;
const PROCESSES = 10;
const KEY = "refund:42";
/** Two hundred concurrent requests on one machine are slow. */
const PATIENCE_MS = 60_000;

describe.each([
  ["over HTTP", openHttp],
  ["straight on the table", openTable],
])("two hundred callers %s", { timeout: PATIENCE_MS }, (_name, open) => {
  let backend: Backend;
  let clients: readonly LockClient[];
  beforeAll(async () => {
    backend = await open();
    clients = Array.from({ length: PROCESSES }, () => backend.client());
  });
  afterAll(async () => {
    await Promise.all(clients.map((locks) => locks.close()));
    await backend.close();
  });
  const client = (index: number): LockClient => clients[index % PROCESSES]!;

  it("with one key: one call of the function, and the same value for the 199 others", async () => {
    const gate = createGate();
    let calls = 0;
    const work = async () => {
      calls++;
      await gate.pass();
      return { receipt: "r-1", cents: 250n, attempt: calls };
    };
    const options = { payload: { order: 42 }, waitMs: 60_000 };
    const calling = Promise.all(
      Array.from({ length: CALLERS }, (_, index) => client(index).runOnce(KEY, { ...options, owner: `caller-${index}` }, work)),
    );
    // The work ends only after every other caller was told to wait.
    await expect.poll(toldToWait, { timeout: 30_000, interval: 50 }).toBe(CALLERS - 1);
    gate.open();
    const results = await calling;

    expect(calls).toBe(1);
    const value = { receipt: "r-1", cents: 250n, attempt: 1 };
    expect(results.filter(({ replayed }) => !replayed)).toEqual([{ value, replayed: false, attempt: 1 }]);
    expect(results.filter(({ replayed }) => replayed)).toEqual(Array(CALLERS - 1).fill({ value, replayed: true, attempt: 1 }));
    expect(backend.lines.filter(({ event, id }) => event === "granted" && id === KEY)).toHaveLength(1);
    expect(backend.lines.filter(({ event, id }) => event === "recorded" && id === KEY)).toHaveLength(1);
  });

  it("control: with a key each, two hundred calls, and nothing replayed", async () => {
    let calls = 0;
    // One for each process at a time: two hundred starts and outcomes at once take a busy machine longer than a call may.
    for (let first = 0; first < CALLERS; first += PROCESSES) {
      const calling = clients.map((locks, at) => locks.runOnce(`${KEY}:${first + at}`, () => ++calls));
      expect((await Promise.all(calling)).some(({ replayed }) => replayed)).toBe(false);
    }
    expect(calls).toBe(CALLERS);
  });

  /** The number of callers that were told to wait for another runner. */
  function toldToWait(): number {
    const refused = backend.lines.filter(({ event, reason }) => event === "refused" && reason === "run-in-progress");
    return new Set(refused.map(({ owner }) => owner)).size;
  }
});
