/** The wording of places in a queue. */
import { expect, it } from "vitest";
import { ordinal } from "../../bin/inspect/waiting.js";

it("numbers places as they are spoken", () => {
  const places = [1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 23, 100, 101, 111, 112];
  const spoken = "1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 23rd 100th 101st 111th 112th";
  expect(places.map(ordinal).join(" ")).toBe(spoken);
});
