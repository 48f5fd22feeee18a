/**
 * A request that may be sent twice and must happen once: a repeated request with the same `Idempotency-Key` gets the
 * first one's response. Here the key does name the operation (and the caller, because the caller chose the rest).
 */
import { type Run, idempotencyKeyOf, key } from "../../lib/index.js";
import { Refusal } from "./refusal.js";
import type { Answer, Request, Shop } from "./shop.js";

/**
 * Returns the response to the request, produced once. A refusal is a response too and is stored: a late duplicate of a
 * refused request must not succeed after all. A request that failed otherwise may be sent again, as often as needed.
 * @param payload the content of the request: the same key with another payload is refused
 * @throws InvalidRequestError without an `Idempotency-Key`; LockTimeoutError while another request with the key is
 * running
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
