import assert from "node:assert/strict";
import { createLockClient } from "holdfast/dynamodb";

const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const location = { endpoint: process.env.ENGINE, region: "us-east-1", credentials };
const client = process.env.WITH_CLIENT ? new (await import("@aws-sdk/client-dynamodb")).DynamoDBClient(location) : undefined;
const locks = createLockClient(client ? { client } : location);

await locks.withLock("key", async (lease) => {
  assert.ok(lease.fencingToken > 0);
  assert.equal(await locks.tryAcquire("key"), null);
});
const held = await locks.tryAcquire("held");
assert.equal(await locks.tryAcquire("held"), null);
assert.equal((await locks.inspect("held")).holders.length, 1);
await held.renew();
assert.equal(await held.release(), "released");
await locks.withLocks(["one", "other"], async ({ fencingTokens }) => assert.equal(Object.keys(fencingTokens).length, 2));
for (const replayed of [false, true]) assert.deepEqual(await locks.runOnce("run", () => "done"), { value: "done", replayed, attempt: 1 });
await locks.close();
client?.destroy();
console.log("locked, refused, locked many, ran once");
