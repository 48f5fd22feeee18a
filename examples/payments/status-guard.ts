/**
 * The same payment without a lock or a run: a status on the item and a condition on every change of it. With a middle
 * state it pays once. Its weakness shows when a payer dies or its charge fails: the case stays PAYING, and nothing says
 * if a payer is still running. Somebody has to decide.
 */
import { type Cases, type Status, casesIn } from "./cases.js";
import { type Provider, providerAt } from "./provider.js";
import { play } from "./till.js";

/** Pays, or returns the current status. `PAYING` means that another payer has started, and there is no result to wait for. */
export async function pay(cases: Cases, provider: Provider, payment: string): Promise<Status> {
  if (!(await cases.move(payment, "PENDING", "PAYING"))) return (await cases.get(payment)).status;
  const { amount } = await cases.get(payment);
  await provider.charge({ payment, amount }, payment);
  await cases.move(payment, "PAYING", "PAID");
  return "PAID";
}

/**
 * Finishes a payment after somebody decided that its payer is gone. This is safe even if that is wrong, but only with a
 * provider that supports idempotency keys: it repeats the charge under the same key.
 */
export async function finish(cases: Cases, provider: Provider, payment: string): Promise<Status> {
  const { amount, status } = await cases.get(payment);
  if (status !== "PAYING") return status;
  await provider.charge({ payment, amount }, payment);
  await cases.move(payment, "PAYING", "PAID");
  return "PAID";
}

await play(import.meta.url, async (till) => {
  const cases = casesIn(till.table);
  const provider = providerAt(till.provider.url);
  await cases.open("pay-7", 4900);
  const told = await Promise.all([1, 2, 3].map(() => pay(cases, provider, "pay-7")));
  console.log(`three at once were told: ${told.join(", ")}; moved: ${till.provider.moved.join(", ")}`);

  await cases.open("pay-8", 100);
  const { reached, answer } = till.provider.withholdNext();
  const dying = pay(cases, provider, "pay-8");
  await reached; // It is charged. Here the payer dies, as far as others can see.
  console.log(`afterwards everybody is told: ${await pay(cases, provider, "pay-8")}`);
  console.log(`until somebody decides: ${await finish(cases, provider, "pay-8")}; moved: ${till.provider.moved.join(", ")}`);
  answer();
  await dying;
});
