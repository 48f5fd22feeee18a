/** The fingerprint of a payload: the same in every version. */
import { expect, it } from "vitest";
import { fingerprintOf } from "../../../lib/client/calls/run/fingerprint.js";

it("a fingerprint is the one that earlier versions stored", () => {
  const payload = { b: [1, "two", null], a: { 10: true, 9: false, at: new Date(0) } };
  expect(fingerprintOf(payload)).toBe("F6LGN5f_nRBSFnY6g1d514iFNXJEzeFFPSslbdZqItA");
});
