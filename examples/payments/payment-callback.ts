/**
 * The provider calls back twice within 20 ms, while the buyer reloads the page, which also asks the provider. All three
 * find the payment paid. All three wait for one change of the status and one start of the workflow.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type LockClient, key } from "../../lib/index.js";
import { type Cases, type Status, casesIn } from "./cases.js";
import { type Provider, providerAt } from "./provider.js";
import { play } from "./till.js";

/** The dependencies of settling a payment. */
export interface Desk {
  readonly locks: Pick<LockClient, "runOnce">;
  readonly cases: Cases;
  readonly provider: Provider;
  /**
   * Starts the workflow that follows the payment. A later attempt may call it again with the same key. Step Functions
   * takes the key as a Standard execution's name, and then its `ExecutionAlreadyExists` means success.
   */
  startWorkflow(idempotencyKey: string, input: { readonly payment: string }): Promise<void>;
}

/** A callback may arrive again days later, and the outcome must still be stored. */
const KEEP_MS = 30 * 86_400_000;

/** Handles callbacks and pages alike: it asks the provider, because a callback alone proves nothing. */
export async function settle({ locks, cases, provider, startWorkflow }: Desk, payment: string): Promise<Status> {
  // Read before the run: a read needs no run, and runs with nothing to do yet would use up the attempts.
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
