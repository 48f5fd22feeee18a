/** A shared value is renewed once for all processes and callers, and a process that dies, freezes or gives up harms no other. */
import { describe, expect, it } from "vitest";
import { FinalError, InvalidRequestError, LockLostError, LockTimeoutError, LockUnavailableError } from "../../../lib/index.js";
import { createLockClient } from "../../../lib/testing.js";
import { cutOff, HOUR_MS, Partner, TOKEN } from "./provider.js";

const statuses = (results: readonly PromiseSettledResult<unknown>[]): readonly string[] => results.map(({ status }) => status);

describe("of all who want the value", () => {
  it("one renews it: 8 processes with 5 callers each need 1 refresh", async () => {
    const partner = new Partner();
    const processes = Array.from({ length: 8 }, (_, index) => partner.process(`p${index}`));
    const callers = processes.flatMap((locks) => Array.from({ length: 5 }, () => partner.ask(locks)));
    const tokens = await partner.clock.settle(Promise.all(callers));
    expect([partner.refreshes, partner.saves, partner.isRevoked]).toEqual([1, 1, false]);
    expect(new Set(tokens.map(({ refresh }) => refresh))).toEqual(new Set(["r1"]));
    // Each process reads once without the lock, and a few times until the value is fresh, whatever its number of callers.
    expect(partner.reads).toBeLessThanOrEqual(8 * 4);
  });

  it("150 processes have it within a second, although it takes 0.3 s to renew: who waits leaves with it", async () => {
    const partner = new Partner();
    const beganMs = partner.clock.monotonicMs();
    const callers = Array.from({ length: 150 }, (_, index) => partner.ask(partner.process(`p${index}`)));
    await partner.clock.settle(Promise.all(callers));
    expect(partner.clock.monotonicMs() - beganMs).toBeLessThanOrEqual(1000);
    expect([partner.refreshes, partner.isRevoked]).toEqual([1, false]);
    await partner.clock.advance(5000);
    expect(await partner.first.inspect(TOKEN)).toMatchObject({ holders: [], waiters: [] });
  });

  it("one whose store fails while it waits renews it in its turn", async () => {
    const partner = new Partner();
    const first = partner.ask(partner.first);
    await partner.clock.advance(50);
    let reads = 0;
    const read = (): Promise<typeof partner.stored> => (++reads === 2 ? Promise.reject(new Error("the store")) : partner.read());
    const second = partner.ask(partner.process("p1"), { read });
    const [renewed, same] = await partner.clock.settle(Promise.all([first, second]));
    expect(same.refresh).toBe(renewed.refresh);
    expect(partner.refreshes).toBe(1);
  });

  it("control: without the lock the provider revokes the whole chain", async () => {
    const partner = new Partner();
    const alone = async (): Promise<void> => {
      const old = await partner.read();
      await partner.save(await partner.renew(old));
    };
    const results = await partner.clock.settle(Promise.allSettled([alone(), alone()]));
    expect(statuses(results)).toContain("rejected");
    expect(partner.isRevoked).toBe(true);
  });

  it("nobody sends a request while the value is fresh, not even in an outage", async () => {
    const partner = new Partner();
    const locks = partner.process("p1");
    await partner.clock.settle(partner.ask(locks));
    cutOff(locks);
    const before = partner.reads;
    expect(await partner.clock.settle(partner.ask(locks))).toMatchObject({ refresh: "r1" });
    expect(partner.reads).toBe(before + 1);
    expect(partner.refreshes).toBe(1);
  });

  it("the next one renews it after it has expired", async () => {
    const partner = new Partner();
    await partner.clock.settle(partner.ask(partner.first));
    await partner.clock.advance(HOUR_MS);
    expect(await partner.clock.settle(partner.ask(partner.process("p1")))).toMatchObject({ refresh: "r2" });
    expect(partner.isRevoked).toBe(false);
  });

  it("one whose value is refused renews it, though others of its process find it fresh", async () => {
    const partner = new Partner();
    await partner.clock.settle(partner.ask(partner.first));
    const satisfied = partner.ask(partner.first);
    const refused = partner.ask(partner.first, { isFresh: ({ refresh }) => refresh !== "r1" });
    expect((await partner.clock.settle(Promise.all([satisfied, refused]))).map(({ refresh }) => refresh)).toEqual(["r1", "r2"]);
    expect(partner.isRevoked).toBe(false);
  });

  it("those of one scope exclude each other too, which a lock would let in together", async () => {
    const partner = new Partner();
    const scoped = ["p1", "p2"].map((owner) => partner.process(owner).scope("a-scope-that-nobody-guesses"));
    await partner.clock.settle(Promise.all(scoped.map((locks) => partner.ask(locks))));
    expect([partner.refreshes, partner.isRevoked]).toEqual([1, false]);
  });
});

