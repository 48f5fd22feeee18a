/** The reset of a limit: what it answers, what it changes, and its line in the log. */
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
