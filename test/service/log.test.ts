/**
 * The log, line by line: grants, losses and refusals, and each of them again for a request that is sent again. Regression: a repeat changed
 * nothing and had no line, so a hold whose first answer was lost began or ended without a trace.
 */
import { describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { StoreUnavailable } from "../../lib/store/port.js";
import { ACQUIRE, alice, bob, CHECK, directService, failing, hash, RELEASE, RENEW, toOthers } from "../support/direct-service.js";
import { BOB } from "../support/http-event.js";
import { LEASE_ID } from "../support/lease-ids.js";

const TRANSFER = "POST /v1/locks/{key}/leases/{leaseId}/transfer";
const BREAK = "POST /v1/locks/{key}/break";
const LEASE_MS = 10_000;

/** A lease of ORDER_1231, acquired 250 ms after its leaseId was made, and the common fields of all its lines. */
async function held() {
  const service = directService();
  const leaseId = service.newId();
  await service.clock.advance(250);
  const { body } = await service.ask(ACQUIRE, { key: "ORDER_1231", leaseId, body: { owner: "checkout-7", leaseMs: LEASE_MS } });
  const { fencingToken } = body as { fencingToken: number };
  const common = { namespace: "default", kind: "lock", model: "ORDER", id: "1231", requestId: "request-1" };
  const mine = { ...common, owner: "checkout-7", principal: alice, lease: hash(leaseId), fencingToken };
  return { ...service, leaseId, fencingToken, common, mine, newLines: () => service.lines.slice(1) };
}

describe("a line", () => {
  it("is written for a grant: who, what, since when, with which token, after how long", async () => {
    const { lines, mine, clock } = await held();
    expect(lines).toEqual([{ event: "granted", ...mine, operateAtMs: clock.wallMs(), waitedMs: 250 }]);
  });

  it("is written for a release, with how long the hold was; and for its repeat, as one", async () => {
    const { ask, leaseId, mine, clock, newLines } = await held();
    await clock.advance(1_160);
    await ask(RELEASE, { key: "ORDER_1231", leaseId });
    await ask(RELEASE, { key: "ORDER_1231", leaseId });
    const { owner: _kept, fencingToken: _token, ...asked } = mine;
    const ended = { event: "ended", operateAtMs: clock.wallMs(), reason: "released" };
    expect(newLines()).toEqual([
      { ...ended, ...mine, heldMs: 1_160 },
      { ...ended, ...asked, owner: "", repeated: true },
    ]);
  });

  it("is written for both sides of a takeover: whose lease it was, and who took it", async () => {
    const { ask, newId, common, mine, clock, newLines } = await held();
    const lapsedMs = takeoverMarginMs(LEASE_MS);
    await clock.advance(LEASE_MS + lapsedMs);
    const leaseId = newId();
    const { body } = await ask(ACQUIRE, { key: "ORDER_1231", leaseId, authorizer: BOB });
    const operateAtMs = clock.wallMs();
    expect(newLines()).toEqual([
      { event: "ended", ...mine, ...toOthers, operateAtMs, heldMs: LEASE_MS + lapsedMs, lapsedMs, reason: "taken", by: bob },
      {
        event: "granted",
        ...common,
        operateAtMs,
        owner: "",
        principal: bob,
        lease: hash(leaseId),
        fencingToken: body.fencingToken,
        waitedMs: 0,
      },
    ]);
  });

  it("is written for both sides of a transfer, and for its repeat, as one", async () => {
    const { ask, newId, leaseId, mine, clock, newLines } = await held();
    const to = newId();
    const transfer = () => ask(TRANSFER, { key: "ORDER_1231", leaseId, body: { leaseId: to, owner: "worker" } });
    const { body } = await transfer();
    await transfer();
    const operateAtMs = clock.wallMs();
    const transferred = { event: "transferred", ...mine, operateAtMs, owner: "worker", lease: hash(to), fencingToken: body.fencingToken };
    expect(newLines()).toEqual([
      { event: "ended", ...mine, operateAtMs, heldMs: 0, reason: "transferred" },
      transferred,
      { ...transferred, repeated: true },
    ]);
  });

  it("is written for a break and its repeat, with who broke it and why", async () => {
    const { ask, fencingToken, mine, clock, newLines } = await held();
    const operateAtMs = clock.wallMs();
    for (const drainMs of [undefined, undefined, 0, 0])
      await ask(BREAK, { key: "ORDER_1231", body: { fencingToken, reason: "stuck", drainMs }, authorizer: BOB });
    const breaking = { event: "breaking", ...mine, ...toOthers, operateAtMs, by: bob, reason: "stuck" };
    const ended = { event: "ended", ...mine, operateAtMs, by: bob, reason: "broken: stuck" };
    expect(newLines()).toEqual([
      breaking,
      { ...breaking, repeated: true },
      { ...ended, ...toOthers, heldMs: 0 },
      { ...ended, owner: "", principal: "", repeated: true },
    ]);
  });

  it("is written for a cancel of what never came, without a token, and for its repeat, as one", async () => {
    const { ask, newId, common, clock, newLines } = await held();
    const leaseId = newId();
    for (const _time of [1, 2]) await ask(RELEASE, { key: "ORDER_1231", leaseId });
    const said = { owner: "", principal: alice, lease: hash(leaseId), reason: "cancelled" };
    const ended = { event: "ended", ...common, operateAtMs: clock.wallMs(), ...said };
    expect(newLines()).toEqual([ended, { ...ended, repeated: true }]);
  });

  it("is written for an acquire that was sent again, and for no renewal or look", async () => {
    const { ask, leaseId, mine, clock, newLines } = await held();
    for (const routeKey of [RENEW, CHECK, "GET /v1/locks/{key}", "GET /v1/locks", "GET /v1/health"])
      await ask(routeKey, { key: "ORDER_1231", leaseId });
    await ask(ACQUIRE, { key: "ORDER_1231", leaseId, body: { owner: "checkout-7", leaseMs: LEASE_MS } });
    expect(newLines()).toEqual([{ event: "replayed", ...mine, operateAtMs: clock.wallMs() }]);
  });

  it.each<[routeKey: string, by: object | undefined, owner: string | undefined, reason: string]>([
    [ACQUIRE, BOB, "checkout-8", "locked"],
    [RENEW, BOB, undefined, "lease-lost: never"],
    [TRANSFER, BOB, undefined, "lease-lost: never"],
  ])("is written for a refusal, with who asked and why not: %s", async (routeKey, authorizer, owner, reason) => {
    const { ask, newId, common, clock, newLines } = await held();
    const leaseId = newId();
    const body = routeKey === ACQUIRE ? { owner } : routeKey === TRANSFER ? { leaseId: newId() } : {};
    await ask(routeKey, { key: "ORDER_1231", leaseId, body, ...(authorizer && { authorizer }) });
    const said = { event: "refused", ...common, operateAtMs: clock.wallMs(), principal: bob, lease: hash(leaseId), reason };
    expect(newLines()).toEqual([{ ...said, ...(owner !== undefined && { owner }) }]);
  });

  it("is written for another principal's attempt, and says which lease it was about", async () => {
    const { ask, leaseId, mine, newLines } = await held();
    for (const routeKey of [ACQUIRE, RENEW, RELEASE]) await ask(routeKey, { key: "ORDER_1231", leaseId, authorizer: BOB });
    expect(newLines().map(({ event, principal, lease, reason }) => [event, principal, lease, reason])).toEqual(
      Array(3).fill(["refused", bob, mine.lease, "forbidden"]),
    );
  });

  it("says what the table said, but for the leases that it named", async () => {
    const error = new StoreUnavailable("ValidationException: no h.0199a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b", true, false);
    const { ask, newId, lines } = directService({ store: failing(error) });
    await ask(ACQUIRE, { leaseId: newId() });
    expect(lines[0]?.reason).toBe(`unavailable: ValidationException: no h.${hash("0199a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b")}`);
    expect(JSON.stringify(lines)).not.toMatch(LEASE_ID);
  });

  it.each([
    ["ORDER_1231", "ORDER", "1231"],
    ["ORDER_1231_7", "ORDER", "1231_7"],
    ["refund:42", "", "refund:42"],
    ["_x", "", "x"],
  ])("parts the key %s into model and id", async (key, model, id) => {
    const { ask, newId, lines } = directService();
    await ask(ACQUIRE, { key, leaseId: newId() });
    expect(lines).toMatchObject([{ model, id }]);
  });
});
