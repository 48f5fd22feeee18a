/**
 * The provider calls back twice within 20 ms, while the buyer reloads the page, which asks the provider too. All
 * three find the payment paid; all three wait for one change of the status and one start of the workflow.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { LockClient } from "../../lib/index.js";
import { key } from "../../lib/index.js";
import type { Cases, Status } from "./cases.js";
import { casesIn } from "./cases.js";
import type { Provider } from "./provider.js";
import { providerAt } from "./provider.js";
import { play } from "./till.js";

/** What settling a payment takes. */
export interface Desk {
  readonly locks: Pick<LockClient, "runOnce">;
  readonly cases: Cases;
  readonly provider: Provider;
  /**
   * Starts what comes after the payment. A later attempt may call it again, with the same key: Step Functions takes
   * it as a Standard execution's name, and its `ExecutionAlreadyExists` then says that all is well.
   */
  startWorkflow(idempotencyKey: string, input: { readonly payment: string }): Promise<void>;
}

/** A callback may come again days later: the outcome must still be there. */
const KEEP_MS = 30 * 86_400_000;

/** What a callback and a page do alike: a callback's word alone is nobody's proof. */
export async function settle({ locks, cases, provider, startWorkflow }: Desk, payment: string): Promise<Status> {
  // Looked up before the run: reading needs none, and a run that has nothing to do yet would use up its attempts.
  const { amount } = await cases.get(payment);
  if ((await provider.balance(payment)) < amount) return "PENDING";
  const { value } = await locks.runOnce(key("settle", payment), { keepResultMs: KEEP_MS }, async (run) => {
    await cases.set(payment, "PAID", run.fencingToken);
    await startWorkflow(run.idempotencyKey, { payment });
    return "PAID" as const;
  });
  return value;
}

await play(import.meta.url, async (till) => {
  const cases = casesIn(till.table);
  const provider = providerAt(till.provider.url);
  await cases.open("pay-7", 4900);
  await provider.charge({ payment: "pay-7", amount: 4900 }, "the buyer's own doing");
  const started: string[] = [];
  const desk = (): Desk => ({
    locks: till.join(),
    cases,
    provider,
    startWorkflow: async (idempotencyKey) => void started.push(idempotencyKey),
  });
  const settled = await Promise.all([0, 10, 20].map((atMs) => delay(atMs).then(() => settle(desk(), "pay-7"))));
  console.log(`the three were told: ${settled.join(", ")}`);
  console.log(`workflows started: ${started.join(", ")}`);
});
