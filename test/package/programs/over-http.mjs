// A lock and a run over HTTP, at the service that HOLDFAST_URL names.
import { createLockClient } from "holdfast";

const locks = createLockClient();
const token = await locks.withLock("ORDER_1231", async (lease) => lease.fencingToken);
const { value, replayed } = await locks.runOnce("REFUND_12", async () => "refunded");
await locks.close();
console.log(token > 0 ? "held" : "no token", value, replayed);
