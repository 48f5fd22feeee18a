/** A store's conditions: a wait is one change, members stay out of the queue, and a notify brings them into it. */
import { expect, it } from "vitest";
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { LockStore } from "../../../lib/store/port.js";
import { QueueScene } from "../queue-fixture.js";
import { A, B, C, D, leaseId, LEASE_MS } from "../fixture.js";

const { waiterTtlMs: TTL_MS } = DEFAULTS;
const E = leaseId(5);
const LONG = { leaseMs: 100 * LEASE_MS };

export function waitsForConditions(store: () => LockStore): void {
  /** A key on which B waits for a condition, and then D. */
  const two = async (): Promise<QueueScene> => {
    const lock = new QueueScene(store());
    await lock.acquire(A);
    await lock.at(1).wait(A, B);
    await lock.at(2).acquire(C);
    await lock.at(3).wait(C, D);
    return lock.at(4);
  };

  it("loses no notify to keep-alives and other notifies at the same time", async () => {
    const lock = await two();
    await lock.acquire(E, LONG);
    lock.at(TTL_MS / 2 + 4);
    const [, , ...told] = await Promise.all([lock.queue(B), lock.queue(D), lock.notify(E), lock.notify(E)]);
    expect(told).toEqual(told.map(() => ({ ok: true, how: "notified", notified: 1 })));
    const record = await lock.read();
    expect(record?.waiters.map(({ leaseId: id }) => id)).toEqual([B, D]);
    expect(record).not.toHaveProperty("waitSet");
  });
}