describe("if the one that renews it", () => {
  it("fails, the next one does it", async () => {
    const partner = new Partner();
    let tries = 0;
    const renew: Parameters<Partner["ask"]>[1] = {
      async renew(old) {
        if (++tries > 1) return partner.renew(old);
        await partner.sleep(100);
        throw new Error("503");
      },
    };
    const processes = ["p1", "p2", "p3"].map((owner) => partner.process(owner));
    const results = await partner.clock.settle(Promise.allSettled(processes.map((locks) => partner.ask(locks, renew))));
    expect(statuses(results)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(partner.refreshes).toBe(1);
  });

  const invalid: Parameters<Partner["ask"]>[1] = { renew: () => Promise.reject(new FinalError("invalid_grant")) };
  const six = (partner: Partner, more: Parameters<Partner["ask"]>[1]) => {
    let asked = 0;
    const renew = (): Promise<never> => (asked++, Promise.reject(new FinalError("invalid_grant")));
    const callers = Array.from({ length: 6 }, (_, index) => partner.ask(partner.process(`p${index}`), { ...more, renew }));
    return partner.clock.settle(Promise.allSettled(callers)).then((results) => ({ asked, results }));
  };

  it("fails for good, that is remembered for keepFailureMs: six processes ask the provider once", async () => {
    const partner = new Partner();
    const { asked, results } = await six(partner, { keepFailureMs: 120_000 });
    expect([asked, new Set(statuses(results))]).toEqual([1, new Set(["rejected"])]);
    const names = results
      .map((result) => (result as PromiseRejectedResult).reason as Error)
      .map(({ name, message }) => `${name}: ${message}`);
    expect(names.sort()).toEqual(["FinalError: invalid_grant", ...Array<string>(5).fill(`RunFailedError: ${TOKEN}: invalid_grant`)]);
    const { refresh } = partner.stored ?? {};
    await partner.clock.advance(121_000);
    expect(await partner.clock.settle(partner.ask(partner.process("later"), { keepFailureMs: 120_000 }))).not.toMatchObject({ refresh });
  });

  it("control: without keepFailureMs each of them asks", async () => {
    expect((await six(new Partner(), {})).asked).toBe(6);
  });

  it("fails for good, a fresh value is returned all the same; and another error is not remembered", async () => {
    const partner = new Partner();
    const keep = { keepFailureMs: 120_000 };
    await expect(
      partner.clock.settle(partner.ask(partner.first, { ...keep, renew: () => Promise.reject(new Error("503")) })),
    ).rejects.toThrow("503");
    await partner.clock.settle(partner.ask(partner.first, keep));
    const before = partner.stored;
    await partner.clock.advance(HOUR_MS);
    await expect(partner.clock.settle(partner.ask(partner.first, { ...keep, ...invalid }))).rejects.toThrow("invalid_grant");
    partner.stored = { ...before!, expiresAtMs: partner.clock.wallMs() + HOUR_MS };
    expect(await partner.clock.settle(partner.ask(partner.process("p1"), keep))).toEqual(partner.stored);
  });

  it.each([
    ["dies between the provider and the store, the next one learns that it was interrupted", true],
    ["fails and gives the key back, the next one is told of no interruption", false],
  ])("%s", async (_what, dies) => {
    const partner = new Partner();
    const before = partner.process("before");
    void partner.ask(before, { save: () => Promise.reject(new Error("the store is down")) }).catch(() => undefined);
    await partner.clock.advance(200);
    expect(partner.refreshes).toBe(1);
    // A process that died sends nothing any more.
    if (dies) cutOff(before);
    await partner.clock.advance(1000);
    let said: boolean | undefined;
    const next = partner.ask(partner.process("next"), {
      async renew(old, { interrupted }) {
        try {
          return await partner.renew(old);
        } catch (error) {
          said = await interrupted();
          throw error;
        }
      },
    });
    await expect(partner.clock.settle(next)).rejects.toThrow("invalid_grant");
    expect(said).toBe(dies);
  });

  it("is cut off for longer than its lease, it does not overwrite the later value", async () => {
    const { partner, late } = await overtaken((alone, locks) => alone.ask(locks, slow(alone)));
    expect(late).toBeInstanceOf(LockLostError);
    expect(partner.stored).toMatchObject({ refresh: "later" });
  });

  it("control: without the check of its lease it would overwrite it", async () => {
    const { partner, late } = await overtaken((alone, locks) =>
      locks.withLock(TOKEN, { leaseMs: 5000 }, async () => {
        alone.stored = await alone.renew(alone.stored, 60_000);
        return alone.stored;
      }),
    );
    expect(late).toBeInstanceOf(LockLostError);
    expect(partner.stored).toMatchObject({ refresh: "r1" });
  });

  it("can't reach the locks, it doesn't ask the provider", async () => {
    const partner = new Partner();
    const locks = partner.process("p1");
    cutOff(locks);
    await expect(partner.clock.settle(partner.ask(locks))).rejects.toBeInstanceOf(LockUnavailableError);
    expect(partner.refreshes).toBe(0);
  });
});

/** A renewal whose answer takes much longer than its lease. */
const slow = (partner: Partner): Parameters<Partner["ask"]>[1] => ({ leaseMs: 5000, renew: (old) => partner.renew(old, 60_000) });

/** Cuts off a process during its renewal, and lets another one store a later value. Returns the error of the first. */
async function overtaken(
  renewing: (partner: Partner, locks: ReturnType<Partner["process"]>) => Promise<unknown>,
): Promise<{ partner: Partner; late: unknown }> {
  const partner = new Partner();
  const frozen = partner.process("frozen");
  const late = renewing(partner, frozen).catch((error: unknown) => error);
  await partner.clock.advance(1000);
  cutOff(frozen);
  const later = { refresh: "later", expiresAtMs: partner.clock.wallMs() + HOUR_MS, by: 0 };
  await partner.clock.settle(partner.ask(partner.process("next"), { renew: () => later }));
  expect(partner.stored).toMatchObject({ refresh: "later" });
  return { partner, late: await partner.clock.settle(late) };
}

describe("a caller that gives up", () => {
  it("is told so at once, and the others get the value", async () => {
    const partner = new Partner();
    const gone = new AbortController();
    const calls = [partner.ask(partner.first, { signal: gone.signal }), partner.ask(partner.first)];
    await partner.clock.advance(50);
    gone.abort();
    await expect(calls[0]).rejects.toMatchObject({ name: "AbortError" });
    expect(await partner.clock.settle(calls[1]!)).toMatchObject({ refresh: "r1" });
    expect(partner.refreshes).toBe(1);
  });

  it("before it asked, is told so without a read", async () => {
    const partner = new Partner();
    await expect(partner.ask(partner.first, { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
    expect(partner.refreshes).toBe(0);
  });

  it("as the last one, ends the wait for the key, and the next caller starts anew", async () => {
    const partner = new Partner();
    const lease = await partner.process("holder").acquire(TOKEN);
    const gone = new AbortController();
    const call = partner.ask(partner.first, { signal: gone.signal });
    await partner.clock.advance(1000);
    gone.abort();
    await expect(call).rejects.toMatchObject({ name: "AbortError" });
    await partner.clock.advance(100);
    expect((await partner.first.inspect(TOKEN)).waiters).toEqual([]);
    const next = partner.ask(partner.first);
    await lease.release();
    expect(await partner.clock.settle(next)).toMatchObject({ refresh: "r1" });
  });

  it("during the renewal, does not stop it: the token that it spent is replaced in the store", async () => {
    const partner = new Partner();
    const gone = new AbortController();
    const call = partner.ask(partner.first, { signal: gone.signal });
    await partner.clock.advance(150);
    gone.abort();
    await expect(call).rejects.toMatchObject({ name: "AbortError" });
    await partner.clock.advance(1000);
    expect([partner.refreshes, partner.saves, partner.stored?.refresh]).toEqual([1, 1, "r1"]);
  });

  it("waits no longer than waitMs for another process", async () => {
    const partner = new Partner();
    await partner.process("holder").acquire(TOKEN);
    await expect(partner.clock.settle(partner.ask(partner.first, { waitMs: 2000 }))).rejects.toBeInstanceOf(LockTimeoutError);
    expect(partner.refreshes).toBe(0);
  });
});

describe("a value that its own renewal asks for", () => {
  it.each(["renew", "save"] as const)("in %s waits for its key, and not for ever: its error says why", async (call) => {
    const locks = createLockClient();
    const calls = { read: () => undefined, isFresh: () => false, renew: () => 1, save: async () => undefined };
    const ask = (): Promise<number> => locks.refresh<number>("token", { ...calls, [call]: () => ask() });
    const message = expect.stringContaining("a call around this one seems to hold it") as string;
    await expect(locks.clock.settle(ask())).rejects.toMatchObject({ name: "LockTimeoutError", message });
  });
});

describe("refuses", () => {
  const calls = { read: () => 1, isFresh: () => true, renew: () => 2, save: async () => undefined };
  it.each([
    ["read", { ...calls, read: undefined }, "read: it must be a function"],
    ["isFresh", { ...calls, isFresh: true }, "isFresh: it must be a function"],
    ["leaseMs", { ...calls, leaseMs: 1 }, "leaseMs: 1 given; it is a whole number of ms from 1000 to 86400000"],
    ["signal", { ...calls, signal: "soon" }, 'signal: "soon" given; it must be an AbortSignal'],
    [
      "mode",
      { ...calls, mode: "shared" },
      "mode: is not an option of refresh; these are: read, isFresh, renew, save, leaseMs, waitMs, signal",
    ],
    ["options", undefined, "options: undefined given; refresh takes an object of options: read"],
  ])("an invalid %s, and names the rule", async (_name, options, message) => {
    const refused = createLockClient().refresh("k", options as never);
    await expect(refused).rejects.toBeInstanceOf(InvalidRequestError);
    await expect(refused).rejects.toThrow(message);
  });
});
