/** Conformance: batches of messages that may be delivered again, with one run for each message and a partial batch response. */
import { describe, expect, it } from "vitest";
import { type BatchOptions, type BatchRecord, type InvocationContext, type Run, runBatch } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

/** An invocation with time left. */
const CONTEXT: InvocationContext = { getRemainingTimeInMillis: () => 60_000 };

export function describeRunBatches(fixture: Fixture): void {
  /** Messages as their queue delivers them. A redelivered message has the same id. */
  const messages = (...bodies: readonly string[]): BatchRecord[] => {
    const batch = fixture.fresh();
    return bodies.map((body, index) => ({ messageId: `${batch}-${index}`, body }));
  };
  type Work = (record: BatchRecord, run: Run) => Promise<unknown>;
  const deliver = async (
    records: readonly BatchRecord[],
    work: Work,
    options: BatchOptions<BatchRecord> = {},
  ): Promise<readonly string[]> => {
    const answer = await fixture.backend.passing(runBatch(fixture.locks, { Records: records }, CONTEXT, options, work));
    return answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
  };

  describe("a batch", () => {
    it("is one run for each message, under a key made of its id", async () => {
      const records = messages("a", "b", "c");
      const seen: string[] = [];
      const work: Work = async ({ body }, { idempotencyKey, attempt }) => void seen.push(`${body} ${idempotencyKey} ${attempt}`);
      expect(await deliver(records, work)).toEqual([]);
      const expected = records.map(({ body, messageId }) => `${body} message_${messageId.replaceAll("_", "~5F")} 1`);
      expect(seen.sort()).toEqual(expected);
    });

    it("reports those that failed, and only those work when all come again", async () => {
      const records = messages("a", "b", "c");
      const seen: string[] = [];
      const failures: unknown[] = [];
      const work: Work = async ({ body }, { attempt }) => {
        seen.push(`${body}${attempt}`);
        if (body === "b" && attempt === 1) throw new Error("no stock");
      };
      const onFailure = (record: BatchRecord, error: unknown): void => void failures.push([record, error]);
      expect(await deliver(records, work, { onFailure })).toEqual([records[1]!.messageId]);
      expect(failures).toEqual([[records[1], new Error("no stock")]]);
      expect(await deliver(records, work)).toEqual([]);
      expect(seen.sort()).toEqual(["a1", "b1", "b2", "c1"]);
    });

    it.each<[how: string, onFailure: (record: BatchRecord, error: unknown) => unknown]>([
      [
        "throws",
        () => {
          throw new Error("the log is full");
        },
      ],
      ["rejects", () => Promise.reject(new Error("the log is full"))],
    ])("reports only those that failed, also where onFailure %s", async (_how, onFailure) => {
      const records = messages("a", "b", "c");
      const work: Work = async ({ body }) => {
        if (body === "b") throw new Error("no stock");
      };
      expect(await deliver(records, work, { onFailure })).toEqual([records[1]!.messageId]);
    });

    it("reports a poisonous message every time, and ends its work after maxAttempts", async () => {
      const records = messages("poison");
      let calls = 0;
      const reasons: unknown[] = [];
      const onFailure = (_record: BatchRecord, error: unknown): void => void reasons.push((error as { code?: string }).code);
      const poison: Work = () => Promise.reject(new Error(`call ${++calls}`));
      for (let delivery = 1; delivery <= 4; delivery++) {
        expect(await deliver(records, poison, { maxAttempts: 2, onFailure })).toEqual([records[0]!.messageId]);
      }
      expect(calls).toBe(2);
      expect(reasons).toEqual([undefined, undefined, "attempts-exhausted", "attempts-exhausted"]);
    });

    it("in order works on one after the other, and on nothing after a failure", async () => {
      const records = messages("a", "b", "c", "d");
      const seen: string[] = [];
      let atOnce = 0;
      const work: Work = async ({ body }, { attempt }) => {
        expect(++atOnce).toBe(1);
        await fixture.locks.health();
        seen.push(`${body}${attempt}`);
        atOnce--;
        if (body === "b" && attempt === 1) throw new Error("no stock");
      };
      const failed = records.slice(1).map(({ messageId }) => messageId);
      expect(await deliver(records, work, { inOrder: true, onFailure: () => undefined })).toEqual(failed);
      expect(seen).toEqual(["a1", "b1"]);
      expect(await deliver(records, work, { inOrder: true })).toEqual([]);
      expect(seen).toEqual(["a1", "b1", "b2", "c1", "d1"]);
    });

    it("tells messages of one key apart by payloadFor: what is about something else is reported, not replayed", async () => {
      const records = messages("order 7", "order 7", "order 8");
      const name = fixture.fresh();
      const reasons: unknown[] = [];
      const onFailure = (_record: BatchRecord, error: unknown): void => void reasons.push((error as { code?: string }).code);
      const options = { keyFor: () => name, payloadFor: ({ body }: BatchRecord) => ({ body }), inOrder: true, onFailure };
      let calls = 0;
      expect(await deliver(records, async () => ++calls, options)).toEqual([records[2]!.messageId]);
      expect([calls, reasons]).toEqual([1, ["fingerprint-mismatch"]]);
    });
  });
}
