/** The types that openapi-typescript generates, and its fetch: a lock, a run and a limit. */
import createClient from "openapi-fetch";
import { strict as assert } from "node:assert";
import type { paths } from "./generated.js";
import { leaseId } from "./lease-id.js";

const client = createClient<paths>({ baseUrl: process.env["HOLDFAST_URL"]! });
const key = "generated-typescript";

const ofLock = "/v1/locks/{key}/leases/{leaseId}";
const path = { key, leaseId: leaseId() };
const held = await client.PUT(ofLock, { params: { path }, body: { leaseMs: 5000, meta: { step: 1 } } });
assert.ok(held.data && "fencingToken" in held.data && held.data.meta?.["step"] === 1);
const refused = await client.PUT(ofLock, { params: { path: { key, leaseId: leaseId() } } });
assert.ok(refused.error && "code" in refused.error && refused.error.code === "locked");
const released = await client.DELETE(ofLock, { params: { path } });
assert.equal(released.response.headers.get("lease-state"), "released");

const ofRun = "/v1/runs/{key}/leases/{leaseId}";
const started = await client.PUT(ofRun, { params: { path }, body: { fingerprint: "f" } });
assert.ok(started.data?.state === "running" && started.data.attempt === 1);
await client.PUT("/v1/runs/{key}/leases/{leaseId}/outcome", { params: { path }, body: { state: "succeeded", result: { sent: 3 } } });
const again = await client.PUT(ofRun, { params: { path: { key, leaseId: leaseId() } }, body: { fingerprint: "f" } });
assert.ok(again.data?.state === "succeeded");
assert.deepEqual(again.data.result, { sent: 3 });

const take = { params: { path: { key } }, body: { rates: [{ count: 1, perMs: 60_000 }] } };
assert.equal((await client.POST("/v1/limits/{key}/takes", take)).data?.startInMs, 0);
const limited = await client.POST("/v1/limits/{key}/takes", take);
assert.ok(limited.error && "code" in limited.error && limited.error.code === "rate-limited");
