// For Jest as it comes, and for Vitest with its globals: CommonJS, and a dynamic import beside it.
const { createLockClient, LockTimeoutError } = require("holdfast/testing");
const { currentLease } = require("holdfast/middy");

test("a lock is held, seen and refused", async () => {
  const locks = createLockClient();
  await locks.withLock("key", async (lease) => expect(currentLease()).toBe(lease));
  await locks.tryAcquire("held");
  await expect(locks.acquire("held", { waitMs: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
});
