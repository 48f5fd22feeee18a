/** The transfers: the sum is preserved and there is no deadlock; and controls without the set and without the tokens. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Stage, openStage } from "../../examples/family/stage.js";
import { type Bank, type Transfer, balance, openAccount, transfer } from "../../examples/family/transfer-money.js";
import type { LeaseSet, LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { crash, turnUntil } from "./family-crash.js";
import { gate } from "./gate.js";
import { unlocked } from "./family-unlocked.js";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage({ endpoint: inject("engineEndpoint") });
});
afterAll(() => stage.close());

const approve = (): Promise<boolean> => Promise.resolve(true);

/** Opens accounts with 100 each. */
async function accounts(...names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => openAccount(stage.table, name, 100)));
}
const balances = (...names: readonly string[]): Promise<number[]> => Promise.all(names.map((name) => balance(stage.table, name)));

const bankOf = (locks: Pick<LockClient, "withLocks">, how: Bank["approve"] = approve): Bank => ({
  locks,
  table: stage.table,
  approve: how,
});

describe("transfers at once", () => {
  it("in both directions and round a ring all happen, and the sum stays", { timeout: 60_000 }, async () => {
    const ring = ["a", "b", "c", "d"];
    await accounts(...ring);
    const transfers = ring.flatMap((from, index): Transfer[] => {
      const to = ring[(index + 1) % ring.length]!;
      return [
        { from, to, amount: 10 + index },
        { from: to, to: from, amount: 3 },
        { from, to, amount: 1 },
      ];
    });
    const moved = await Promise.all(transfers.map((one) => transfer(bankOf(stage.join()), one)));
    expect(moved).toEqual(transfers.map(() => true));
    const expected = ring.map((name) =>
      transfers.reduce((sum, { from, to, amount }) => sum + (to === name ? amount : 0) - (from === name ? amount : 0), 100),
    );
    expect(await balances(...ring)).toEqual(expected);
    expect(expected.reduce((sum, one) => sum + one)).toBe(400);
  });

  it("control: without the lock money disappears", async () => {
    await accounts("e", "f", "g");
    const [asked, approved] = [gate(), gate()];
    const slowly = (): Promise<boolean> => (asked.open(), approved.opened.then(() => true));
    const slow = transfer(bankOf(unlocked(), slowly), { from: "f", to: "g", amount: 20 });
    await asked.opened;
    await transfer(bankOf(unlocked()), { from: "e", to: "f", amount: 10 });
    approved.open();
    await slow;
    expect(await balances("e", "f", "g")).toEqual([90, 80, 120]);
  });
});

describe("a transfer that froze on its way, and was overtaken", () => {
  /** Returns the result of the frozen transfer, and the balances afterwards. */
  async function overtaken(from: string, to: string, tokensOf: (locks: LockClient) => Pick<LockClient, "withLocks">) {
    await accounts(from, to);
    const frozen = createLockClient();
    const next = createLockClient({ store: frozen.store, clock: frozen.clock });
    const [asked, thawed] = [gate(), gate()];
    const bank = bankOf(tokensOf(frozen), () => (asked.open(), thawed.opened.then(() => true)));
    const first = transfer(bank, { from, to, amount: 10 }).catch((error: unknown) => error as Error);
    await asked.opened;
    await crash(frozen);
    expect(await transfer(bankOf(next), { from: to, to: from, amount: 50 })).toBe(true);
    thawed.open();
    return { first: await turnUntil(frozen.clock, first), holds: await balances(from, to) };
  }

  it("changes neither account", async () => {
    const { first, holds } = await overtaken("l", "m", (locks) => locks);
    expect(first).toMatchObject({ name: "LockLostError", cause: { name: "TransactionCanceledException" } });
    expect(holds).toEqual([150, 50]);
  });

  it("control: without the tokens of its grant it undoes what was moved since", async () => {
    const latest = new Proxy<Record<string, number>>({}, { get: () => Number.MAX_SAFE_INTEGER });
    const forged = (locks: LockClient) => ({
      withLocks: (keys: readonly string[], work: (set: LeaseSet) => Promise<never>) =>
        locks.withLocks(keys, (set) => work(Object.create(set, { fencingTokens: { value: latest } }) as LeaseSet)),
    });
    const { holds } = await overtaken("n", "o", (locks) => forged(locks) as unknown as LockClient);
    expect(holds).toEqual([90, 110]);
  });
});
