/**
 * A request that may be sent twice and must happen once: whoever sends it again, with the same `Idempotency-Key`, gets
 * the first one's answer. Here the key does name the operation (and the caller, who chose the rest of it).
 */
import type { Run } from "../../lib/index.js";
import { idempotencyKeyOf, key } from "../../lib/index.js";
import { Refusal } from "./refusal.js";
import type { Answer, Request, Shop } from "./shop.js";

/**
 * The answer to the request, made once. A refusal is an answer too, and kept: a late duplicate of a request that was
 * refused must not succeed after all. What merely failed may be sent again, as often as it takes.
 * @param payload what the request is about: the same key with another is refused
 * @throws InvalidRequestError without an `Idempotency-Key`; LockTimeoutError while another is still at it
 */
export async function once(
  { locks }: Shop,
  { who, headers }: Request,
  operation: "PLACE" | "PAY" | "AGREE",
  payload: unknown,
  work: (run: Run) => Promise<Answer>,
): Promise<Answer> {
  const name = key("ORDER", operation, who, idempotencyKeyOf(headers));
  const { value, replayed } = await locks.runOnce(name, { payload, maxAttempts: 0 }, async (run) => {
    try {
      return await work(run);
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      throw error;
    }
  });
  return replayed ? { ...value, headers: { "idempotent-replayed": "true" } } : value;
}
