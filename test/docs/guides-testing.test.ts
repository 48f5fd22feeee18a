/** "Testing": the example for users runs unchanged, and again without its protection; the page quotes it. */
import { describe, expect, it } from "vitest";
import { accept } from "../../examples/testing/orders.js";
import type { Lease, LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../tidy/tree.js";
import { isFaithful, quotesIn } from "./quotes.js";
import { guide } from "./snippets.js";
import "../../examples/testing/orders.test.js";

const PATH = "docs/testing.md";
const GUIDE = guide("testing");

describe("the page on testing", () => {
  const quotes = quotesIn(PATH, readFileSync(join(ROOT, PATH), "utf8"));
  /** Replaces the package's name by the source beside the example. */
  const asInExample = (line: string): string => line.replace('"holdfast/testing"', '"../../lib/testing.js"');

  it("shows nothing but the example", () => {
    expect(quotes).toHaveLength(GUIDE.blocks("ts").length);
    expect(quotes.length).toBeGreaterThan(5);
    const strange = quotes.filter(({ file, lines }) => !isFaithful({ file, lines: lines.map(asInExample) }));
    expect(strange).toEqual([]);
  });
});

describe("the example, with its protection taken away", () => {
  const orders = { statusOf: async () => "NEW", setStatus: async () => undefined };

  it("control: without the lock both accept", async () => {
    const unlocked = {
      withLock: async (_key: string, work: unknown) =>
        (work as (lease: Partial<Lease>) => never)({ assertHeld: () => undefined, fencingToken: 1 }),
    };
    let status = "NEW";
    const slow = { statusOf: async () => status, setStatus: async (_id: number, next: string) => void (status = next) };
    const tell = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
    const both = await Promise.all([accept(unlocked, slow, tell, 1231), accept(unlocked, slow, tell, 1231)]);
    expect(both).toEqual(["accepted", "accepted"]);
  });

  it("control: without assertHeld the late write is tried", async () => {
    const here = createLockClient();
    const there = createLockClient({ clock: here.clock, store: here.store });
    const blind: Pick<LockClient, "withLock"> = {
      withLock: (key: string, work: unknown) =>
        here.withLock(key, ({ fencingToken }) => (work as (lease: Partial<Lease>) => never)({ assertHeld: () => undefined, fencingToken })),
    };
    for (const [locks, writes] of [
      [here, 1],
      [blind, 2],
    ] as const) {
      const written: number[] = [];
      const counting = { ...orders, setStatus: async (_id: number, _status: string, token: number) => void written.push(token) };
      const freezes = async (): Promise<void> => {
        await here.clock.freeze(40_000);
        await accept(there, counting, async () => undefined, 1231);
      };
      await expect(accept(locks, counting, freezes, 1231)).rejects.toMatchObject({ name: "LockLostError" });
      expect(written).toHaveLength(writes);
    }
  });

  it("control: orders that compare no tokens take the late write; that it was lost is all that is told", async () => {
    const here = createLockClient();
    const there = createLockClient({ clock: here.clock, store: here.store });
    const writes: number[] = [];
    const careless = { ...orders, setStatus: async (_id: number, _status: string, token: number) => void writes.push(token) };
    const freezing = {
      ...careless,
      setStatus: async (id: number, status: string, token: number) => {
        await here.clock.freeze(40_000);
        await accept(there, careless, async () => undefined, id);
        await careless.setStatus(id, status, token);
      },
    };
    await expect(accept(here, freezing, async () => undefined, 1231)).rejects.toMatchObject({ name: "LockLostError" });
    expect(writes).toHaveLength(2);
    expect(writes[1]).toBeLessThan(writes[0]!);
  });
});
