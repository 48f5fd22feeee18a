/** Randomness is drawn in portions, and no part of one is given out twice. */
import { expect, it } from "vitest";
import { randomBytes, secureRandom } from "../../lib/client/runtime.js";

it("gives as many bytes as asked for, never the same ones", () => {
  const given = Array.from({ length: 5_000 }, () => Buffer.from(randomBytes(10)).toString("hex"));
  expect(given.every((text) => text.length === 20)).toBe(true);
  expect(new Set(given).size).toBe(given.length);
});

it("gives numbers from 0 to 1, all over", () => {
  const numbers = Array.from({ length: 5_000 }, secureRandom);
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
  expect(Math.abs(numbers.reduce((sum, number) => sum + number, 0) / numbers.length - 0.5)).toBeLessThan(0.05);
});
