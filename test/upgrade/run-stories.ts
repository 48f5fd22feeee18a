/** The stories of runs, and of the table itself. */
import { expect } from "vitest";
import { COMPLETE_RUN, CANCEL_START, INSPECT_RUN, RENEW_RUN, START } from "../support/direct-service.js";
import { type EventParts, BOB } from "../support/http-event.js";
import type { Story, Teller } from "./teller.js";

const LIST = "GET /v1/runs";
const LEASE_MS = 3_600_000;
const SHORT_MS = 5_000;
/** Longer than a short lease and its margin. */
const LATER_MS = 30_000;
const DAY_MS = 86_400_000;
const FINGERPRINT = "sha-256-of-the-payload";
const PROGRESS = { page: 17, paid: ["ORDER_1", "ORDER_2"] };
const RESULT = { receipt: "R-1231", total: 12.5, lines: [null, true, "ä"] };
/** Longer than what a record stores itself. */
const LARGE = "x".repeat(2000);

const runs = (body: object = {}): Partial<EventParts> => ({ body: { leaseMs: LEASE_MS, owner: "worker-3", ...body } });
const ends = async (t: Teller, lease: number, body: object): Promise<void> => void (await t.ask(200, COMPLETE_RUN, lease, { body }));

/** The stories of runs. */
export const RUN_STORIES: readonly Story[] = [
  {
    name: "running",
    async writes(t) {
      await t.ask(201, START, 1, runs({ fingerprint: FINGERPRINT }));
      await t.ask(200, RENEW_RUN, 1, { body: { checkpoint: PROGRESS, sequence: 5 } });
    },
    async continues(t) {
      expect((await t.ask(409, START, 2, runs({ fingerprint: FINGERPRINT }))).body.code).toBe("run-in-progress");
      expect((await t.ask(422, START, 2, runs({ fingerprint: "another" }))).body.code).toBe("fingerprint-mismatch");
      // A late duplicate of an earlier checkpoint doesn't undo this one.
      await t.ask(200, RENEW_RUN, 1, { body: { checkpoint: { page: 16 }, sequence: 4 } });
      expect((await t.ask(200, INSPECT_RUN)).body).toMatchObject({ state: "running", attempt: 1, checkpoint: PROGRESS, owner: "worker-3" });
      await t.ask(403, COMPLETE_RUN, 1, { body: { state: "succeeded" }, authorizer: BOB });
      await ends(t, 1, { state: "succeeded", result: RESULT });
      expect((await t.ask(200, START, 3, runs({ fingerprint: FINGERPRINT }))).body).toMatchObject({ state: "succeeded", result: RESULT });
    },
  },
  {
    name: "left-behind",
    async writes(t) {
      await t.ask(201, START, 1, runs({ leaseMs: SHORT_MS }));
      await t.ask(200, RENEW_RUN, 1, { body: { checkpoint: PROGRESS } });
    },
    async continues(t) {
      await t.clock.advance(LATER_MS);
      const { body } = await t.ask(201, START, 2, runs());
      expect(body).toMatchObject({ state: "running", attempt: 2, takeover: true, checkpoint: PROGRESS });
      await t.ask(410, COMPLETE_RUN, 1, { body: { state: "succeeded" } });
    },
  },
  {
    name: "large-checkpoint",
    async writes(t) {
      await t.ask(201, START, 1, runs());
      await t.ask(200, RENEW_RUN, 1, { body: { checkpoint: LARGE } });
    },
    async continues(t) {
      expect((await t.ask(200, INSPECT_RUN)).body.checkpoint).toBe(LARGE);
      await t.clock.advance(1000);
      await t.ask(200, RENEW_RUN, 1);
      expect((await t.ask(200, INSPECT_RUN)).body.checkpoint).toBe(LARGE);
    },
  },
  {
    name: "succeeded",
    async writes(t) {
      await t.ask(201, START, 1, runs({ fingerprint: FINGERPRINT }));
      await ends(t, 1, { state: "succeeded", result: RESULT });
    },
    async continues(t) {
      const replayed = await t.ask(200, START, 2, runs({ fingerprint: FINGERPRINT }));
      expect(replayed.body).toEqual({ state: "succeeded", attempt: 1, result: RESULT });
      await t.ask(422, START, 3, runs({ fingerprint: "another" }));
      const again = await t.ask(200, COMPLETE_RUN, 1, { body: { state: "succeeded", result: RESULT } });
      expect(again.headers["idempotent-replayed"]).toBe("true");
      expect((await t.ask(409, COMPLETE_RUN, 1, { body: { state: "succeeded" } })).body.code).toBe("outcome-differs");
      await t.ask(403, COMPLETE_RUN, 1, { body: { state: "succeeded", result: RESULT }, authorizer: BOB });
      expect((await t.ask(200, INSPECT_RUN)).body.keptForMs).toBe(DAY_MS);
      await t.clock.advance(DAY_MS + 10_000);
      expect((await t.ask(404, INSPECT_RUN)).body.code).toBe("not-found");
    },
  },
  {
    name: "large-result",
    async writes(t) {
      await t.ask(201, START, 1, runs({ keepResultMs: "forever" }));
      await ends(t, 1, { state: "succeeded", result: LARGE });
    },
    async continues(t) {
      expect((await t.ask(200, START, 2, runs())).body.result).toBe(LARGE);
      expect((await t.ask(200, INSPECT_RUN)).body.keptForMs).toBe("forever");
      const listed = await t.ask(200, LIST, undefined, { query: { prefix: t.key } });
      expect(listed.body.items).toMatchObject([{ key: t.key, state: "succeeded", attempt: 1 }]);
    },
  },
  {
    name: "result-omitted",
    async writes(t) {
      await t.ask(201, START, 1, runs());
      await ends(t, 1, { state: "succeeded", resultOmitted: true });
    },
    async continues(t) {
      expect((await t.ask(200, START, 2, runs())).body).toEqual({ state: "succeeded", attempt: 1, resultOmitted: true });
    },
  },
  {
    name: "failed",
    async writes(t) {
      await t.ask(201, START, 1, runs());
      await ends(t, 1, { state: "failed", error: { name: "Declined" }, retryable: false });
    },
    async continues(t) {
      expect((await t.ask(200, START, 2, runs())).body).toEqual({ state: "failed", attempt: 1, error: { name: "Declined" } });
    },
  },
  {
    name: "to-be-retried",
    async writes(t) {
      await t.ask(201, START, 1, runs());
      await t.ask(200, RENEW_RUN, 1, { body: { checkpoint: PROGRESS } });
      await ends(t, 1, { state: "failed", error: "no answer", retryable: true });
    },
    async continues(t) {
      expect((await t.ask(200, INSPECT_RUN)).body).toMatchObject({ state: "failed", retryable: true, error: "no answer" });
      expect((await t.ask(409, START, 2, runs({ maxAttempts: 1 }))).body.code).toBe("attempts-exhausted");
      const { body } = await t.ask(201, START, 3, runs());
      expect(body).toMatchObject({ attempt: 2, takeover: false, checkpoint: PROGRESS });
      await ends(t, 3, { state: "succeeded", result: RESULT });
      // The outcome of the first attempt is sent again, and then another one in its place.
      await ends(t, 1, { state: "failed", error: "no answer", retryable: true });
      await t.ask(410, COMPLETE_RUN, 1, { body: { state: "succeeded" } });
    },
  },
  {
    name: "interrupted",
    async writes(t) {
      await t.ask(201, START, 1, runs({ leaseMs: SHORT_MS }));
      await t.clock.advance(LATER_MS);
      await t.ask(201, START, 2, runs());
      await t.ask(204, CANCEL_START, 2);
    },
    async continues(t) {
      expect((await t.ask(200, INSPECT_RUN)).body).toMatchObject({ state: "interrupted" });
      expect((await t.ask(201, START, 3, runs())).body.takeover).toBe(true);
    },
  },
  {
    name: "taken-over",
    async writes(t) {
      await t.ask(201, START, 1, runs({ leaseMs: SHORT_MS }));
      await t.clock.advance(LATER_MS);
      await t.ask(201, START, 2, runs());
    },
    async continues(t) {
      // The same request again is told the same.
      expect((await t.ask(200, START, 2, runs())).body).toMatchObject({ state: "running", attempt: 2, takeover: true });
    },
  },
];
