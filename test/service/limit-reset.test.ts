/** The reset of a limit: what it answers, what it changes, and its line in the log; and the lines of takes, by which the wrong one is found. */
import { describe, expect, it } from "vitest";
import { type DirectService, directService } from "../support/direct-service.js";

const TAKES = "POST /v1/limits/{key}/takes";
const RESET = "POST /v1/limits/{key}/reset";
const WRONG = { rates: [{ count: 1, perMs: 31 * 86_400_000 }] };
const RIGHT = { rates: [{ count: 5, perMs: 1000 }] };

const take = (service: DirectService, body: object) => service.ask(TAKES, { key: "partner", body });
const reset = (service: DirectService, key = "partner") => service.ask(RESET, { key, body: { reason: "deployed with the wrong rates" } });

describe("a name that a take with wrong rates shut", () => {
  it("says how it is opened, is opened by a reset, and takes other rates; control: not before", async () => {
    const service = directService();
    await take(service, WRONG);
    const refused = await take(service, RIGHT);
    expect([refused.status, refused.body]).toMatchObject([409, { code: "limit-mismatch" }]);
    expect((refused.body as { detail: string }).detail).toMatch(/until it is full again in \d+ ms, or an operator resets it$/);
    expect(await reset(service)).toMatchObject({ status: 200, body: { reset: true } });
    expect(await service.ask("GET /v1/limits/{key}", { key: "partner" })).toMatchObject({ body: { remaining: [1], fullInMs: 0 } });
    expect(await take(service, RIGHT)).toMatchObject({ status: 200, body: { remaining: [1] } });
  });
});

describe("the lines of takes", () => {
  it("say of each who took how much at which rates, and when it may start, or why it was refused", async () => {
    const service = directService();
    const slow = { rates: [{ count: 8, perMs: 60_000, burst: 1 }] };
    await take(service, slow);
    await take(service, { ...slow, waitMs: 60_000 });
    await take(service, slow);
    await take(service, { ...RIGHT, cost: 2 });
    await take(service, { ...RIGHT, cost: 9 });
    const by = { kind: "limit", id: "partner", principal: expect.any(String) as string, rates: "8/60000/1", cost: 1 };
    const right = { ...by, rates: "4/1000/2" };
    expect(service.lines).toMatchObject([
      { ...by, event: "granted", waitedMs: 0 },
      { ...by, event: "granted", waitedMs: expect.any(Number) as number },
      { ...by, event: "refused", reason: "rate-limited" },
      { ...right, event: "refused", reason: "limit-mismatch", cost: 2 },
      { ...right, event: "refused", reason: "invalid-request", cost: 9 },
    ]);
  });
});

describe("a reset of a limit", () => {
  it("is in the log, with who did it and why", async () => {
    const service = directService();
    await take(service, WRONG);
    await reset(service);
    expect(service.lines.filter(({ event }) => event === "reset")).toEqual([
      expect.objectContaining({
        kind: "limit",
        id: "partner",
        reason: "deployed with the wrong rates",
        principal: expect.any(String) as string,
      }),
    ]);
  });

  it("of a name that nobody used is 404, which is in the log too", async () => {
    const service = directService();
    expect(await reset(service, "nobody")).toMatchObject({ status: 404, body: { code: "not-found", definite: true } });
    expect(service.lines).toMatchObject([{ event: "refused", kind: "limit", id: "nobody", reason: "not-found" }]);
  });
});
