import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { createLockClient } from "holdfast/testing";
import { traced } from "holdfast/otel";

// The API alone, without an SDK: nothing is recorded, and everything works.
const locks = traced(createLockClient(), { keyAttribute: (key) => key });
await locks.withLock("key", async ({ key }) => assert.equal(key, "key"));
const lease = await locks.acquire("held");
await locks.clock.advance(60_000);
assert.equal(await lease.release(), "released");
assert.equal(createRequire(import.meta.url)("holdfast/otel").traced, traced);
await locks.close();
console.log("locked, held, released");
