/** Writes that met another one on their item, of a transaction or of another Region: what is sent again, and as what. */
import { describe, expect, it } from "vitest";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { createSleeperStore } from "../../lib/store/dynamo/sleeper-store.js";
import type { LockStore, TiedLease } from "../../lib/store/port.js";
import { callsBy } from "../../lib/testing/served-table.js";
import { serviceError } from "../../lib/testing/table/errors.js";
import { tableInMemory } from "../simulation/dynamo/table-in-memory.js";
import { dynamoStoreOn, START_MS } from "./fixture.js";

const CONFLICT = "ReplicatedWriteConflictException";

/** A store whose next writes meet others. */
class Scene {
  /** The writes that still meet another one. */
  meeting = 0;
  sent = 0;
  /** Called when a write has met another one. */
  onMet: () => void = () => undefined;
  readonly store: LockStore;

  constructor() {
    const { calls, tableName } = tableInMemory();
    const updateItem: TableCalls["updateItem"] = async (input) => {
      this.sent++;
      if (this.meeting === 0) return calls.updateItem(input);
      this.meeting--;
      this.onMet();
      throw serviceError(CONFLICT, "another Region writes");
    };
    this.store = dynamoStoreOn({ calls: { ...calls, updateItem }, tableName }, () => 0);
  }
}

describe("a write that met another one", () => {
  const RUN = { namespace: "n", kind: "runs", key: "k" } as const;
  it.each([
    { what: "the table's tenancy", write: (store: LockStore) => store.tenancy("shared") },
    { what: "a payload", write: (store: LockStore) => store.keepPayload(RUN, { digest: "d", ttlAtSec: 1 }, "text") },
  ])("is sent again as it was: $what", async ({ write }) => {
    const scene = new Scene();
    scene.meeting = 4;
    await write(scene.store);
    expect(scene.sent).toBe(5);
  });

  it("is told as contended after five attempts, and certainly not written", async () => {
    const scene = new Scene();
    scene.meeting = 5;
    await expect(scene.store.tenancy("shared")).rejects.toMatchObject({ name: "KeyContended", definite: true });
    expect(scene.sent).toBe(5);
  });
});

describe("the deletion of a sleeper that met another write", () => {
  it.each([
    { name: CONFLICT, status: 400, told: undefined },
    { name: "InternalServerError", status: 500, told: "StoreUnavailable" },
  ])("is left to the next sweep, and is no failure: $name is told as $told", async ({ name, status, told }) => {
    const refusing = callsBy(() => Promise.reject(serviceError(name, "no", status)));
    const sleepers = createSleeperStore({ calls: refusing, tableName: "t" });
    const deleted = sleepers.delete({ address: { namespace: "n", kind: "locks", key: "k" }, leaseId: "l", putAtMs: 1 } as TiedLease);
    expect(await deleted.catch((error: unknown) => (error as Error).name)).toBe(told);
  });
});

describe("a take that met another write", () => {
  it("is decided again by the clocks of that moment, and the limit is still known", async () => {
    const scene = new Scene();
    let ms = 0;
    const clocks = () => ({ earliestMs: START_MS + ms, latestMs: START_MS + ms });
    const take = (cost: number) =>
      scene.store.limits.take({ namespace: "n", key: "k" }, { rates: [{ count: 10, perMs: 1000, burst: 10 }], cost, waitMs: 1000 }, clocks);
    await take(10);
    scene.meeting = 1;
    scene.onMet = () => (ms += 400);
    // The rate brings ten a second. 400 ms have passed, so there is room for five in another 100 ms.
    expect(await take(5)).toMatchObject({ ok: true, startInMs: 100 });
  });
});
