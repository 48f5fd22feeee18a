/** Entity tags: the forms of `If-None-Match` that name the present one. */
import { expect, it } from "vitest";
import { namesTag } from "../../lib/core/entity-tag.js";

it.each<[ifNoneMatch: string | undefined, names: boolean]>([
  ['"7.a"', true],
  ['W/"7.a"', true],
  ['"6.b", "7.a"', true],
  ['"6.b",W/"7.a" ', true],
  ["*", true],
  ['"6.b", *', true],
  [undefined, false],
  ["", false],
  ['"7.b"', false],
  ['"7.a', false],
  ['"17.a"', false],
  ['W/W/"7.a"', false],
  ['"6 W/"7.a"', false],
  ['"7W/.a"', false],
])("If-None-Match: %s names the tag: %s", (ifNoneMatch, names) => {
  expect(namesTag(ifNoneMatch, '"7.a"')).toBe(names);
});
