/** The signal of a lease takes 1.5 KB of heap and as long to make as the rest of an attempt, so it is made for those who read it. */
import { expect, it, onTestFinished, vi } from "vitest";
import { createLockClient } from "../../../lib/testing.js";

it("a lease makes no AbortSignal; control: but where it is read", async () => {
  let made = 0;
  class Counted extends AbortController {
    constructor() {
      super();
      made++;
    }
  }
  vi.stubGlobal("AbortController", Counted);
  onTestFinished(() => void vi.unstubAllGlobals());
  const locks = createLockClient();
  for (const isRead of [false, true]) {
    await locks.withLock("ORDER_1231", (lease) => isRead && lease.signal.aborted);
    expect(made).toBe(isRead ? 1 : 0);
  }
});
