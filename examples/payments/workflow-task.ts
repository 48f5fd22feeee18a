/**
 * A task of a Step Functions workflow, which may be retried although its first attempt succeeded. Its key is the
 * execution and the state: `Parameters: {"execution.$": "$$.Execution.Name", "state.$": "$$.State.Name", …}`. A state
 * that is entered several times, in a loop or a Map, needs the round or the item in its key too.
 */
import { type LockClient, key } from "../../lib/index.js";
import { type Provider, type Receipt, isRefusal, providerAt } from "./provider.js";
import { play } from "./till.js";

/** The input that the state passes to the function. */
export interface TaskInput {
  readonly execution: string;
  readonly state: string;
  readonly payment: string;
  readonly amount: number;
}

/** Charges once per execution and state. The task that undoes it is another state, with another key. */
export function chargeTask(locks: Pick<LockClient, "runOnce">, provider: Provider): (input: TaskInput) => Promise<Receipt> {
  return async ({ execution, state, payment, amount }) => {
    const { value } = await locks.runOnce(key("task", execution, state), { payload: { payment, amount }, isFinal: isRefusal }, (run) =>
      provider.charge({ payment, amount }, run.idempotencyKey),
    );
    return value;
  };
}

await play(import.meta.url, async (till) => {
  const task = chargeTask(till.join(), providerAt(till.provider.url));
  const input = { execution: "order-1231", state: "Charge", payment: "pay-7", amount: 4900 };
  console.log("first:", (await task(input)).id);
  console.log("retried:", (await task(input)).id);
  console.log("moved:", till.provider.moved.join(", "));
});
