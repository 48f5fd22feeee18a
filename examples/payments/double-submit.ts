/**
 * A form that an impatient user sends three times: one order, three identical responses. The page creates the key when
 * it shows the form, and sends it as `Idempotency-Key`. API Gateway calls the handler.
 */
import { type LockClient, idempotencyKeyOf, key, LockError } from "../../lib/index.js";
import { type Order, type Orders, ordersIn } from "./orders.js";
import { play } from "./till.js";

/** The part of API Gateway's event that is read here. The customer is the authenticated user, never a value from the page. */
export interface Submission {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  readonly customer: string;
}

/** The response for API Gateway. */
export interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The HTTP statuses of a run's refusals: no key, a key used for something else, still running. */
const STATUS: Readonly<Record<string, number>> = { "invalid-request": 400, "fingerprint-mismatch": 422, "wait-timeout": 409 };

/** The handler of the form. */
export function submit(locks: Pick<LockClient, "runOnce">, orders: Orders): (event: Submission) => Promise<Answer> {
  return async ({ headers, body, customer }) => {
    try {
      const order: Order = { customer, product: String((JSON.parse(body) as Partial<Order>).product) };
      // Each customer has separate keys, so no customer gets another's order as a response.
      const name = key("submit", customer, idempotencyKeyOf(headers));
      const { value, replayed } = await locks.runOnce(name, { payload: order }, async (run) => {
        // The counter returns another number every time, so the number is saved before it is used.
        const number = (run.checkpoint as number | undefined) ?? (await orders.nextNumber());
        await run.saveCheckpoint(number);
        await orders.file(number, order);
        return { number };
      });
      return { statusCode: 201, headers: replayed ? { "idempotent-replayed": "true" } : {}, body: JSON.stringify(value) };
    } catch (error) {
      const statusCode = error instanceof LockError ? STATUS[error.code] : undefined;
      if (statusCode === undefined) throw error;
      return { statusCode, headers: {}, body: JSON.stringify({ error: (error as LockError).code }) };
    }
  };
}

await play(import.meta.url, async (till) => {
  const orders = ordersIn(till.table);
  const event = { headers: { "Idempotency-Key": '"form-8f3a"' }, customer: "ann", body: JSON.stringify({ product: "camera" }) };
  // Three functions, for three requests that arrive at once.
  const answers = await Promise.all([1, 2, 3].map(() => submit(till.join(), orders)(event)));
  for (const { statusCode, headers, body } of answers) console.log(statusCode, body, headers["idempotent-replayed"] ? "replayed" : "");
  console.log(`orders: ${(await orders.nextNumber()) - 1}`);
  const other = await submit(till.join(), orders)({ ...event, body: JSON.stringify({ product: "console" }) });
  console.log(`the same key for another product: ${other.statusCode} ${other.body}`);
});
