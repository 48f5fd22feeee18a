/** The reading of paged lists to a limit. */
import { expect, it } from "vitest";
import { firstThatFit, PAGE_ITEMS } from "../../console/pages.js";

/** Returns pages of the numbers below `end`; the list says that it goes on until its end was read. */
const pagesBelow = (end: number) => {
  let requests = 0;
  const after = ({ max, cursor = "0" }: { readonly max: number; readonly cursor?: string }) => {
    requests++;
    const from = Number(cursor);
    const items = Array.from({ length: Math.min(max, end - from) }, (_, at) => from + at);
    return Promise.resolve({ items, ...(from + max < end && { cursor: String(from + max) }) });
  };
  return { after, requests: () => requests };
};

it.each([
  ["behind the last that fits are others alone", [3, 5], 2, false],
  ["one more is on the last page", [3, 5, 999], 2, true],
  ["one more is on the page of the last", [3, 5, 6], 2, true],
  ["there are fewer", [3], 2, false],
  ["none fits", [], 2, false],
])("has the first that fit, and is told of more of them alone: %s", async (_what, fitting, most, more) => {
  const pages = pagesBelow(1000);
  const read = await firstThatFit(most, pages.after, (number) => fitting.includes(number));
  expect(read).toEqual({ items: fitting.slice(0, most), more, requests: pages.requests() });
  expect(pages.requests()).toBeLessThanOrEqual(1000 / PAGE_ITEMS);
});
