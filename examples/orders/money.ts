/**
 * An order's payments at the provider. Their idempotency keys name the order, and neither the run (two tabs are two
 * runs) nor the operation (cancelling and agreeing both refund). So an order has one charge and one refund.
 */
import { key } from "../../lib/index.js";
import { type Provider, RefusedError } from "../payments/provider.js";
import { type Order, keyOf } from "./order.js";
import { Refusal } from "./refusal.js";

/** Charges the order's total. @throws Refusal if the provider declines it */
export async function charge({ provider }: { readonly provider: Provider }, { id, total }: Order): Promise<void> {
  try {
    await provider.charge({ payment: keyOf(id), amount: total }, key("ORDER", id, "CHARGE"));
  } catch (error) {
    if (error instanceof RefusedError) throw new Refusal(402, "declined", "the payment was declined");
    throw error;
  }
}

/** Refunds the charge, if there was one. The provider knows, even if the payer died before it could record the charge. */
export async function giveBack({ provider }: { readonly provider: Provider }, { id }: Order): Promise<void> {
  const payment = keyOf(id);
  const amount = await provider.balance(payment);
  if (amount > 0) await provider.refund({ payment, amount }, key("ORDER", id, "REFUND"));
}
