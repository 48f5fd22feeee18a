/** Comparisons by the thousand: those of a test that plays histories or states, for which vitest's own take longer than what is compared. */
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";

/** Both are the same, as `toEqual` has it. If not, the message has what was `asked`. */
export function expectSame(came: unknown, wanted: unknown, asked: unknown): void {
  if (!isDeepStrictEqual(came, wanted)) expect(came, JSON.stringify(asked)).toEqual(wanted);
}
