/** The log of runs, line by line: starts with their attempts, outcomes, and resets with their reasons. */
import { describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { alice, bob, CANCEL_START, COMPLETE_RUN, directService, hash, INSPECT_RUN, RENEW_RUN } from "../support/direct-service.js";
import { RESET, START, toOthers } from "../support/direct-service.js";
import { BOB } from "../support/http-event.js";

const KEY = "INVOICE_42";
const LEASE_MS = 10_000;
const OVER_MS = LEASE_MS + takeoverMarginMs(LEASE_MS);
const BODY = { owner: "billing-3", leaseMs: LEASE_MS, fingerprint: "fingerprint-of-it" };
const SUCCEEDED = { state: "succeeded", result: "result-of-it" };

/** An attempt at INVOICE_42, started 250 ms after its leaseId was made, and the common fields of all its lines. */
async function running() {
  const service = directService();
  const leaseId = service.newId();
  await service.clock.advance(250);
  const { body } = await service.ask(START, { key: KEY, leaseId, body: BODY });
  const { fencingToken } = body as { fencingToken: number };
  const common = { namespace: "default", kind: "run", model: "INVOICE", id: "42", requestId: "request-1" };
  const mine = { ...common, owner: "billing-3", principal: alice, lease: hash(leaseId), fencingToken };
  return { ...service, leaseId, common, mine, newLines: () => service.lines.slice(1) };
}

describe("a line", () => {
  it("is written for a start: who, what, since when, with which token, as which attempt", async () => {
    const { lines, mine, clock } = await running();
    expect(lines).toEqual([{ event: "granted", ...mine, operateAtMs: clock.wallMs(), waitedMs: 250, attempt: 1 }]);
  });

  it("is written for a start that was sent again", async () => {
    const { ask, leaseId, mine, clock, newLines } = await running();
    await ask(START, { key: KEY, leaseId, body: BODY });
    expect(newLines()).toEqual([{ event: "replayed", ...mine, operateAtMs: clock.wallMs(), attempt: 1 }]);
  });

  it.each([
    ["succeeded", SUCCEEDED],
    ["failed", { state: "failed", error: "result-of-it", retryable: false }],
    ["retry", { state: "failed", error: "result-of-it", retryable: true }],
  ])("is written for the end of an attempt, and for what came of it, and for its repeat, as one: %s", async (outcome, body) => {
    const { ask, leaseId, mine, clock, newLines } = await running();
    await clock.advance(1_160);
    for (const _time of [1, 2]) await ask(COMPLETE_RUN, { key: KEY, leaseId, body });
    const operateAtMs = clock.wallMs();
    const { fencingToken: _token, ...again } = mine;
    expect(newLines()).toEqual([
      { event: "ended", ...mine, operateAtMs, heldMs: 1_160, reason: "released" },
      { event: "recorded", ...mine, operateAtMs, attempt: 1, outcome },
      { event: "recorded", ...again, operateAtMs, owner: "", attempt: 1, outcome, repeated: true },
    ]);
  });

  it("has the name of an error, and nothing else of it", async () => {
    const { ask, leaseId, newLines } = await running();
    const error = { name: "FinalError", message: "card 4711 declined" };
    await ask(COMPLETE_RUN, { key: KEY, leaseId, body: { state: "failed", error, retryable: false } });
    const [, recorded] = newLines();
    expect(recorded).toMatchObject({ event: "recorded", outcome: "failed", errorName: "FinalError" });
    expect(JSON.stringify(recorded)).not.toContain("4711");
  });

  it("says that the lease had run out when its outcome came late", async () => {
    const { ask, leaseId, clock, newLines } = await running();
    await clock.advance(LEASE_MS);
    await ask(COMPLETE_RUN, { key: KEY, leaseId, body: SUCCEEDED });
    expect(newLines()).toMatchObject([{ event: "ended", reason: "expired", heldMs: LEASE_MS }, { event: "recorded" }]);
  });

  it("is written for both sides of a takeover: whose attempt it was, and which one follows", async () => {
    const { ask, newId, common, mine, clock, newLines } = await running();
    await clock.advance(OVER_MS);
    const leaseId = newId();
    const { body } = await ask(START, { key: KEY, leaseId, authorizer: BOB });
    const operateAtMs = clock.wallMs();
    const theirs = { owner: "", principal: bob, lease: hash(leaseId), fencingToken: body.fencingToken as number };
    expect(newLines()).toEqual([
      { event: "ended", ...mine, ...toOthers, operateAtMs, heldMs: OVER_MS, lapsedMs: OVER_MS - LEASE_MS, reason: "taken", by: bob },
      { event: "granted", ...common, ...theirs, operateAtMs, waitedMs: 0, attempt: 2 },
    ]);
  });

  it("is written for a start that is given up", async () => {
    const { ask, leaseId, mine, clock, newLines } = await running();
    await ask(CANCEL_START, { key: KEY, leaseId });
    expect(newLines()).toEqual([{ event: "ended", ...mine, operateAtMs: clock.wallMs(), heldMs: 0, reason: "released" }]);
  });

  it("is written for a reset, with who did it and why: whose outcome it was, of which attempt", async () => {
    const { ask, leaseId, common, mine, clock, newLines } = await running();
    await ask(COMPLETE_RUN, { key: KEY, leaseId, body: SUCCEEDED });
    await ask(RESET, { key: KEY, body: { reason: "charged twice" }, authorizer: BOB });
    expect(newLines().slice(2)).toEqual([
      {
        event: "reset",
        ...common,
        operateAtMs: clock.wallMs(),
        owner: "",
        principal: "",
        lease: mine.lease,
        attempt: 1,
        by: bob,
        reason: "charged twice",
      },
    ]);
    // Nothing is left to reset: a line that reports a reset is marked as repeated.
    await ask(RESET, { key: KEY, body: { reason: "charged twice" }, authorizer: BOB });
    expect(newLines().filter(({ repeated }) => !repeated)).toHaveLength(3);
  });

  it("is written for a reset of what was interrupted: also for the lease that it ends", async () => {
    const { ask, common, mine, clock, newLines } = await running();
    await clock.advance(OVER_MS);
    await ask(RESET, { key: KEY, body: { reason: "stuck" }, authorizer: BOB });
    const operateAtMs = clock.wallMs();
    expect(newLines()).toEqual([
      {
        event: "ended",
        ...mine,
        ...toOthers,
        operateAtMs,
        heldMs: OVER_MS,
        lapsedMs: OVER_MS - LEASE_MS,
        by: bob,
        reason: "broken: stuck",
      },
      { event: "reset", ...common, operateAtMs, owner: "", principal: "", attempt: 1, by: bob, reason: "stuck" },
    ]);
  });

  it("is written for no heartbeat, checkpoint, replay or look", async () => {
    const { ask, newId, leaseId, newLines } = await running();
    for (const body of [{}, { checkpoint: 1 }, { checkpoint: "x".repeat(5_000) }]) await ask(RENEW_RUN, { key: KEY, leaseId, body });
    for (const routeKey of [INSPECT_RUN, "GET /v1/runs", "GET /v1/runs/{key}/leases/{leaseId}"]) await ask(routeKey, { key: KEY, leaseId });
    expect(newLines()).toEqual([]);
    await ask(COMPLETE_RUN, { key: KEY, leaseId, body: SUCCEEDED });
    await ask(START, { key: KEY, leaseId: newId(), authorizer: BOB });
    expect(newLines()).toHaveLength(2);
  });

  it.each<[routeKey: string, body: object, owner: string | undefined, reason: string]>([
    [START, { owner: "billing-4" }, "billing-4", "run-in-progress"],
    [START, { owner: "billing-4", fingerprint: "other" }, "billing-4", "fingerprint-mismatch"],
    [RENEW_RUN, {}, undefined, "lease-lost: never"],
    [COMPLETE_RUN, SUCCEEDED, undefined, "lease-lost: never"],
    [COMPLETE_RUN, { state: "succeeded", result: "x".repeat(5_000) }, undefined, "lease-lost: never"],
    [RESET, { reason: "x" }, undefined, "run-in-progress"],
  ])("is written for a refusal, with who asked and why not: %s %j", async (routeKey, body, owner, reason) => {
    const { ask, newId, common, clock, newLines } = await running();
    const leaseId = newId();
    await ask(routeKey, { key: KEY, leaseId, body, authorizer: BOB });
    const said = { event: "refused", ...common, operateAtMs: clock.wallMs(), principal: bob, reason };
    expect(newLines()).toEqual([{ ...said, ...(routeKey !== RESET && { lease: hash(leaseId) }), ...(owner !== undefined && { owner }) }]);
  });
});
