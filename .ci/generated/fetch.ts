/** The client that openapi-generator generates for TypeScript (typescript-fetch): a lock, a run and a limit. */
import { strict as assert } from "node:assert";
import { Configuration, DefaultApi, ResponseError } from "./fetch/index.js";
import { leaseId } from "./lease-id.js";

const api = new DefaultApi(new Configuration({ basePath: process.env["HOLDFAST_URL"]! }));
const key = "generated-fetch";
const isRefused = (code: string) => async (error: unknown) => {
  assert.ok(error instanceof ResponseError);
  return ((await error.response.json()) as { readonly code: string }).code === code;
};
/** Waits for the error of a call, and compares its code. */
async function refused(call: Promise<unknown>, code: string): Promise<void> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(await isRefused(code)(error));
}

const id = leaseId();
const held = await api.acquire({ key, leaseId: id, acquireRequest: { leaseMs: 5000, meta: { step: 1 } } });
assert.deepEqual([held.leaseId, held.meta], [id, { step: 1 }]);
await refused(api.acquire({ key, leaseId: leaseId() }), "locked");
assert.equal((await api.releaseRaw({ key, leaseId: id })).raw.headers.get("lease-state"), "released");

const started = await api.start({ key, leaseId: id, startRequest: { fingerprint: "f" } });
assert.ok(started.state === "running" && started.attempt === 1);
await api.complete({ key, leaseId: id, outcomeRequest: { state: "succeeded", result: { sent: 3 } } });
const again = await api.start({ key, leaseId: leaseId(), startRequest: { fingerprint: "f" } });
assert.ok(again.state === "succeeded");
assert.deepEqual(again.result, { sent: 3 });

const takeRequest = { rates: [{ count: 1, perMs: 60_000 }] };
assert.equal((await api.take({ key, takeRequest })).startInMs, 0);
await refused(api.take({ key, takeRequest }), "rate-limited");
