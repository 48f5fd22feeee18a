/**
 * A form that an impatient finger sends three times: one order, three same answers. The page makes the key when
 * it shows the form, and sends it as `Idempotency-Key`; the handler is what API Gateway calls.
 */
import type { LockClient } from "../../lib/index.js";
import { idempotencyKeyOf, key, LockError } from "../../lib/index.js";
import type { Order, Orders } from "./orders.js";
import { ordersIn } from "./orders.js";
import { play } from "./till.js";

/** As much of API Gateway's event as is read here. The customer is whoever signed in, never what the page says. */
export interface Submission {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  readonly customer: string;
}

/** What API Gateway answers with. */
export interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a run's refusal is over HTTP: no key, a key used for something else, still at work. */
const STATUS: Readonly<Record<string, number>> = { "invalid-request": 400, "fingerprint-mismatch": 422, "wait-timeout": 409 };

/** The handler of the form. */
export function submit(locks: Pick<LockClient, "runOnce">, orders: Orders): (event: Submission) => Promise<Answer> {
  return async ({ headers, body, customer }) => {
    try {
      const order: Order = { customer, product: String((JSON.parse(body) as Partial<Order>).product) };
      // Each customer has keys of their own: nobody is answered with another's order.
      const name = key("submit", customer, idempotencyKeyOf(headers));
      const { value, replayed } = await locks.runOnce(name, { payload: order }, async (run) => {
        // The counter gives another number every time: what it gave is saved before it is used.
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
