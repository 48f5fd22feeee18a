/**
 * Runs and strangers (S15): another principal of the namespace may see a run but never act with another's lease; in
 * another namespace the run doesn't exist.
 */
import { describe, expect, it } from "vitest";
import { CHECK_RUN, COMPLETE_RUN, directService, CANCEL_START, INSPECT_RUN, RENEW_RUN, RESET, START } from "../support/direct-service.js";
import { BOB } from "../support/http-event.js";
import type { Reply } from "../support/reply.js";

/** The same role and user names, in another account. */
const ELSEWHERE = { iam: { accountId: "999988887777", userId: "AROAALICE:session-1" } };
/** Alice again, with fresh credentials. */
const ALICE_LATER = { iam: { accountId: "111122223333", userId: "AROAALICE:session-2" } };
const LIST = "GET /v1/runs";
const START_BODY = { owner: "billing-3", fingerprint: "fingerprint-of-it", leaseMs: 20_000 };

/** Every call that names a lease, with its body. */
const BY_LEASE: [routeKey: string, body?: object][] = [
  [START, START_BODY],
  [CHECK_RUN],
  [RENEW_RUN],
  [RENEW_RUN, { checkpoint: "theirs" }],
  [RENEW_RUN, { checkpoint: "theirs".repeat(1_000) }],
  [COMPLETE_RUN, { state: "succeeded", result: "theirs" }],
  [COMPLETE_RUN, { state: "succeeded", result: "theirs".repeat(10_000) }],
  [COMPLETE_RUN, { state: "failed", error: "no", retryable: false }],
  [CANCEL_START],
];

/** A run of Alice's with a checkpoint. */
async function running() {
  const service = directService({ tenancy: "account" });
  const leaseId = service.newId();
  const started = await service.ask(START, { leaseId, body: START_BODY });
  await service.ask(RENEW_RUN, { leaseId, body: { checkpoint: "hers" } });
  return { ...service, leaseId, started };
}

describe("another principal of the namespace", () => {
  it.each(BY_LEASE)("can't %s (%j) by the lease that runs: 403, and nothing changes", async (routeKey, body) => {
    const { ask, leaseId, started } = await running();
    const reply = await ask(routeKey, { leaseId, body, authorizer: BOB });
    expect([reply.status, reply.body.code, reply.body.definite, reply.body.retry]).toEqual([403, "forbidden", true, "never"]);
    const still = await ask(START, { leaseId, body: START_BODY, authorizer: ALICE_LATER });
    expect(still.body).toEqual({ ...started.body, checkpoint: "hers", version: still.body.version as number });
    // Control: the lease is Alice's, and her same request is granted.
    expect((await ask(routeKey, { leaseId, body, authorizer: ALICE_LATER })).status).toBeLessThan(300);
  });

  it("can't by one whose lease has run out, either", async () => {
    for (const [routeKey, body] of BY_LEASE) {
      const { ask, leaseId, clock } = await running();
      await clock.advance(20_000);
      expect([routeKey, (await ask(routeKey, { leaseId, body, authorizer: BOB })).status]).toEqual([routeKey, 403]);
    }
  });

  it("may be told of the run, look at it and take over when it may", async () => {
    const { ask, newId, clock } = await running();
    expect((await ask(INSPECT_RUN, { authorizer: BOB })).body.state).toBe("running");
    await clock.advance(60_000);
    const taken = await ask(START, { leaseId: newId(), authorizer: BOB });
    expect(taken.body).toMatchObject({ attempt: 2, takeover: true, checkpoint: "hers" });
  });
});

describe("another namespace", () => {
  it("sees nothing of a run, and has its own under that key", async () => {
    const { ask, leaseId, newId } = await running();
    const there = { authorizer: ELSEWHERE };
    for (const state of ["running", "over"]) {
      if (state === "over") await ask(COMPLETE_RUN, { leaseId, body: { state: "succeeded", result: "hers".repeat(1_000) } });
      expect((await ask(INSPECT_RUN, there)).status).toBe(404);
      expect((await ask(LIST, there)).body.items).toEqual([]);
      expect((await ask(RESET, { ...there, body: { reason: "x" } })).status).toBe(404);
    }
    const theirs = newId();
    expect((await ask(START, { ...there, leaseId: theirs })).body).toMatchObject({ state: "running", attempt: 1, takeover: false });
    await ask(COMPLETE_RUN, { ...there, leaseId: theirs, body: { state: "succeeded", result: "theirs" } });
    expect((await ask(INSPECT_RUN, there)).body.result).toBe("theirs");
    expect((await ask(INSPECT_RUN)).body.result).toBe("hers".repeat(1_000));
  });

  it.each(BY_LEASE.filter(([routeKey]) => routeKey !== START))(
    "can't %s (%j) by the lease that runs: there is none",
    async (routeKey, body) => {
      const { ask, leaseId } = await running();
      const reply = await ask(routeKey, { leaseId, body, authorizer: ELSEWHERE });
      expect([reply.status, reply.headers["lease-state"] ?? reply.body.reason]).toEqual([routeKey === CANCEL_START ? 204 : 410, "never"]);
      expect((await ask(CHECK_RUN, { leaseId })).status).toBe(200);
      expect((await ask(INSPECT_RUN)).body).toMatchObject({ state: "running", checkpoint: "hers" });
    },
  );
});

describe("what others are told", () => {
  it("never has a leaseId, a principal or a fingerprint", async () => {
    const { ask, leaseId, newId, clock } = await running();
    const replies: Reply[] = [];
    const askAll = async (): Promise<void> => {
      for (const [routeKey, body] of BY_LEASE) replies.push(await ask(routeKey, { leaseId, body, authorizer: BOB }));
      replies.push(await ask(START, { leaseId: newId(), body: { fingerprint: "other" }, authorizer: BOB }));
      replies.push(await ask(START, { leaseId: newId(), body: { maxAttempts: 1 }, authorizer: BOB }));
      for (const routeKey of [INSPECT_RUN, LIST]) replies.push(await ask(routeKey, { authorizer: BOB }));
    };
    await askAll();
    replies.push(await ask(RESET, { body: { reason: "x" }, authorizer: BOB }));
    await clock.advance(60_000);
    await askAll();
    await ask(COMPLETE_RUN, { leaseId, body: { state: "succeeded", result: 1 } });
    await askAll();
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 204, 403, 409, 410, 422]));
    for (const { headers, text, body } of replies) {
      // A leaseId is returned only to the caller that named it, in the answer to its own start.
      const said = (body as { leaseId?: string } | undefined)?.leaseId === undefined ? `${JSON.stringify(headers)} ${text}` : "";
      for (const secret of [leaseId, "AROA", "111122223333", "fingerprint-of-it", "session-1"]) expect(said).not.toContain(secret);
    }
    // Control: the pattern is found in the answer to the holder's own start.
    const mine = await running();
    expect((await mine.ask(START, { leaseId: mine.leaseId, body: START_BODY })).text).toContain(mine.leaseId);
  });
});
