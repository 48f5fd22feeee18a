/**
 * One order, and three callers with different requests at the same moment: the buyer cancels, the seller accepts, the
 * seller's colleague agrees to the refund that the buyer asked for. Each runs in its own function.
 */
import { ask } from "./ask.js";
import { openShop } from "./local.js";

// This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help users of this program.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";
const local = await openShop({ endpoint: process.env["DYNAMODB_ENDPOINT"] || undefined, url: process.env["HOLDFAST_URL"] || undefined });
try {
  await local.stockUp("camera", 10);
  const headers = { "idempotency-key": "form-8f3a" };
  const form = { as: "ann", headers, body: { items: { camera: 2 } } };
  const placed = await Promise.all([1, 2, 3].map(() => ask(local.join(), "POST /orders", form)));
  console.log(
    `the form is sent three times: ${new Set(placed.map(({ body }) => body.id)).size} order, ${await local.pieces("camera")} cameras left`,
  );

  const order = placed[0]!.body.id as string;
  const ann = { as: "ann", order, headers };
  const sue = { as: "sue", order, headers };
  console.log("paid:", (await ask(local.join(), "POST /orders/{order}/payment", ann)).body.status);
  console.log("refund:", (await ask(local.join(), "POST /orders/{order}/refund", ann)).body.refund);

  const told = await Promise.all([
    ask(local.join(), "POST /orders/{order}/cancellation", ann),
    ask(local.join(), "POST /sales/{order}/acceptance", sue),
    ask(local.join(), "POST /sales/{order}/refund/agreement", sue),
  ]);
  for (const [index, what] of ["cancel", "accept", "agree"].entries()) {
    const { status, body } = told[index]!;
    console.log(`${what}: ${status} ${status === 200 ? body.status : body.detail}`);
  }
  const { body } = await ask(local.join(), "GET /orders/{order}", ann);
  console.log(
    `it is ${body.status}; moved ${local.provider.moved.join(", ")}; pickups ${local.carrier.pickups.length}; cameras ${await local.pieces("camera")}`,
  );
} finally {
  await local.close();
}
