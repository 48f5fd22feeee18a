/** Checks that two ways of loading the package lead to one copy of it. Each side has the modules of three entries. */
import assert from "node:assert/strict";

/** What Node adds to the names of a CommonJS module that is imported. */
const ADDED = ["__esModule", "default", "module.exports"];

/** Returns the names that a module exports. */
export function names(module) {
  return Object.keys(module)
    .filter((name) => !ADDED.includes(name))
    .sort();
}

export async function check(one, other) {
  for (const entry of ["holdfast", "testing", "middy"]) {
    assert.deepEqual(names(one[entry]), names(other[entry]));
    assert.ok(names(one[entry]).includes(entry === "middy" ? "lockHandler" : "createLockClient"));
  }
  for (const name of ["LockError", "LockTimeoutError", "LockLostError", "FinalError"])
    assert.equal(one.holdfast[name], other.holdfast[name]);
  await checkChain(one, other);

  // A refusal of one side's client is one that the other side's wrapper knows.
  const told = [];
  const locks = one.testing.createLockClient({ onEvent: ({ type }) => told.push(type) });
  await locks.tryAcquire("held");
  const handler = other.middy.lockHandler({ locks, key: () => "held", waitMs: 0 }, async () => ({ statusCode: 200 }));
  const { statusCode } = await handler({ headers: {} }, { getRemainingTimeInMillis: () => 10_000 });
  assert.equal(statusCode, 423);
}

/** Checks that what a chain of calls holds through one side is seen from the other. */
export async function checkChain(one, other) {
  const told = [];
  const locks = one.testing.createLockClient({ onEvent: ({ type }) => told.push(type) });
  const seen = await locks.withLock("key", async (lease) => other.middy.currentLease() === lease);
  assert.equal(seen, true);
  const again = locks.withLock("key", () => other.testing.createLockClient().withLock("key", () => locks.tryAcquire("key")));
  assert.equal(await again, null);
  assert.ok(told.includes("self-wait"));
}
