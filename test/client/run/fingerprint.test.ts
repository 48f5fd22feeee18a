/** The fingerprint of a payload: the same in every version. */
import { expect, it } from "vitest";
import { fingerprintOf } from "../../../lib/client/calls/run/fingerprint.js";

it("a fingerprint is the one that earlier versions stored", () => {
  const payload = { b: [1, "two", null], a: { 10: true, 9: false, at: new Date(0) } };
  expect(fingerprintOf(payload)).toBe("F6LGN5f_nRBSFnY6g1d514iFNXJEzeFFPSslbdZqItA");
});

const ORDER = { sku: "apple", count: 3, at: new Date(86_400_000), cents: 250n };

it.each<[what: string, payload: unknown]>([
  ["one member more", { ...ORDER, gift: true }],
  ["one member less", { sku: "apple", count: 3, at: ORDER.at }],
  ["text for a bigint", { ...ORDER, cents: "250" }],
  ["a number for a bigint", { ...ORDER, cents: 250 }],
  ["text for a Date", { ...ORDER, at: ORDER.at.toISOString() }],
  ["another Date", { ...ORDER, at: new Date(86_400_001) }],
  ["null", null],
])("a fingerprint is another with %s", (_what, payload) => {
  expect(fingerprintOf(payload)).not.toBe(fingerprintOf(ORDER));
});
