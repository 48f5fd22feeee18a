/** The hash of an acquire's parameters is stored with the hold. A later version must make the same one for the same request. */
import { expect, it } from "vitest";
import { parametersOf } from "../../lib/service/locks.js";

it("is the same in every version", () => {
  const request = { key: "ORDER_1231", leaseId: "019b0000-0000-7000-8000-000000000001" };
  expect(parametersOf(request).requestHash).toBe("eJ1U_pfSOFgOYOye");
  expect(parametersOf({ ...request, leaseMs: 5000, owner: "checkout-7", meta: { step: 1 } }).requestHash).toBe("cq7xnvQebgrXoilW");
});
