/** A transport that throws unexpected errors: only its caller gets the error, and the next caller in the local queue still gets the key. */
import { describe, expect, it } from "vitest";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";
const BUG = new TypeError("a bug of the transport's");

/** The ways in which `operation` fails from now on, instead of answering. */
const FAULTS: readonly (readonly [how: string, fail: () => Promise<never>])[] = [
  ["rejects", () => Promise.reject(BUG)],
  [
    "throws",
    () => {
      throw BUG;
    },
  ],
];

describe.each(FAULTS)("an operation that %s", (_how, fail) => {
  /** The first caller holds the key, another waits for it, and `operation` is broken. */
  async function broken(operation: keyof ServiceApi, leaseMs = 9000) {
    const harness = createHarness();
    const first = await harness.locks.acquire(KEY, { leaseMs });
    const second = harness.locks.acquire(KEY, { leaseMs, waitMs: 60_000 });
    await harness.clock.advance(1000);
    Object.assign(harness.wire.api, { [operation]: fail });
    return { ...harness, first, second };
  }

  it("as a lease is handed on: it is released instead, and the next in line is granted", async () => {
    const { clock, first, second } = await broken("transfer");
    expect(await clock.settle(first.release())).toBe("released");
    expect((await clock.settle(second)).isHeld()).toBe(true);
  });

  it("as a lease is released: the next in line is granted when the lease is over", async () => {
    const { clock, wire, first, second } = await broken("release");
    Object.assign(wire.api, { transfer: fail });
    await expect(clock.settle(first.release())).rejects.toBe(BUG);
    expect((await clock.settle(second)).isHeld()).toBe(true);
  });

  it("as what was handed on is renewed, because it came late: somebody is granted it when the lease is over", async () => {
    const { clock, wire, first, second } = await broken("renew", 3000);
    wire.next("transfer", ...Array.from({ length: 4 }, () => ({ lost: "reply", silently: true }) as const));
    await clock.settle(first.release().catch((error: unknown) => error));
    expect((await clock.settle(second)).isHeld()).toBe(true);
  });
});
