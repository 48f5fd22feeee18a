/** Randomness is the kernel's at the time of use, and the runtime's where a process can't read the kernel's. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { randomBytes, randomNumber, randomToken } from "../../lib/core/random.js";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const hex = (count: number): string => Buffer.from(randomBytes(count)).toString("hex");

describe.each([
  ["the kernel's file", () => undefined],
  ["the runtime's generator, outside Node", () => vi.stubGlobal("navigator", { userAgent: "Deno/2.1.0" })],
])("from %s", (_, prepare) => {
  it("gives as many bytes as asked for, never the same ones", () => {
    prepare();
    const given = Array.from({ length: 5_000 }, () => hex(10));
    expect(given.every((text) => text.length === 20)).toBe(true);
    expect(new Set(given).size).toBe(given.length);
  });

  it("gives numbers from 0 to 1, all over", () => {
    prepare();
    const numbers = Array.from({ length: 5_000 }, randomNumber);
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(Math.abs(numbers.reduce((sum, number) => sum + number, 0) / numbers.length - 0.5)).toBeLessThan(0.05);
  });
});

it("makes tokens of a length that DynamoDB takes", () => {
  expect(randomToken()).toMatch(/^[0-9a-f]{32}$/);
});

it("owes nothing to the runtime's generator, which an image of the process has too", () => {
  const generator = vi.spyOn(crypto, "getRandomValues").mockImplementation((bytes) => bytes);
  expect(hex(16)).not.toBe(hex(16));
  expect(generator).not.toHaveBeenCalled();
});
