/**
 * A large checkpoint whose item is stored for longer, because the record is. Regression: a heartbeat that did so saved
 * the checkpoint again, as the first of its lease, over a newer one that was saved meanwhile without a sequence.
 */
import { describe, expect, it } from "vitest";
import type { LockStore } from "../../lib/store/port.js";
import { RunCaller } from "./costs/run-caller.js";
import { A, methodsOf } from "./fixture.js";
import { BACKENDS } from "./backends.js";

const DAY_MS = 86_400_000;
const OLD = "old".padEnd(2000);

/** A run of several days with a large checkpoint, just before the heartbeat that extends the record beyond the checkpoint's item. */
async function longRun(store: LockStore, sequence?: number) {
  const held: { whileProlonging?: () => Promise<unknown> } = {};
  const prolonged: number[] = [];
  const run = new RunCaller({
    ...methodsOf(store),
    async keepPayload(address, payload, text) {
      await store.keepPayload(address, payload, text);
      if (text !== undefined) return;
      prolonged.push(payload.ttlAtSec);
      await held.whileProlonging?.();
    },
  });
  expect((await run.start(A, { leaseMs: DAY_MS, keepResultMs: 60_000 })).ok).toBe(true);
  expect((await run.renew(A, { checkpoint: OLD, ...(sequence !== undefined && { sequence }) })).ok).toBe(true);
  await run.pass(0.9 * DAY_MS);
  expect((await run.renew(A)).ok).toBe(true);
  await run.pass(0.9 * DAY_MS);
  return { run, held, prolonged, saved: async () => (await store.read(run.address))?.run?.checkpoint };
}

describe.each(BACKENDS)("in %s, a heartbeat that keeps a large checkpoint for longer", (_name, processes) => {
  const open = async (): Promise<LockStore> => (await processes())[0];

  it.each([
    ["small", "newer"],
    ["large", "newer".padEnd(2000)],
  ])("does not undo a newer one that was saved meanwhile without a sequence: %s", async (_size, newer) => {
    const { run, held, prolonged } = await longRun(await open());
    held.whileProlonging = () => run.renew(A, { checkpoint: newer });
    expect((await run.renew(A)).ok).toBe(true);
    expect(prolonged).toHaveLength(1);
    expect(await run.look()).toMatchObject({ run: { checkpoint: newer } });
  });

  it.each([[undefined], [7]])(
    "changes nothing of it but its time, once, where nobody saved another (its sequence: %s)",
    async (sequence) => {
      const { run, prolonged, saved } = await longRun(await open(), sequence);
      const before = await saved();
      for (const _time of [1, 2]) expect((await run.renew(A)).ok).toBe(true);
      expect(prolonged).toHaveLength(1);
      expect(prolonged[0]).toBeGreaterThan(before?.ttlAtSec ?? 0);
      expect(await saved()).toEqual({ ...before, ttlAtSec: prolonged[0] });
    },
  );
});
