/**
 * The same payment with no lock and no run: a status on the item and a condition on every change of it. With a
 * middle state it pays once. What it lacks shows when a payer dies or its charge fails: the case stays PAYING, and
 * nothing says whether somebody is still at it, until somebody decides.
 */
import type { Cases, Status } from "./cases.js";
import { casesIn } from "./cases.js";
import type { Provider } from "./provider.js";
import { providerAt } from "./provider.js";
import { play } from "./till.js";

/** Pays, or says how far it got: `PAYING` is another's, and no answer to wait for. */
export async function pay(cases: Cases, provider: Provider, payment: string): Promise<Status> {
  if (!(await cases.move(payment, "PENDING", "PAYING"))) return (await cases.get(payment)).status;
  const { amount } = await cases.get(payment);
  await provider.charge({ payment, amount }, payment);
  await cases.move(payment, "PAYING", "PAID");
  return "PAID";
}

/**
 * Somebody decided that nobody is paying any more. Safe even if that is wrong, but only with a provider that
 * knows idempotency keys: the charge is asked for again under the same one.
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
  await reached; // It is charged. Here the payer dies, for all that anybody can see.
  console.log(`afterwards everybody is told: ${await pay(cases, provider, "pay-8")}`);
  console.log(`until somebody decides: ${await finish(cases, provider, "pay-8")}; moved: ${till.provider.moved.join(", ")}`);
  answer();
  await dying;
});
